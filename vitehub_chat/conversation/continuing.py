"""Continuing: assistant messages that come back with tool outputs and decisions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from vitehub_chat.model.json_text import encode_json
from vitehub_chat.model.messages import Message

_SETTLING = frozenset({"output", "errorText", "approval"})


def settled_parts(message: Message) -> list[Mapping[str, Any]]:
    """Return the parts of a message that hold the output of a tool or ask for a decision."""
    return [part for part in message.to_json()["parts"] if _SETTLING & part.keys()]


def digest_settled(message: Message) -> str:
    """Return a digest of what is settled in a message; another output gives another one."""
    text = encode_json(settled_parts(message), "messages[-1].parts")
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def brings_nothing_new(message: Message, stored: Message) -> bool:
    """Tell whether everything that is settled in a message is so in the stored one already."""
    known = {encode_json(part, "parts") for part in settled_parts(stored)}
    return all(encode_json(part, "parts") in known for part in settled_parts(message))
