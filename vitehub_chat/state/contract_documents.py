"""The part of the Agent State contract that is beside the rows: summaries, plans and values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from vitehub_chat.model.json_text import Json
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.model.rolling import Checkpoint, PendingFlush, Rolling, RollingWrite
from vitehub_chat.model.rows import Summary
from vitehub_chat.state.context import NO_CONTEXT, StateContext


class SummaryStore(Protocol):
    """Summaries beside the history."""

    async def save_manual(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        text: str,
        ctx: StateContext = NO_CONTEXT,
    ) -> Summary:
        """Save a manual summary; the last one counts."""

    async def get_manual(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Summary | None:
        """Return the last manual summary, or None."""

    async def get_rolling(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Rolling | None:
        """Return the rolling state of a session, that of a new one if it was never rolled.

        `key` is the conversation that has the rows of the session. None: there is no such session.

        Raises:
            StateError: It cannot be read (`corrupt`).
        """

    async def get_checkpoints(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Sequence[Checkpoint]:
        """Return the summaries that can be gone back to, ascending by what they cover."""

    async def commit_roll(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        since: Rolling,
        summary: str,
        anchor: int,
        model: str | None = None,
        checkpoints_kept: int = 64,
        system_seqs: Sequence[int] = (),
        ctx: StateContext = NO_CONTEXT,
    ) -> RollingWrite:
        """Replace the summary by one that covers everything before `anchor`.

        Only if the session, its generation and the version are those of `since`; else nothing is
        written and the answer says why. The version rises, the summary becomes a checkpoint too,
        and `pending`, `fail_count` and `last_error` are void. Of the checkpoints the newest
        `checkpoints_kept` stay, and of older ones every 8th. Rows are not touched. `system_seqs`
        are the system messages before the anchor, which are read all the same.

        Raises:
            InputError: The anchor does not rise, or the summary is blank; nothing was written.
        """

    async def set_pending(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        since: Rolling,
        pending: PendingFlush | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> RollingWrite:
        """Note the batch that is about to be flushed, or that none is; refused as `commit_roll`."""

    async def note_failure(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        since: Rolling,
        error: str,
        ctx: StateContext = NO_CONTEXT,
    ) -> RollingWrite:
        """Count a turn that failed, `error` a code and no text; refused as `commit_roll`."""

    async def set_correction(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        since: Rolling,
        correction: float,
        ctx: StateContext = NO_CONTEXT,
    ) -> RollingWrite:
        """Set by what estimates are multiplied from now on; refused as `commit_roll`."""


class PlanStore(Protocol):
    """What each turn gave to the model; `TurnStore.finish` writes it."""

    async def get(
        self,
        key: ConversationKey,
        /,
        *,
        turn_id: str | None = None,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> TurnPlan | None:
        """Return the plan of a turn, or that of the turn that ended last.

        With `session_id` only of that session. None: there is none, or it has expired: a plan is
        kept as long as a row that was recorded when its turn ended.

        Raises:
            StateError: It cannot be read (`corrupt`).
        """


class KeyValue(Protocol):
    """JSON values under keys, each with an expiry or none; for caches, cursors and short lists.

    A key is text of at most 512 characters without control characters, compared exactly; none is
    part of another one, and no character has a meaning. Equal keys of two scopes are two keys: pass
    the conversation, or the tenant and the agent alone, that a value belongs to; a key without a
    scope belongs to the whole store. Clearing a whole conversation deletes the values whose scope
    it is. No retention of transcripts applies to values.

    A value is gone at exactly the time of its writing plus `ttl`. Writing it again sets its expiry
    anew: without `ttl` it is permanent from then on.

    Every method raises:

    - `InputError`: the key is empty, too long or has a control character; a value is not JSON (the
      error names the key); `ttl` is not above 0. Nothing was written.
    - `StateError` (`corrupt`): the stored value cannot be read.
    """

    async def get(
        self, key: str, /, *, scope: ConversationKey | None = None, ctx: StateContext = NO_CONTEXT
    ) -> Json:
        """Return the value of a key, or None without one."""

    async def set(
        self,
        key: str,
        /,
        *,
        value: Json,
        ttl: timedelta | None = None,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> None:
        """Set a value, whatever was there."""

    async def set_if_absent(
        self,
        key: str,
        /,
        *,
        value: Json,
        ttl: timedelta | None = None,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> bool:
        """Set a value unless there is one, be it null; tell whether it was set.

        Of many who try at once one sets it.
        """

    async def compare_and_set(
        self,
        key: str,
        /,
        *,
        expected: Json,
        value: Json,
        ttl: timedelta | None = None,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> bool:
        """Set a value if there is one that is equal to `expected`; tell whether it was set.

        Equal is equal JSON: the order of names does not count, and `true`, `1` and `1.0` differ.
        """

    async def compare_and_delete(
        self,
        key: str,
        /,
        *,
        expected: Json,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> bool:
        """Delete a value if it is equal to `expected`; tell whether it was deleted."""

    async def delete(
        self, key: str, /, *, scope: ConversationKey | None = None, ctx: StateContext = NO_CONTEXT
    ) -> bool:
        """Delete a value; tell whether there was one."""

    async def append_to_list(
        self,
        key: str,
        /,
        *,
        items: Sequence[Json],
        max_length: int | None = None,
        ttl: timedelta | None = None,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> int:
        """Append items to a list and return how many it has then.

        A list is a value like any other; without one it begins empty. The newest `max_length`
        items stay. Every append rewrites the expiry of the whole list: one without `ttl` makes it
        permanent. Without items nothing changes.

        Raises:
            InputError: The value is no list, or `max_length` is below 1; nothing was written.
        """

    async def get_list(
        self, key: str, /, *, scope: ConversationKey | None = None, ctx: StateContext = NO_CONTEXT
    ) -> Sequence[Json]:
        """Return the items of a list, the oldest first; an empty one without a value.

        Raises:
            InputError: The value is no list.
        """

    async def pop_from_list(
        self, key: str, /, *, scope: ConversationKey | None = None, ctx: StateContext = NO_CONTEXT
    ) -> Json:
        """Remove the oldest item of a list and return it, or None without one.

        The expiry of the list stays. With its last item the list is gone.

        Raises:
            InputError: The value is no list.
        """
