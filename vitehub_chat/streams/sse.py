"""Server-sent events: how chunks of a stream become frames of an HTTP response."""

from __future__ import annotations

from collections.abc import Mapping

from vitehub_chat.model.json_text import Json, show_json

DONE_FRAME = "data: [DONE]\n\n"
"""The last frame of a stream."""

OPEN_FRAME = ": stream-open\n\n"
"""A comment that makes proxies pass on the headers at once."""

KEEP_ALIVE_FRAME = ": keep-alive\n\n"
"""A comment that keeps an idle connection open."""

SSE_HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "connection": "keep-alive",
    "x-accel-buffering": "no",
}
"""Headers of every stream of server-sent events; over HTTP/2 leave out `connection`."""

_OTHER_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def sse_frame(chunk: Json) -> str:
    """Return one frame that carries a chunk as JSON, lone surrogates replaced.

    Raises:
        InputError: The chunk is not JSON.
    """
    text = show_json(chunk, "chunk")
    if not text.isascii():
        # Clients that split lines by Unicode's rules would break a frame at these, which JSON
        # leaves as they are. They can only stand inside strings.
        text = text.translate(_OTHER_LINE_ENDS)
    return f"data: {text}\n\n"
