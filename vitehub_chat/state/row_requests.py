"""Row requests: which stored rows are asked for, and which are to go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

import attrs

from vitehub_chat.model.rows import Row


@attrs.frozen(kw_only=True)
class AgeLimit:
    """Which rows are too old to be read, whether or not they were pruned already.

    A row is, if it was said before `since`, and so was everything that belongs to its tool calls
    among the rows that are read with it. What has no time was said when it was recorded.

    Attributes:
        since: The oldest time that is not too old.
        spares_system: Whether system messages never are.
    """

    since: datetime
    spares_system: bool = True


@attrs.frozen(kw_only=True)
class RangeRequest:
    """Which whole messages are asked for.

    Attributes:
        session_id: Narrows to one session, None is the whole conversation.
        around: The message id in the middle, or None.
        from_seq: The first number, or None: from the beginning.
        to_seq: The last number, or None: to the end. Without any of these the newest ones.
        limit: How many at most.
        not_older_than: Leaves out what is too old, or None.
    """

    session_id: str | None = None
    around: str | None = None
    from_seq: int | None = None
    to_seq: int | None = None
    limit: int = 20
    not_older_than: AgeLimit | None = None


@attrs.frozen(kw_only=True)
class TurnsRequest:
    """Which user messages are asked for, ascending from the first.

    Attributes:
        session_id: Narrows to one session, None is the whole conversation.
        limit: How many, at least 1.
        cursor: Where to go on, or None.
        not_older_than: Leaves out what is too old, or None.
    """

    session_id: str | None = None
    limit: int = 100
    cursor: str | None = None
    not_older_than: AgeLimit | None = None


@attrs.frozen(kw_only=True)
class TruncateRequest:
    """From which message on a conversation is cut off.

    Attributes:
        message_id: The message.
        session_id: Narrows to one session, None is the whole conversation.
        inclusive: Whether the message itself goes, too.
        expected_generation: The generation that the caller has seen, or None: any.
        idempotency_key: The same key within `dedupe_ttl` gets the same answer, or None.
        dedupe_ttl: How long the key is remembered.
    """

    message_id: str
    session_id: str | None = None
    inclusive: bool = True
    expected_generation: int | None = None
    idempotency_key: str | None = None
    dedupe_ttl: timedelta = timedelta(minutes=10)


RowChoice = Callable[[Sequence[Row]], Collection[int]]
"""Chooses, of the visible rows of a conversation in their order, the numbers of those that go.

It is pure: it may be called several times for one answer."""

SparingChoice = Callable[[Sequence[Row], Collection[int]], Collection[int]]
"""Chooses as well, and is told the numbers of the rows that no summary of their session covers."""


@attrs.frozen(kw_only=True)
class PruneRequest:
    """Which rows go.

    Attributes:
        choose: Chooses them; answers that are being written are not among those it sees.
        choose_sparing: Chooses in place of `choose`, told what is not condensed yet; or None.
        hides: Whether they are put aside, invisible for good, instead of deleted.
        session_id: Narrows to one session, None is the whole conversation.
        limit: How many rows go at most, the oldest first; None is no limit.
        said_before: Only what was said before this time is ever chosen: rows far behind the last
            such one need not be read. None: anything may be.
    """

    choose: RowChoice
    choose_sparing: SparingChoice | None = None
    hides: bool = False
    session_id: str | None = None
    limit: int | None = None
    said_before: datetime | None = None


@attrs.frozen(kw_only=True)
class Pruned:
    """What pruning did.

    Attributes:
        removed: The numbers of the rows that went, ascending.
        error: Why it could not be done; the turn is recorded all the same.
    """

    removed: tuple[int, ...] = ()
    error: Exception | None = None
