"""Conversation: the stored messages of one conversation, for application code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Unpack

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.exporting import export_lines
from vitehub_chat.conversation.formats import FormatKeywords, format_rows
from vitehub_chat.conversation.memory.clearing import Cleared, Clearing
from vitehub_chat.conversation.planning import newest_budget
from vitehub_chat.conversation.pruning import prune_rows
from vitehub_chat.conversation.retention import age_limit
from vitehub_chat.conversation.summaries import SUMMARY_KINDS, SummaryKind, find_summary
from vitehub_chat.errors import InputError, NotFoundError
from vitehub_chat.formatting.profiles import Profile
from vitehub_chat.model.ids import new_id
from vitehub_chat.model.keys import ConversationKey, check_id, check_place
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import has_visible_text, is_blank
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.model.policies import ChatPolicy, PrunePolicy, SessionPolicy
from vitehub_chat.model.rows import HistoryPage, Row, Summary, Truncated, TurnPage
from vitehub_chat.model.ui_messages import read_messages
from vitehub_chat.selection.pruning import PrunePlan
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import AgeLimit, TruncateRequest, TurnsRequest
from vitehub_chat.state.values import NewRow, PageRequest, SessionRequest

OpenState = AgentState | Callable[[], Awaitable[AgentState]]
MAX_PAGE = 100
MAX_TURNS = 500


class Conversation:
    """One conversation in an Agent State.

    Args:
        state: An opened state, or a function that opens it.
        key: Which conversation; from trusted code, never from a client.
        session_id: Narrows it to one session; None is the whole conversation.
        policy: Where sessions start and end; None is off.
    """

    def __init__(
        self,
        state: OpenState,
        key: ConversationKey,
        *,
        session_id: str | None = None,
        policy: ChatPolicy | None = None,
    ) -> None:
        check_place(key, session_id)
        self.key = key
        self.session_id = session_id
        self._policy = policy or ChatPolicy()
        self._state = state

    def __repr__(self) -> str:
        """Tell which one it is."""
        return f"{type(self).__name__}({self.key!r}, session_id={self.session_id!r})"

    async def append(
        self, messages: Sequence[Mapping[str, Any] | Message], *, author: str | None = None
    ) -> Sequence[Row]:
        """Store messages at the live edge and return their rows; all of them or none.

        A message whose id is stored already replaces that row and keeps its number; one without id
        gets a new one. An empty sequence does nothing. This runs no turn.

        Raises:
            InputError: One of them is no message or not JSON, or the author is no text.
        """
        if author is not None:
            check_user_key(author, "author")
        rows = [
            NewRow(
                message=message if message.id is not None else attrs.evolve(message, id=new_id()),
                author=author,
                thread_id=self.key.thread,
                is_shown=not is_blank(message),
            )
            for message in _read_list(messages)
        ]
        state = await self._open()
        return await state.transcripts.append(self._session_request(rows), rows=rows)

    async def history(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        direction: Literal["older", "newer"] = "older",
        around: str | None = None,
        include_superseded: bool = False,
    ) -> HistoryPage:
        """Return one page of rows, ascending.

        Without a cursor the newest ones; with one those before or after its position. `around` is
        a message id, which comes in the middle. A limit above 100 is 100. The newest page also has
        the `context_budget` of the turn that ended last. With
        `include_superseded` rows come, too, that were cut off and kept by the retention `forever`.

        Raises:
            InputError: The limit is no int or below 1, or `cursor` and `around` are both given.
            CursorError: The cursor is not one of this conversation.
            NotFoundError: There is no message `around`.
        """
        if cursor is not None and around is not None:
            raise InputError("give one of cursor and around", path="around")
        if direction not in {"older", "newer"}:
            raise InputError("is 'older' or 'newer'", path="direction")
        if around is not None:
            check_id(around, "around")
        request = PageRequest(
            session_id=self.session_id,
            limit=page_limit(limit, MAX_PAGE),
            cursor=cursor,
            direction=direction,
            around=around,
            include_superseded=include_superseded,
        )
        state = await self._open()
        request = attrs.evolve(request, not_older_than=self._age_limit(state))
        page = await state.transcripts.page(self.key, request=request)
        self._report(page.unreadable)
        if cursor is not None or around is not None or not page.items:
            return page
        budget = await newest_budget(state, self.key, self.session_id)
        return attrs.evolve(page, context_budget=budget)

    async def turns(self, *, limit: int = 100, cursor: str | None = None) -> TurnPage:
        """Return one light row per user message, ascending from the first.

        A limit above 500 is 500.

        Raises:
            InputError: The limit is no int or below 1.
            CursorError: The cursor is not one of this index.
        """
        request = TurnsRequest(
            session_id=self.session_id, limit=page_limit(limit, MAX_TURNS), cursor=cursor
        )
        state = await self._open()
        request = attrs.evolve(request, not_older_than=self._age_limit(state))
        page = await state.transcripts.turns(self.key, request=request)
        self._report(page.unreadable)
        return page

    async def replace_message(self, message_id: str, message: Mapping[str, Any] | Message) -> Row:
        """Change what a stored message says; its id, number, times and author stay.

        Raises:
            InputError: It is no message or not JSON, or has another id.
            NotFoundError: No message of that id is stored here.
            ChatBusyError: It is an answer that is being written (`turn_in_progress`).
        """
        check_id(message_id, "message_id")
        (given,) = _read_list([message])
        if given.id not in {None, message_id}:
            raise InputError("is another id than that of the message to replace", path="message.id")
        given = attrs.evolve(given, id=message_id)
        row = NewRow(message=given, is_shown=not is_blank(given))
        state = await self._open()
        return await state.transcripts.replace(self.key, row=row, session_id=self.session_id)

    async def delete_message(self, message_id: str) -> int:
        """Delete a message with its unit, and return how many messages that were.

        A unit is what a tool call and its results share. The generation stays.

        Raises:
            NotFoundError: No message of that id is stored here.
            ChatBusyError: Part of it is an answer that is being written (`turn_in_progress`).
        """
        check_id(message_id, "message_id")
        state = await self._open()
        return await state.transcripts.delete(
            self.key, message_id=message_id, session_id=self.session_id
        )

    async def truncate(
        self,
        from_message_id: str,
        *,
        inclusive: bool = True,
        expected_generation: int | None = None,
        idempotency_key: str | None = None,
    ) -> Truncated:
        """Cut the conversation off from a message on.

        A cut inside a unit takes all of it. With nothing to cut nothing changes. The same
        `idempotency_key` gets the same answer as long as repeats are recognised. With the retention
        `forever` the rows are kept out of sight.

        Raises:
            InputError: The id or the key cannot be one.
            NotFoundError: No message of that id is stored here.
            ChatBusyError: A turn waits or runs here (`turn_in_progress`); nothing was cut.
            StateConflictError: The generation is another one; nothing was cut.
        """
        check_id(from_message_id, "from_message_id")
        if idempotency_key is not None:
            check_id(idempotency_key, "idempotency_key")
        request = TruncateRequest(
            message_id=from_message_id,
            session_id=self.session_id,
            inclusive=inclusive,
            expected_generation=expected_generation,
            idempotency_key=idempotency_key,
            dedupe_ttl=self._policy.dedupe_ttl,
        )
        done = await (await self._open()).transcripts.truncate(self.key, request=request)
        events.history_truncated(
            deleted=done.deleted,
            generation=done.generation,
            summary=done.summary,
            key=self.key,
            session_id=self.session_id,
        )
        return done

    async def prune(self, policy: PrunePolicy | None = None, *, dry_run: bool = False) -> PrunePlan:
        """Remove the rows that the rules take, in one transaction, and return what went.

        Without `policy` by the rules of the agent, or else by the defaults. With `dry_run` nothing
        is removed.

        Raises:
            ConfigError: Rows would be deleted that the retention `forever` keeps.
        """
        return await prune_rows(
            await self._open(),
            self.key,
            session_id=self.session_id,
            policy=self._policy,
            rules=policy or self._policy.prune or PrunePolicy(),
            dry_run=dry_run,
        )

    async def clear(self, *, delete_session: bool = False, delete_notes: bool = False) -> Cleared:
        """Delete what was said, and return counts per store; zeros when repeated.

        The session entry stays unless `delete_session` is set. Numbers are never used again. Notes
        of the memory stay, and are listed, unless `delete_notes` is set.

        Raises:
            ChatBusyError: A turn runs here (`turn_in_progress`); nothing was deleted.
            ConfigError: Notes are to be deleted, and it is not known how; nothing was deleted.
        """
        clearing = Clearing(await self._open(), self.key, self.session_id, self._policy.memory)
        return await clearing.clear(delete_session=delete_session, delete_notes=delete_notes)

    async def save_summary(self, text: str) -> Summary:
        """Save a manual summary beside the history; the last one counts.

        Raises:
            InputError: The text is blank.
            NotFoundError: There is no such session.
        """
        if not text or not has_visible_text(text):
            raise InputError("needs visible text", path="text")
        summaries = (await self._open()).summaries
        saved = await summaries.save_manual(self.key, session_id=self.session_id, text=text)
        events.summary_saved(key=self.key, session_id=self.session_id)
        return saved

    async def get_summary(self, kind: SummaryKind = "manual") -> Summary | None:
        """Return the last manual summary, or the rolled one of the session; None without one.

        Without a session the manual one is that of the conversation; the rolled one is that of the
        session that was used last.

        Raises:
            InputError: The kind is another one.
        """
        if kind not in SUMMARY_KINDS:
            raise InputError("is 'manual' or 'rolling'", path="kind")
        return await find_summary(await self._open(), self.key, self.session_id, kind)

    async def plan(self, turn_id: str | None = None) -> TurnPlan | None:
        """Return what the model was given in a turn: ids, reasons and sizes, no text.

        Without `turn_id` that of the turn that ended last; None if none has ended here, or its plan
        has expired like its rows.

        Raises:
            NotFoundError: There is no plan of that turn here.
        """
        if turn_id is not None:
            check_id(turn_id, "turn_id")
        plans = (await self._open()).plans
        found = await plans.get(self.key, turn_id=turn_id, session_id=self.session_id)
        if found is None and turn_id is not None:
            raise NotFoundError("no plan of that turn in this conversation")
        return found

    async def format(
        self, profile: str | Profile, **options: Unpack[FormatKeywords]
    ) -> dict[str, Any]:
        """Return the conversation as the request fields that one provider accepts, as JSON.

        That is the newest messages that a model may see, as many as the window of the agent has or
        else all, behind the rolled summary of the session if there is one. What is stored stays.

        Args:
            profile: The name of a profile, such as `openai_chat`, or a `Profile`.
            options: Those of `format_history`; `current` is a message that is not stored yet.

        Raises:
            ConfigError: The profile or an option is unknown; for a profile all known are listed.
            InputError: Nobody but the system says anything, or `current` is no message or blank.
        """
        return await format_rows(
            await self._open(),
            self.key,
            profile,
            session_id=self.session_id,
            policy=self._policy,
            options=options,
        )

    async def export(self) -> AsyncIterator[str]:
        """Yield the conversation as lines of NDJSON: messages ascending, summaries, an end.

        The end has counts. Without a session the summaries are those of all sessions, each with its
        `session_id`. A bounded number of rows is in memory at a time.
        """
        state = await self._open()
        lines = export_lines(
            state,
            self.key,
            session_id=self.session_id,
            not_older_than=self._age_limit(state),
        )
        async for line in lines:
            yield line

    def _session_request(self, rows: Sequence[NewRow]) -> SessionRequest:
        policy = self._policy.sessions
        if self.session_id is not None:
            policy = SessionPolicy()
        times = (row.message.created_at for row in rows if row.message.created_at is not None)
        return SessionRequest(
            conversation=self.key,
            policy=policy,
            base=self.session_id,
            begins_with=rows[0].message.id if rows else None,
            begins_at=next(times, None),
        )

    def _age_limit(self, state: AgentState) -> AgeLimit | None:
        return age_limit(self._policy.prune, state.clock.now())

    def _report(self, unreadable: Sequence[int]) -> None:
        for seq in unreadable:
            events.row_quarantined(store="transcripts", seq=seq, key=self.key)

    async def _open(self) -> AgentState:
        return await open_given(self._state)


def _read_list(messages: object) -> tuple[Message, ...]:
    if not isinstance(messages, list | tuple):
        raise InputError("must be a list of messages", path="messages")
    return read_messages(messages)


async def open_given(state: OpenState) -> AgentState:
    """Return an opened state."""
    return await state() if callable(state) else state


def check_user_key(value: object, path: str) -> str:
    """Return the key of a user unchanged, or refuse it.

    Raises:
        InputError: It is no text, or none that can be an id.
    """
    if not isinstance(value, str) or not value:
        raise InputError("must be a text that is not empty", path=path)
    return check_id(value, path)


def page_limit(limit: object, most: int, name: str = "limit") -> int:
    """Return a page size, `most` for more than that; `name` is its name in an error.

    Raises:
        InputError: It is no int or below 1.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InputError("must be an integer >= 1", path=name)
    return min(limit, most)
