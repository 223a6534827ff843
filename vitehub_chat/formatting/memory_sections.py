"""Memory sections: messages as a quoted section of a note, which nothing they say can leave."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, Literal

from vitehub_chat.formatting.summary_prompts import text_of
from vitehub_chat.model.json_text import replace_surrogates
from vitehub_chat.model.messages import Message, format_time

Heading = Literal["Context compaction archive", "Turn"]

ID_DIGITS: Final = 32

_SPECIAL = re.compile(r"\A(\s*)(?=#|`{3}|~{3}|-{3}|=)")
_ESCAPED = r"\1\\"
_MARK = "<!-- vitehub-flush: {} -->"
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")


def flush_id_of(
    scope: str, session_id: str | None, from_seq: int, to_seq: int, messages: Sequence[Message]
) -> str:
    """Return the id of a section: the same messages of the same session have the same one."""
    content = hashlib.sha256()
    for message in messages:
        _feed(content, message.id or "", text_of(message))
    digest = hashlib.sha256()
    session = "-" if session_id is None else f"={session_id}"
    _feed(digest, scope, session, str(from_seq), str(to_seq), content.hexdigest())
    return digest.hexdigest()[:ID_DIGITS]


def mark_of(flush_id: str) -> str:
    """Return the line of a section that has its id; nothing else in a note can be such a line."""
    return _MARK.format(flush_id)


def heading_of(heading: Heading, now: datetime, from_seq: int, to_seq: int) -> str:
    """Return the line with which a section begins; `now` is in the time zone of the notes."""
    local = now.isoformat(sep=" ", timespec="seconds")
    return f"## {heading} {local}, messages {from_seq}-{to_seq}"


def section_of(
    heading: Heading,
    messages: Sequence[Message],
    *,
    flush_id: str,
    from_seq: int,
    to_seq: int,
    now: datetime,
) -> str:
    """Return a section of a note: heading, id, and every message quoted; it ends with a line end.

    Results of tools are cut. Behind the heading it is the same for the same messages.
    """
    lines = [heading_of(heading, now, from_seq, to_seq), mark_of(flush_id), ""]
    for message in messages:
        lines.extend(_quoted(message))
    return "\n".join(lines) + "\n"


def quote(text: str) -> Iterator[str]:
    """Yield the lines of a text as a quotation in which no heading, fence or comment can begin."""
    for line in replace_surrogates(text).splitlines() or [""]:
        shown = _CONTROLS.sub("", line).replace("<!--", "&lt;!--")
        yield f"> {_SPECIAL.sub(_ESCAPED, shown)}"


def _quoted(message: Message) -> Iterator[str]:
    when = "" if message.created_at is None else f" {format_time(message.created_at)}"
    yield f"**{message.role}**{when}"
    yield ""
    yield from quote(text_of(message))
    yield ""


def _feed(digest: hashlib._Hash, *texts: str) -> None:
    """Add texts, each with its length, so that no two lists of texts are alike."""
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
