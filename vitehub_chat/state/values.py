"""Values that go into Agent State and come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

import attrs

from vitehub_chat.model.json_text import Json, JsonObject
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.model.rolling import Rolling
from vitehub_chat.model.rows import Row, RowStatus, Truncated
from vitehub_chat.state.row_requests import AgeLimit, Pruned


@attrs.frozen(kw_only=True)
class NewEntry:
    """A message that asks to be run.

    Attributes:
        ticket_id: The name of this acceptance, new for every call.
        lock_key: What it must hold to run.
        conversation: Where it belongs.
        wanted_id: The session it asks for, or None; with the conversation it names its group.
        claim_id: The id under which a repeat is recognised, or None.
        payload: The input of the run, as JSON text.
        starts_session: Whether it begins a session, and so a group.
        owner: The process that waits for it, or None if nobody does.
        replaces: The id of the stored message from which on it takes the place of all, or None.
            It runs alone, an ended turn of its claim is no repeat, and it is refused while a turn
            of that session waits or runs.
        runs_alone: Whether no group takes it in, as its answer is not a new one.
    """

    ticket_id: str
    lock_key: str
    conversation: ConversationKey
    wanted_id: str | None
    claim_id: str | None
    payload: str
    starts_session: bool = False
    owner: str | None = None
    replaces: str | None = None
    runs_alone: bool = False


@attrs.frozen(kw_only=True)
class Entry:
    """An accepted message as its run gets it."""

    ticket_id: str
    payload: str
    claim_id: str | None = None


@attrs.frozen(kw_only=True)
class Grant:
    """The right to run a group under a lock.

    Attributes:
        ticket_id: The entry that is answered, the newest of the group; it names the run.
        owner: The process that has to run it.
        lock_key: The lock that is held.
        token: The fencing token, higher than every earlier one of this key.
        until: When the lease is over.
        entries: The whole group in order of arrival, the answered one last.
    """

    ticket_id: str
    owner: str
    lock_key: str
    token: int
    until: datetime
    entries: tuple[Entry, ...]


@attrs.frozen(kw_only=True)
class Admission:
    """What became of a message that asked to be run.

    Attributes:
        verdict: `accepted`: it waits or runs. `repeat`: `ticket_id` names the first acceptance.
            `dropped`, `busy`: refused by the policy, nothing was written.
        ticket_id: The ticket to follow.
        reason: Why it was refused: `busy` or `queue_full`; else None.
        grant: A run that the caller has to start, of this entry or of one before it; else None.
        pushed_out: Tickets that lost their place to this entry.
    """

    verdict: Literal["accepted", "repeat", "dropped", "busy"]
    ticket_id: str
    reason: str | None = None
    grant: Grant | None = None
    pushed_out: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class TurnEnd:
    """How a run ended, as it is remembered for repeats.

    Attributes:
        status: `complete`, `interrupted` or `error`; `dropped` for an entry that never ran.
        finish_reason: Why the driver stopped.
        session_id: The session of the run.
        run: The run information of the answered message, as JSON.
        reason: Why it was dropped: `queue_full`, `expired`, `unreadable`; else None.
        message: The answer, or None. A store that keeps rows returns the stored one.
    """

    status: Literal["complete", "interrupted", "error", "dropped"]
    finish_reason: str | None = None
    session_id: str | None = None
    run: JsonObject | None = None
    reason: str | None = None
    message: Message | None = None


@attrs.frozen(kw_only=True)
class Outcome:
    """How far an accepted entry is.

    Attributes:
        state: `waiting`; `running`: granted, see `grant`; `ended`: see `end`; `lost`: its run
            died after it was recorded; `unknown`: never accepted, withdrawn or forgotten.
        grant: The run that answers it while it runs.
        end: How it ended.
        run_ticket_id: The entry that its run answers; another one if it was coalesced.
        is_stalled: It waits and nobody holds its lock: `TurnStore.take` goes on.
        settles_in: It waits and nobody holds its lock, but its line still waits for more messages;
            so long, if none comes. None else.
    """

    state: Literal["waiting", "running", "ended", "lost", "unknown"]
    grant: Grant | None = None
    end: TurnEnd | None = None
    run_ticket_id: str | None = None
    is_stalled: bool = False
    settles_in: timedelta | None = None


@attrs.frozen(kw_only=True)
class Finished:
    """What finishing a run did: the answer's row if one was given, the next run, what went."""

    row: Row | None
    next: Grant | None = None
    pruned: Pruned | None = None


