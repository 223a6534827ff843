"""Conversation: the stored messages of one conversation, for application code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.errors import InputError
from vitehub_chat.model.ids import new_id
from vitehub_chat.model.json_text import encode_json
from vitehub_chat.model.keys import ConversationKey, check_id
from vitehub_chat.model.messages import Message, format_time
from vitehub_chat.model.model_messages import has_visible_text, is_blank
from vitehub_chat.model.policies import ChatPolicy, SessionPolicy
from vitehub_chat.model.rows import HistoryPage, Row, Summary
from vitehub_chat.model.ui_messages import read_messages
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewRow, PageRequest, SessionRequest

OpenState = AgentState | Callable[[], Awaitable[AgentState]]

MAX_PAGE = 100


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
        for name, part in attrs.asdict(key).items():
            if part is not None:
                check_id(part, name)
        self.key = key
        self.session_id = session_id
        self._policy = policy or ChatPolicy()
        self._state = state

    async def append(
        self, messages: Sequence[Mapping[str, Any] | Message], *, author: str | None = None
    ) -> Sequence[Row]:
        """Store messages at the live edge and return their rows; all of them or none.

        A message whose id is stored already replaces that row and keeps its number; one without id
        gets a new one. An empty sequence does nothing. This runs no turn.

        Raises:
            InputError: One of them is no message or not JSON.
        """
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
    ) -> HistoryPage:
        """Return one page of rows, ascending.

        Without a cursor the newest ones; with one those before or after its position. `around` is
        a message id, which comes in the middle. A limit above 100 is 100.

        Raises:
            InputError: The limit is no int or below 1, or `cursor` and `around` are both given.
            CursorError: The cursor is not one of this conversation.
            NotFoundError: There is no message `around`.
        """
        if cursor is not None and around is not None:
            raise InputError("give one of cursor and around", path="around")
        if direction not in {"older", "newer"}:
            raise InputError("is 'older' or 'newer'", path="direction")
        request = PageRequest(
            session_id=self.session_id,
            limit=page_limit(limit, MAX_PAGE),
            cursor=cursor,
            direction=direction,
            around=around,
        )
        page = await (await self._open()).transcripts.page(self.key, request=request)
        self._report(page.unreadable)
        return page

    async def clear(self, *, delete_session: bool = False) -> Mapping[str, int]:
        """Delete what was said, and return counts per store; zeros when repeated.

        The session entry stays unless `delete_session` is set. Numbers are never used again.

        Raises:
            ChatBusyError: A turn runs here (`turn_in_progress`); nothing was deleted.
        """
        return await (await self._open()).sessions.clear(
            self.key, session_id=self.session_id, delete_session=delete_session
        )

    async def save_summary(self, text: str) -> Summary:
        """Save a manual summary beside the history; the last one counts.

        Raises:
            InputError: The text is blank.
            NotFoundError: There is no such session.
        """
        if not has_visible_text(text):
            raise InputError("needs visible text", path="text")
        return await (await self._open()).summaries.save_manual(
            self.key, session_id=self.session_id, text=text
        )

    async def get_summary(self) -> Summary | None:
        """Return the last manual summary, or None."""
        return await (await self._open()).summaries.get_manual(self.key, session_id=self.session_id)

    async def export(self) -> AsyncIterator[str]:
        """Yield the conversation as lines of NDJSON: messages ascending, summary, end with counts.

        A bounded number of rows is in memory at a time.
        """
        state = await self._open()
        where = {**attrs.asdict(self.key), "session_id": self.session_id}
        yield _line({"type": "session", **where})
        count = unreadable = 0
        async for batch in state.transcripts.export(self.key, session_id=self.session_id):
            self._report(batch.unreadable)
            unreadable += len(batch.unreadable)
            count += len(batch.rows)
            for row in batch.rows:
                yield _line({"type": "message", **row_to_json(row)})
        summary = await self.get_summary()
        if summary is not None:
            yield _line({"type": "summary", "kind": "manual", **summary_to_json(summary)})
        yield _line(
            {
                "type": "end",
                "messages": count,
                "summaries": int(summary is not None),
                "unreadable": unreadable,
            }
        )

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


def page_limit(limit: object, most: int) -> int:
    """Return a page size, `most` for more than that.

    Raises:
        InputError: It is no int or below 1.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InputError("must be an integer >= 1", path="limit")
    return min(limit, most)


def row_to_json(row: Row) -> dict[str, Any]:
    """Return a row as JSON, its message as a UI message."""
    fields: dict[str, Any] = {
        "message": row.message.to_json(),
        "seq": row.seq,
        "status": row.status,
        "session_id": row.session_id,
        "turn_no": row.turn_no,
        "created_at": format_time(row.message.created_at or row.recorded_at),
    }
    if row.cursor:
        fields["cursor"] = row.cursor
    return fields


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """Return a summary as JSON."""
    return {
        "text": summary.text,
        "created_at": format_time(summary.created_at),
        "through_seq": summary.through_seq,
    }


def _line(fields: Mapping[str, Any]) -> str:
    return encode_json(fields, "export") + "\n"
