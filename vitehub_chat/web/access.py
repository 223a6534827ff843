"""Access: who calls, and which conversation the call is about."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import attrs
from starlette.requests import Request

from vitehub_chat.agent.agent import Agent
from vitehub_chat.conversation.conversation import Conversation, check_user_key
from vitehub_chat.errors import ConfigError, InputError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import SessionInfo
from vitehub_chat.web.principals import Authenticate, Principal, ResolveSession, SessionRef
from vitehub_chat.web.problems import refuse
from vitehub_chat.web.reading import check_chat_id

UNKNOWN = "There is no such conversation."


@attrs.frozen(kw_only=True)
class Place:
    """The conversation of a request.

    Attributes:
        chat_id: The client's name of it.
        key: The conversation.
        session_id: One session of it, or None for the whole.
        is_narrowed: Whether the client chose the session.
    """

    chat_id: str
    key: ConversationKey
    session_id: str | None
    is_narrowed: bool = False


@attrs.frozen(kw_only=True)
class Found:
    """A conversation that is stored.

    Attributes:
        info: Its session, the newest one of the whole conversation.
        conversation: Its messages.
    """

    info: SessionInfo
    conversation: Conversation


class Access:
    """Asks the application who calls and what they may see.

    Args:
        agent: The mounted agent.
        authenticate: Says who calls.
        resolve_session: Says which conversation a client's name means.
    """

    def __init__(
        self, agent: Agent, authenticate: Authenticate, resolve_session: ResolveSession
    ) -> None:
        self._agent = agent
        self._authenticate = authenticate
        self._resolve = resolve_session

    async def principal(self, request: Request) -> Principal:
        """Return who calls.

        Raises:
            Refused: Nobody is known (401), or they may not (403).
            ConfigError: The application answered with something else.
        """
        principal = await _ask("authenticate", self._authenticate, request)
        if principal is None:
            raise refuse(401, "unauthenticated", "Sign in first.")
        if not isinstance(principal, Principal):
            raise _wrong("authenticate", "a Principal or None", principal)
        try:
            check_user_key(principal.user_id, "user_id")
        except InputError as error:
            raise ConfigError("gave a user id that cannot be one", path="authenticate") from error
        return principal

    async def resolve(
        self, request: Request, principal: Principal, chat_id: str, path: str = "id"
    ) -> Place:
        """Return the conversation that a client's name means; whether it is stored is not asked.

        Raises:
            InputError: It cannot be a name.
            NotFoundError: It means none for this caller.
            Refused: They may not (403).
        """
        check_chat_id(chat_id, path)
        ref = await _ask("resolve_session", self._resolve, request, principal, chat_id)
        if ref is None:
            raise NotFoundError(UNKNOWN)
        if not isinstance(ref, SessionRef) or not isinstance(ref.key, ConversationKey):
            raise _wrong("resolve_session", "a SessionRef or None", ref)
        key, own = ref.key, self._agent.name
        if key.agent not in {None, own}:
            raise ConfigError("named a conversation of another agent", path="resolve_session")
        key = attrs.evolve(key, agent=own)
        return Place(chat_id=chat_id, key=key, session_id=ref.session_id)

    async def find(
        self, request: Request, principal: Principal, chat_id: str | None, session_id: str | None
    ) -> Found:
        """Return the stored conversation of a read.

        Raises:
            InputError: Neither is given, or it cannot be a name.
            NotFoundError: There is none, or it is not the caller's.
            StateError: The state failed.
        """
        place = await self.locate(request, principal, chat_id, session_id)
        return await self.open(principal, place)

    async def open(self, principal: Principal, place: Place) -> Found:
        """Return the stored conversation of a place.

        Raises:
            NotFoundError: There is none, or it is not the caller's.
            StateError: The state failed.
        """
        info = await self.look_up(principal, place)
        conversation = self._agent.conversation(info.conversation, session_id=place.session_id)
        return Found(info=info, conversation=conversation)

    async def locate(
        self, request: Request, principal: Principal, chat_id: str | None, session_id: str | None
    ) -> Place:
        """Return the place that a name, narrowed to a session, means.

        Raises:
            InputError: Neither is given, or it cannot be a name.
            NotFoundError: It means none for this caller, or another session.
        """
        if chat_id is None and session_id is None:
            raise InputError("is needed", path="id")
        if chat_id is None:
            return await self.resolve(request, principal, session_id or "", "session_id")
        place = await self.resolve(request, principal, chat_id)
        if session_id is None:
            return place
        check_chat_id(session_id, "session_id")
        if place.session_id not in {None, session_id}:
            raise NotFoundError(UNKNOWN)
        return attrs.evolve(place, session_id=session_id, is_narrowed=place.session_id is None)

    async def look_up(self, principal: Principal, place: Place) -> SessionInfo:
        """Return the stored session of a place, the newest one of a whole conversation.

        Raises:
            NotFoundError: Nothing is stored there, or the session is somebody else's.
        """
        sessions = (await self._agent.open_state()).sessions
        if place.session_id is None:
            page = await sessions.list(
                place.key.tenant, agent=place.key.agent, conversation=place.key, limit=1
            )
            if not page.items:
                raise NotFoundError(UNKNOWN)
            return page.items[0]
        try:
            info = await sessions.get(place.key, session_id=place.session_id)
        except NotFoundError:
            raise NotFoundError(UNKNOWN) from None
        # Named sessions live in the whole channel: a client may only name one of its own.
        is_foreign = place.is_narrowed and info.conversation != place.key
        if is_foreign and info.user_key != principal.user_id:
            raise NotFoundError(UNKNOWN)
        return info


async def _ask(path: str, function: Callable[..., Any], *arguments: object) -> Any:
    try:
        answer = function(*arguments)
        return await answer if inspect.isawaitable(answer) else answer
    except PermissionError:
        raise refuse(403, "forbidden", "This is not allowed.") from None
    except (InputError, NotFoundError) as error:
        # As it is, it would blame the client.
        raise ConfigError(f"raised {type(error).__name__}", path=path) from error


def _wrong(path: str, allowed: str, value: object) -> ConfigError:
    return ConfigError(f"has to return {allowed}, not {type(value).__name__}", path=path)
