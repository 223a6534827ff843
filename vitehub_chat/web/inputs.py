"""Inputs: from what a client sent to the input of `chat.message`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from vitehub_chat.agent.agent import Agent
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.web.access import Place
from vitehub_chat.web.principals import Principal
from vitehub_chat.web.sanitising import sanitise
from vitehub_chat.web.settings import TRUSTABLE


@attrs.frozen(kw_only=True)
class Sent:
    """What a client sent.

    Attributes:
        messages: Its messages, as they came.
        trusted: The trusted fields of the body.
        context: Data for the driver.
        replace: What the turn takes the place of, or None.
    """

    messages: Sequence[object]
    trusted: Mapping[str, Any] = attrs.field(factory=dict)
    context: Mapping[str, Any] | None = None
    replace: Mapping[str, str] | None = None

    @property
    def goes_on(self) -> bool:
        """Whether an answer goes on that the client has already."""
        return self.replace is not None and self.replace["kind"] == "continue"


def take_trusted(body: Mapping[str, Any], trusted: frozenset[str]) -> Mapping[str, Any]:
    """Return the trusted fields of a body by their snake_case names.

    Raises:
        InputError: A field comes that is not trusted (`untrusted_field`), or in both spellings.
    """
    found: dict[str, Any] = {}
    for name, field in TRUSTABLE.items():
        if name not in body:
            continue
        if field not in trusted:
            raise InputError(
                "is not taken from clients",
                path=name,
                code="untrusted_field",
                hint="the application may allow it with `trusted_fields`",
            )
        if field in found:
            raise InputError("comes in two spellings", path=field, hint="use one of them")
        found[field] = body[name]
    return found


class InputBuilder:
    """Builds the input of turns.

    Args:
        agent: The agent.
        history: `server`, `client`, or None for `server` exactly if the agent has a state.
    """

    def __init__(self, agent: Agent, history: str | None) -> None:
        self._agent = agent
        self._history = history

    async def build(self, sent: Sent, place: Place, principal: Principal) -> dict[str, Any]:
        """Return the input of a turn: the client's message, and all else from trusted code.

        Raises:
            InputError: The messages are wrong.
            ConfigError: The history is to be the server's and there is no state.
            StateError: The state failed.
        """
        state = await self._agent.runtime().open_state()
        clock: Clock = SystemClock() if state is None else state.clock
        sessions = self._agent.policy.sessions
        messages = sanitise(
            sent.messages,
            metadata_key=None if sessions is None else sessions.metadata_key,
            now=clock.now(),
            ends_with="assistant" if sent.goes_on else "user",
        )
        given = self._facts(sent, place, principal)
        self._choose_history(given, messages, has_state=state is not None)
        return given

    def _choose_history(
        self, given: dict[str, Any], messages: Sequence[Message], *, has_state: bool
    ) -> None:
        history = self._history or ("server" if has_state else "client")
        if history == "server" and not has_state:
            raise ConfigError("'server' needs a state", path="history")
        given["messages"] = list(messages if history == "client" else messages[-1:])
        source = "thread" if history == "client" else "transcript"
        window = given.get("trigger_history")
        if window is None:
            policy = self._agent.policy.window
            if policy is not None and policy.source != source:
                given["trigger_history"] = _window_as_option(policy, source)
        elif isinstance(window, Mapping):
            given["trigger_history"] = {**window, "source": source}

    def _facts(self, sent: Sent, place: Place, principal: Principal) -> dict[str, Any]:
        trusted, key = dict(sent.trusted), place.key
        run = {"tenant_id": key.tenant, "channel_id": key.channel, "thread_id": key.thread}
        roles = {"roles": list(principal.roles)} if principal.roles else {}
        meta = {**_mapping(trusted.pop("meta", None), "meta"), **principal.meta, **roles}
        user = {**_mapping(trusted.pop("user", None), "user"), "id": principal.user_id}
        given: dict[str, Any] = {
            **trusted,
            "run": {name: part for name, part in run.items() if part is not None},
            "user": user,
            "chat_id": place.chat_id,
            "user_key": principal.user_id,
        }
        if meta:
            given["meta"] = meta
        if place.session_id is not None:
            given["session"] = {"action": "continue", "id": place.session_id}
        if sent.context is not None:
            given["context"] = sent.context
        if sent.replace is not None:
            given["replace"] = sent.replace
        return given


def _mapping(value: object, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError("must be a mapping", path=path)
    return value


def _window_as_option(window: HistoryWindow, source: str) -> dict[str, Any]:
    option: dict[str, Any] = {"source": source, "max_messages": window.max_messages}
    if window.max_age is not None:
        option["max_age_ms"] = window.max_age // timedelta(milliseconds=1)
    return option
