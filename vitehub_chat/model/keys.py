"""Keys: which conversation a message belongs to, and how keys are written down."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

import attrs

from vitehub_chat.errors import InputError

MAX_ID_LENGTH = 512
"""Longest id in characters, of messages, sessions, threads, channels and tenants alike."""

_DIGEST_LENGTH = 16
_LENGTH: Final = re.compile(r"(0|[1-9][0-9]{0,9}):")


@attrs.frozen
class ConversationKey:
    """The place of one conversation; parts that are None are distinct from any text.

    Parts are compared exactly: no trimming, case folding or normalisation, and no character has a
    meaning.
    """

    tenant: str | None
    agent: str | None
    channel: str | None
    thread: str | None

    def encode(self) -> str:
        """Return the one text under which every store files this conversation."""
        return encode_key(self.tenant, self.agent, self.channel, self.thread)

    @classmethod
    def decode(cls, encoded: str) -> ConversationKey:
        """Return the key that `encode` wrote down.

        Raises:
            InputError: `encode` writes no such text.
        """
        parts = decode_key(encoded)
        if len(parts) != len(attrs.fields(cls)):
            raise _no_key()
        return cls(*parts)

    def encode_channel(self) -> str:
        """Return the text for (tenant, agent, channel), the room that named sessions live in."""
        return encode_key(self.tenant, self.agent, self.channel)


def encode_key(*parts: str | None) -> str:
    """Join parts without ambiguity: each is its length, a colon and itself, or `-` when absent."""
    return "".join("-" if part is None else f"{len(part)}:{part}" for part in parts)


def decode_key(encoded: str) -> list[str | None]:
    """Return the parts that `encode_key` joined.

    Raises:
        InputError: `encode_key` writes no such text.
    """
    parts: list[str | None] = []
    at = 0
    while at < len(encoded):
        if encoded[at] == "-":
            parts.append(None)
            at += 1
            continue
        length = _LENGTH.match(encoded, at)
        if length is None or (end := length.end() + int(length[1])) > len(encoded):
            raise _no_key()
        parts.append(encoded[length.end() : end])
        at = end
    return parts


def _no_key() -> InputError:
    return InputError("is no encoded key", path="conversation")


def fit_id(name: str) -> str:
    """Return a name that was made of ids as an id: one that is too long ends in a digest of it."""
    if len(name) <= MAX_ID_LENGTH:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: MAX_ID_LENGTH - _DIGEST_LENGTH - 1]}~{digest}"


def check_id(value: str, path: str) -> str:
    """Return an id unchanged, or refuse it.

    Raises:
        InputError: It is no text, has more than 512 characters, a control character, or half of a
            surrogate pair. Such ids cannot be stored exactly everywhere, and changing one would
            mix up two.
    """
    _check_text(value, path)
    if len(value) > MAX_ID_LENGTH:
        raise InputError(f"has {len(value)} characters, allowed are {MAX_ID_LENGTH}", path=path)
    if value.isascii() and value.isprintable():
        return value
    for character in value:
        if unicodedata.category(character) in {"Cc", "Cs"}:
            raise InputError(
                f"contains the character U+{ord(character):04X}",
                path=path,
                hint="ids are text without control characters and lone surrogates",
            )
    return value


def check_place(key: ConversationKey, session_id: str | None) -> None:
    """Refuse a conversation or a session that no message can be in.

    Raises:
        InputError: A part of it is no id, see `check_id`; the path names the part.
    """
    for name, part in {**attrs.asdict(key), "session_id": session_id}.items():
        if part is not None:
            check_id(part, name)


def _check_text(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"must be text, not {type(value).__name__}", path=path)
