"""Conversations: the sessions of one tenant and agent, of one owner or for the operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import datetime

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.conversation import (
    Conversation,
    OpenState,
    check_user_key,
    open_given,
    page_limit,
)
from vitehub_chat.conversation.memory.clearing import Cleared, Clearing
from vitehub_chat.conversation.memory.erasing import PersonNotes
from vitehub_chat.conversation.retention import age_limit
from vitehub_chat.conversation.searching import MAX_HITS, SearchScope, check_request, search
from vitehub_chat.conversation.summaries import describe_session
from vitehub_chat.errors import InputError, NotFoundError
from vitehub_chat.model.hits import SearchPage
from vitehub_chat.model.json_text import show_json
from vitehub_chat.model.keys import ConversationKey, check_id, check_place
from vitehub_chat.model.memory_policy import MemoryPolicy
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.rows import MessageRange, SessionDetails, SessionInfo, SessionPage
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.contract_search import SearchRequest
from vitehub_chat.state.row_requests import AgeLimit, RangeRequest
from vitehub_chat.state.steps.inventory import STORES

MAX_SESSIONS = 100
MAX_MESSAGES = 100
MAX_TITLE = 512


class Conversations:
    """Past conversations.

    Args:
        state: An opened state, or a function that opens it.
        tenant: Exactly this tenant; None is the tenant without name.
        agent: Only those of this agent.
        user_key: Only those of this owner. Without it every owner's: the operator's view, which
            no route of a client may get.
        policy: The rules of the agent, for what is read of its conversations.

    Raises:
        InputError: The tenant, the agent or the owner is no text that can be an id.
    """

    def __init__(
        self,
        state: OpenState,
        *,
        tenant: str | None,
        agent: str | None,
        user_key: str | None = None,
        policy: ChatPolicy | None = None,
    ) -> None:
        for name, given in (("tenant", tenant), ("agent", agent)):
            if given is not None:
                check_id(given, name)
        if user_key is not None:
            check_user_key(user_key, "user_key")
        self._state = state
        self._tenant = tenant
        self._agent = agent
        self._user_key = user_key
        self._policy = policy

    async def sessions(
        self,
        *,
        limit: int = 20,
        cursor: str | None = None,
        updated_since: datetime | None = None,
    ) -> SessionPage:
        """Return sessions, the newest activity first; a limit above 100 is 100.

        One that moves up while pages are read may be missed or come twice; merge by id.

        Raises:
            InputError: The limit is no int or below 1.
            CursorError: The cursor is not one of this list.
        """
        return await (await open_given(self._state)).sessions.list(
            self._tenant,
            agent=self._agent,
            user_key=self._user_key,
            limit=page_limit(limit, MAX_SESSIONS),
            cursor=cursor,
            updated_since=updated_since,
        )

    async def session(self, key: ConversationKey, session_id: str | None) -> SessionDetails:
        """Return one session with its summaries and its budget.

        Those of the unnamed session are the manual summary of the conversation, and the budget of
        the turn that ended last in it.

        Raises:
            NotFoundError: There is none of that id, or it is somebody else's.
        """
        state = await open_given(self._state)
        info = await self._own(state, key, session_id)
        return await describe_session(state, info, session_id=session_id)

    async def get(
        self,
        key: ConversationKey,
        session_id: str | None,
        *,
        around: str | None = None,
        from_seq: int | None = None,
        to_seq: int | None = None,
        max_messages: int = 20,
    ) -> MessageRange:
        """Return whole messages of a session, ascending: around one, or a range of numbers.

        Without either the newest ones. At most `max_messages`, and never more than 100; what was
        left out because of that is told by `truncated`.

        Raises:
            InputError: A number is wrong, or `around` comes beside a range.
            NotFoundError: There is no such session or message, or it is somebody else's.
        """
        if around is not None and (from_seq is not None or to_seq is not None):
            raise InputError("give one of around and a range", path="around")
        if around is not None:
            check_id(around, "around")
        limit = page_limit(max_messages, MAX_MESSAGES, "max_messages")
        state = await open_given(self._state)
        info = await self._own(state, key, session_id)
        request = RangeRequest(
            session_id=info.session_id,
            around=around,
            from_seq=_number(from_seq, "from_seq"),
            to_seq=_number(to_seq, "to_seq"),
            limit=limit,
            not_older_than=self._age_limit(state),
        )
        found = await state.transcripts.range(info.conversation, request=request)
        for seq in found.unreadable:
            events.row_quarantined(store="transcripts", seq=seq, key=info.conversation)
        return found

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        before: datetime | None = None,
        after: datetime | None = None,
        role: str | None = None,
        session_id: str | None = None,
        conversation: ConversationKey | None = None,
    ) -> SearchPage:
        """Return messages in whose text all words of a query occur; a limit above 50 is 50.

        A word is found in any case, wherever its characters are, in the middle of another one,
        too. No character is syntax, and a blank query finds nothing. Of the sessions used last, the
        newest messages come first. Without a `SearchIndex` only one session can be searched, the
        one of this id that was used last.

        Args:
            query: Words.
            limit: How many messages at most.
            before: Only those said before this time.
            after: Only those said at this time or later.
            role: Only those of this role, any text that messages have as theirs.
            session_id: Only those of sessions of this id.
            conversation: Only those of this conversation.

        Raises:
            InputError: The query is no text, a time is none, the limit is no int or below 1, or the
                role or an id is no text that can be one.
            ConfigError: The state has no search, and no session is named.
        """
        request = check_request(
            SearchRequest(
                query=query,
                limit=page_limit(limit, MAX_HITS),
                before=before,
                after=after,
                role=role,
                session_id=session_id,
                conversation=conversation,
            )
        )
        state = await open_given(self._state)
        scope = SearchScope(tenant=self._tenant, agent=self._agent, user_key=self._user_key)
        request = attrs.evolve(request, not_older_than=self._age_limit(state))
        found = await search(state, scope, request)
        for key, seq in found.unreadable:
            events.row_quarantined(store="transcripts", seq=seq, key=key)
        return found

    async def rename(
        self, key: ConversationKey, session_id: str | None, title: str | None
    ) -> SessionInfo:
        """Set the title of a session, None for none.

        Raises:
            InputError: The title is no text, or too long.
            NotFoundError: There is no such session, or it is somebody else's.
        """
        _check_title(title)
        state = await open_given(self._state)
        info = await self._own(state, key, session_id)
        return await state.sessions.rename(
            info.conversation, session_id=info.session_id, title=title
        )

    async def delete(
        self, key: ConversationKey, session_id: str | None, *, delete_notes: bool = False
    ) -> Cleared:
        """Erase a session with everything in it, and return counts per store; repeated: zeros.

        Notes of the memory that quote it are listed, and deleted with `delete_notes`.

        Raises:
            ChatBusyError: A turn runs in it (`turn_in_progress`); nothing was deleted.
            ConfigError: Notes are to be deleted, and it is not known how; nothing was deleted.
            NotFoundError: It is somebody else's.
        """
        self._check_home(key, session_id)
        state = await open_given(self._state)
        try:
            info = await state.sessions.get(key, session_id=session_id)
        except NotFoundError:
            if delete_notes:
                await Clearing(state, key, session_id, self._memory).go_on()
            return Cleared(dict.fromkeys(STORES, 0))
        self._check_own(info)
        return await Conversation(
            state, info.conversation, session_id=info.session_id, policy=self._policy
        ).clear(delete_session=True, delete_notes=delete_notes)

    async def erase_person(self, user_key: str | None = None) -> Mapping[str, int]:
        """Erase what a person said and owns, of every agent of the tenant; return a receipt.

        The person is the owner of these conversations; the operator names one. Repeated: zeros.
        Notes of the memory that quote the sessions of the person go, too.

        Raises:
            InputError: No person is named, or another one than the owner.
            ChatBusyError: Turns of the person wait or run; everything else is erased.
        """
        person = self._person(user_key)
        state = await open_given(self._state)
        notes = PersonNotes(
            state=state,
            tenant=self._tenant,
            user_key=person,
            policy=self._memory,
            agent=self._agent,
        )
        await notes.remove()
        return await state.admin.erase_person(self._tenant, person)

    async def export_person(self, user_key: str | None = None) -> AsyncIterator[str]:
        """Yield everything that `erase_person` would erase, as lines of NDJSON.

        Raises:
            InputError: No person is named, or another one than the owner.
        """
        person = self._person(user_key)
        counts: Counter[str] = Counter()
        state = await open_given(self._state)
        async for record in state.admin.export_person(self._tenant, person):
            counts[record.kind] += 1
            yield show_json(record.to_json(), "export") + "\n"
        yield show_json({"type": "end", "counts": dict(sorted(counts.items()))}, "export") + "\n"

    async def _own(
        self, state: AgentState, key: ConversationKey, session_id: str | None
    ) -> SessionInfo:
        """Return a session if it belongs here; another one is not found, like an unknown one."""
        self._check_home(key, session_id)
        info = await state.sessions.get(key, session_id=session_id)
        self._check_own(info)
        return info

    def _check_home(self, key: ConversationKey, session_id: str | None) -> None:
        check_place(key, session_id)
        if (key.tenant, key.agent) != (self._tenant, self._agent or key.agent):
            raise _unknown()

    def _check_own(self, info: SessionInfo) -> None:
        if self._user_key not in {None, info.user_key}:
            raise _unknown()

    def _person(self, user_key: str | None) -> str:
        if user_key is None and self._user_key is None:
            raise InputError(
                "is needed: the person is named by nobody",
                path="user_key",
                hint="give it here, or ask the conversations of a person for it",
            )
        person = check_user_key(self._user_key if user_key is None else user_key, "user_key")
        if self._user_key not in {None, person}:
            raise InputError("is another person than the owner", path="user_key")
        return person

    @property
    def _memory(self) -> MemoryPolicy | None:
        return None if self._policy is None else self._policy.memory

    def _age_limit(self, state: AgentState) -> AgeLimit | None:
        policy = None if self._policy is None else self._policy.prune
        return age_limit(policy, state.clock.now())


def _unknown() -> NotFoundError:
    return NotFoundError("no session of that id in this conversation")


def _check_title(value: object) -> None:
    if value is not None and (not isinstance(value, str) or len(value) > MAX_TITLE):
        raise InputError(f"must be text of at most {MAX_TITLE} characters", path="title")


def _number(value: object, path: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InputError("must be an integer >= 0", path=path)
    return value
