"""Rolling: the state of the summary that replaces the oldest messages of a session."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import attrs


@attrs.frozen(kw_only=True)
class Checkpoint:
    """A summary as it once was, to go back to when what came later is cut off."""

    through_seq: int
    summary: str
    version: int
    created_at: datetime
    model: str | None = None


@attrs.frozen
class PendingFlush:
    """A batch of rows that is on its way into the memory, so that it gets there once."""

    flush_id: str
    from_seq: int
    to_seq: int


@attrs.frozen(kw_only=True)
class Rolling:
    """The rolling state of one session.

    Attributes:
        session_key: The number of the session in the store.
        generation: The session's; rises with every truncate and clear.
        version: Rises with every change of summary or anchor.
        summary: What was said before the anchor, condensed; empty at first.
        anchor: The first number that is kept verbatim; 1 at first.
        system_seqs: The system messages before the anchor, which are sent all the same.
        model: Which model wrote the summary, or None.
        created_at: When the summary was written, or None without one.
        pending: The batch that is being flushed, or None.
        fail_count: How many turns in a row could not condense.
        last_error: What went wrong last, as a code, or None.
        correction: By what estimates are multiplied.
    """

    session_key: int
    generation: int
    version: int = 0
    summary: str = ""
    anchor: int = 1
    system_seqs: tuple[int, ...] = ()
    model: str | None = None
    created_at: datetime | None = None
    pending: PendingFlush | None = None
    fail_count: int = 0
    last_error: str | None = None
    correction: float = 1.0

    @property
    def through_seq(self) -> int | None:
        """The last number that the summary covers, or None without a summary."""
        return self.anchor - 1 if self.summary else None


@attrs.frozen
class RollingWrite:
    """What became of a change of the rolling state.

    Attributes:
        refused: Why nothing was written: `session_changed`: the session is gone, or was truncated
            or cleared meanwhile; `conflict`: somebody else changed the summary. None: written.
        rolling: The state as it is now, or None if the session is gone.
    """

    refused: Literal["session_changed", "conflict"] | None
    rolling: Rolling | None
