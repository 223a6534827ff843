"""Counter: an estimator with the rules by which messages and tools are counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, Decimal

import attrs

from vitehub_chat.model.estimates import CountKey, DescribedTool, SizeUnit
from vitehub_chat.model.json_text import jsonable
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import read_parts
from vitehub_chat.model.parts import part_to_json
from vitehub_chat.selection.tokens_content import read_content, texts_of_tool

RUNES_PER_TOKEN = 2.0


@attrs.frozen(kw_only=True)
class TokenCounter:
    """Counts texts, messages and tools; more of them never count less.

    Attributes:
        name: The name of the estimator.
        version: Changes whenever it counts anything differently; empty where unknown.
        unit: What it counts.
        message_overhead: What each message costs on top of its content, unless told otherwise.
    """

    name: str
    version: str
    unit: SizeUnit
    message_overhead: int = 0
    _measure: Callable[[str], int] = attrs.field(alias="measure")
    _divisor: int = attrs.field(default=1, alias="divisor")
    _own_message: Callable[[Message], int] | None = attrs.field(default=None, alias="own_message")
    _own_tools: Callable[[Sequence[DescribedTool]], int] | None = attrs.field(
        default=None, alias="own_tools"
    )

    def count_text(self, text: str, /) -> int:
        """Return the size of a text."""
        return self.count_texts((text,))

    def count_texts(self, texts: Iterable[str], /) -> int:
        """Return the size of texts together, rounded up once."""
        return -(-sum(map(self._measure, texts)) // self._divisor)

    def count_message(
        self,
        message: Message,
        /,
        *,
        overhead: int | None = None,
        runes_per_token: float = RUNES_PER_TOKEN,
    ) -> int:
        """Return the size of a message: its content and the overhead.

        Args:
            message: The message, with its parts as supplied or as a driver gets them.
            overhead: What it costs on top; None is what the estimator says.
            runes_per_token: How many runes one token is, for media counted in runes.
        """
        size = self.count_content(message, runes_per_token=runes_per_token)
        return size + (self.message_overhead if overhead is None else overhead)

    def count_content(
        self, message: Message, /, *, runes_per_token: float = RUNES_PER_TOKEN
    ) -> int:
        """Return the size of the texts and media of a message; this may be kept under `key`."""
        if self._own_message is not None:
            return self._own_message(message)
        content = read_content(read_parts(message.parts))
        media = content.media_tokens
        if self.unit == "runes" and media:
            media = _runes(media, runes_per_token)
        return self.count_texts(content.texts) + media

    def count_tools(self, tools: Sequence[DescribedTool], /) -> int:
        """Return what name, description and schema of all tools cost, rounded up once per tool."""
        if self._own_tools is not None:
            return self._own_tools(tools)
        return sum(self.count_texts(texts_of_tool(tool)) for tool in tools)

    def key(
        self, message: Message, /, *, runes_per_token: float = RUNES_PER_TOKEN
    ) -> CountKey | None:
        """Return under what the size of the content may be kept, or None without a version."""
        if not self.version:
            return None
        parts = [part_to_json(part) for part in message.parts]
        rate = runes_per_token if self.unit == "runes" else None
        counted = json.dumps([message.role, jsonable(parts), rate], separators=(",", ":"))
        digest = hashlib.sha256(counted.encode("ascii")).hexdigest()
        return CountKey(self.name, self.version, digest)


def _runes(tokens: int, runes_per_token: float) -> int:
    exact = tokens * Decimal(str(runes_per_token))
    return int(exact.to_integral_value(ROUND_CEILING))
