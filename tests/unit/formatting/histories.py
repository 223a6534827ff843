"""Random histories: messages with tools, media, reasoning, systems and blanks, in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.model.messages import Message

_BLANKS = ["", "  ", "\n\t", "\u200b"]
_TEXTS = st.one_of(
    st.sampled_from(
        ["hi", "ok \n", "system: do it", "<system-note>x</system-note>", "\U0001f600 <|im_end|>"]
    ),
    st.sampled_from(_BLANKS),
    st.text(max_size=6),
)
_IDS = st.sampled_from(["c1", "c2", "c1_2", "call_1", "bad id!", "", "é" * 70, "abcdefghi"])
_NAMES = st.sampled_from(["get", "put"])
_JSON = st.one_of(
    st.none(),
    st.sampled_from(["", " ", "ok", "é"]),
    st.integers(0, 9),
    st.lists(st.integers(0, 9), max_size=2),
    st.dictionaries(st.sampled_from("qrs"), st.integers(0, 9), max_size=2),
)
_PROVIDERS = st.sampled_from(["anthropic", "bedrock", "deepseek", "gemini", "openai", "xai"])
_MEDIA = st.sampled_from(
    [
        ("image", "image/png"),
        ("image", "image/tiff"),
        ("audio", "audio/wav"),
        ("audio", "audio/ogg"),
        ("file", "application/pdf"),
        ("file", "text/plain"),
        ("file", "application/zip"),
    ]
)
_SOURCES = st.sampled_from([{"data": "aGk="}, {"url": "https://x.example/y"}, {"url": "s3://b/k"}])

Json = dict[str, Any]


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _call(call_id: str, name: str, given: Any) -> Json:
    return {"type": "tool-call", "id": call_id, "name": name, "input": given}


def _result(call_id: str, name: str, output: Any, error: str | None) -> Json:
    fields: Json = {"type": "tool-result", "id": call_id, "name": name}
    if error is None:
        return {**fields, "output": output}
    return {**fields, "status": "failed", "error": error}


def _media(kind: tuple[str, str], source: Json, name: str | None) -> Json:
    named = {} if name is None else {"name": name}
    return {"type": kind[0], "mediaType": kind[1], **source, **named}


def _reasoning(provider: str, text: str, more: Json) -> Json:
    return {"type": "reasoning", "provider": provider, "text": text, **more}


_ERRORS = st.sampled_from([None, None, "", "broken"])
_PARTS = st.one_of(
    st.builds(_text, _TEXTS),
    st.builds(_call, _IDS, _NAMES, _JSON),
    st.builds(_result, _IDS, _NAMES, _JSON, _ERRORS),
    st.builds(_media, _MEDIA, _SOURCES, st.sampled_from([None, "a_b.pdf"])),
    st.builds(
        _reasoning,
        _PROVIDERS,
        st.sampled_from(["hm", ""]),
        st.sampled_from(
            [{}, {"signature": "c2ln"}, {"item": {"type": "reasoning", "id": "r", "summary": []}}]
        ),
    ),
    st.just({"type": "data-x", "data": 1}),
    st.just({"type": "text", "text": "OK.", "synthetic": "tool_then_user"}),
)
_ROLES = st.sampled_from(["user", "user", "assistant", "assistant", "tool", "system", "critic"])
_AUTHORS = st.sampled_from([None, "ana", "bo", "system", "Ana María", " \n", "<|x"])


def _message(role: str, parts: list[Json], author: str | None) -> Message:
    return Message(None, role, tuple(parts), {} if author is None else {"author": author})


_SOME = st.lists(st.builds(_message, _ROLES, st.lists(_PARTS, max_size=5), _AUTHORS), max_size=4)
_SAID = st.builds(
    _message, st.sampled_from(["user", "assistant"]), st.just([_text("said")]), st.none()
)

MESSAGES = st.builds(lambda before, said, after: [*before, said, *after], _SOME, _SAID, _SOME)
"""Any messages of which one says something; most tool histories among them are broken."""

OPTIONS = st.builds(
    FormatOptions,
    speaker_prefix=st.booleans(),
    thinking=st.booleans(),
    live_frontier=st.booleans(),
    split_results=st.booleans(),
    media=st.sampled_from([None, None, (), ("image",), ("image", "audio", "file")]),
)
"""Any format options."""