@attrs.frozen(kw_only=True)
class Withdrawal:
    """Whether an entry was taken back, and the run that its lock passed to."""

    withdrawn: bool
    next: Grant | None = None


@attrs.frozen(kw_only=True)
class NewRow:
    """A message to store.

    Attributes:
        message: The message, with an id.
        status: Its status.
        author: The user key of its author.
        thread_id: The thread it arrived in.
        is_shown: Whether a model may see it.
        usage: What the model reported.
        native: The payload of the driver that made it.
    """

    message: Message
    status: RowStatus = "complete"
    author: str | None = None
    thread_id: str | None = None
    is_shown: bool = True
    usage: JsonObject | None = None
    native: Mapping[str, Json] | None = None


@attrs.frozen(kw_only=True)
class SessionRequest:
    """Which session a turn asks for.

    Attributes:
        conversation: Where the message arrived.
        policy: Where sessions start and end; None is off: rows form one unnamed session.
        base: The wanted id, or None.
        starts_new: Whether the turn begins a session whatever the times say.
        begins_with: The id of the message that a new session would begin with; None takes its
            sequence number.
        begins_at: The time of the first dated message from there on; None is now.
        chat_id: The client's name of the conversation, stored with a new session.
        user_key: Its owner, stored with a new session.
    """

    conversation: ConversationKey
    policy: SessionPolicy | None = None
    base: str | None = None
    starts_new: bool = False
    begins_with: str | None = None
    begins_at: datetime | None = None
    chat_id: str | None = None
    user_key: str | None = None


@attrs.frozen(kw_only=True)
class SessionRef:
    """The session of a turn.

    Attributes:
        session_id: Its id, or None for the unnamed one.
        key: The number under which the store keeps it; 0 if it does not exist yet.
        conversation: The conversation whose rows it has, encoded.
        first_message_id: The id of the message it began with, or None.
        started_at: The time of that message.
        is_new: Whether this turn started it.
        began_by_new: Whether it was begun by `new`.
        generation: Rises with every truncate and clear.
    """

    session_id: str | None
    key: int
    conversation: str
    first_message_id: str | None
    started_at: datetime
    is_new: bool = False
    began_by_new: bool = False
    generation: int = 0


@attrs.frozen(kw_only=True)
class WindowRequest:
    """Which stored rows a call needs.

    Attributes:
        limit: How many shown rows at most, at least 0.
        besides: Ids of the messages that the call brings itself; their rows are left out.
        whole_conversation: All rows of the conversation, not only those of the session.
        not_older_than: Leaves out what is too old, or None.
        from_anchor: Leaves out what the rolling summary of the session covers, but for the system
            messages, which take nobody's place; the answer then has the rolling state.
    """

    limit: int
    besides: frozenset[str] = frozenset()
    whole_conversation: bool = False
    not_older_than: AgeLimit | None = None
    from_anchor: bool = False


@attrs.frozen(kw_only=True)
class WindowRows:
    """The rows of a window, ascending.

    Attributes:
        shown: The rows that a model may see.
        not_shown: The rows between them that it may not.
        unreadable: The numbers of rows among them that cannot be read; they stay stored.
        rolling: The rolling state of the session where it was asked for; None if there is no
            session, or it cannot be read.
    """

    shown: tuple[Row, ...] = ()
    not_shown: tuple[Row, ...] = ()
    unreadable: tuple[int, ...] = ()
    rolling: Rolling | None = None


@attrs.frozen(kw_only=True)
class RowBatch:
    """Some rows, ascending, and the numbers of those among them that cannot be read."""

    rows: tuple[Row, ...] = ()
    unreadable: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class Recorded:
    """What recording did: the rows as given, the session, and the rows of the window.

    Attributes:
        truncated: What was cut off before, or None.
    """

    rows: tuple[Row, ...] = ()
    session: SessionRef | None = None
    window: WindowRows = WindowRows()
    truncated: Truncated | None = None


@attrs.frozen(kw_only=True)
class PageRequest:
    """Which page of a conversation is asked for.

    Attributes:
        session_id: Narrows to one session, None is the whole conversation.
        limit: How many rows, 1 to 100.
        cursor: A position, or None for the live edge.
        direction: Which way from the cursor.
        around: The message id in the middle, or None.
        include_superseded: Whether rows come that were cut off and kept by the retention
            `forever`.
        not_older_than: Leaves out what is too old, or None.
    """

    session_id: str | None = None
    limit: int = 50
    cursor: str | None = None
    direction: Literal["older", "newer"] = "older"
    around: str | None = None
    include_superseded: bool = False
    not_older_than: AgeLimit | None = None
