"""Agent: a definition that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs

from vitehub_chat.agent.capability import CapabilityLike, Trigger
from vitehub_chat.agent.driver import Driver
from vitehub_chat.errors import ConfigError, InputError, NotFoundError
from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.state.contract import AgentState

if TYPE_CHECKING:
    from vitehub_chat.agent.runtime import AgentRuntime
    from vitehub_chat.config.agent_definition import PluginChoice, StateChoice
    from vitehub_chat.conversation.conversation import Conversation
    from vitehub_chat.conversation.conversations import Conversations
    from vitehub_chat.conversation.sweeping import Sweeper


@attrs.define(eq=False, kw_only=True)
class Agent:
    """An agent: who answers, what it can do, and where its state is.

    A state given by URL opens at first use. `async with agent` or `aclose` closes it again;
    another use after that opens it anew. A state that was passed in stays open.

    Attributes:
        name: Its name; part of the key of every conversation.
        driver: Who answers: a driver, the choice of one, or None.
        capabilities: What it can do, in order.
        channels: Where it can be reached.
        state: Where it keeps messages: an opened state, the choice of one, or None.
        meta: Further facts.
    """

    name: str
    driver: Driver | PluginChoice | None = None
    capabilities: Sequence[CapabilityLike] = ()
    channels: Sequence[Any] = ()
    state: AgentState | StateChoice | None = None
    meta: Mapping[str, Any] = attrs.field(factory=dict)
    _lock: ForkSafeLock = attrs.field(factory=ForkSafeLock, init=False, repr=False)
    _runtime: AgentRuntime | None = attrs.field(default=None, init=False, repr=False)

    @property
    def policy(self) -> ChatPolicy:
        """What its `chat()` decides; the defaults without one."""
        for capability in self.capabilities:
            policy = getattr(capability, "policy", None)
            if isinstance(policy, ChatPolicy):
                return policy
        return ChatPolicy()

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """Its triggers by id, `<capability>.<trigger>`."""
        return {
            f"{capability.name}.{name}": trigger
            for capability in self.capabilities
            for name, trigger in capability.triggers.items()
        }

    def find_trigger(self, trigger: str) -> Trigger:
        """Return a trigger by its id.

        Raises:
            NotFoundError: There is none of that id; the error names the known ones.
        """
        triggers = self.triggers
        if trigger not in triggers:
            known = ", ".join(sorted(triggers)) or "none; does the definition list chat()?"
            raise NotFoundError(
                f"agent {self.name!r} has no trigger {trigger!r}", hint=f"known: {known}"
            )
        return triggers[trigger]

    def conversation(
        self,
        key: ConversationKey | str,
        *,
        tenant: str | None = None,
        channel: str | None = None,
        session_id: str | None = None,
    ) -> Conversation:
        """Return a conversation of this agent.

        Args:
            key: Its key, or as text the id of its thread.
            tenant: The tenant, where `key` is a thread.
            channel: The channel, where `key` is a thread.
            session_id: Narrows it to one session; None is the whole conversation.

        Raises:
            InputError: `key` is neither, or an id cannot be one.
        """
        from vitehub_chat.conversation.conversation import Conversation  # noqa: PLC0415 - cycle

        if isinstance(key, str):
            key = ConversationKey(tenant, self.name, channel, key)
        elif not isinstance(key, ConversationKey):
            raise InputError("must be the id of a thread or a ConversationKey", path="key")
        return Conversation(self.open_state, key, session_id=session_id, policy=self.policy)

    def conversations(
        self, *, tenant: str | None = None, user_key: str | None = None
    ) -> Conversations:
        """Return the conversations of this agent, of one owner or for the operator."""
        from vitehub_chat.conversation.conversations import Conversations  # noqa: PLC0415 - cycle

        return Conversations(
            self.open_state,
            tenant=tenant,
            agent=self.name,
            user_key=user_key,
            policy=self.policy,
        )

    async def open_state(self) -> AgentState:
        """Return the opened state.

        Raises:
            ConfigError: The definition has no state and the environment names none.
        """
        state = await self.runtime().open_state()
        if state is None:
            raise ConfigError(
                "is needed here",
                path="state",
                hint="set it in the definition or in VITEHUB_AGENT_STATE_URL",
            )
        return state

    async def sweep(self) -> int:
        """Run the messages that dead processes left waiting, and return how many turns that begins.

        A holder is dead when its lease is over. Its line is drained in order, in this event loop;
        what other processes run or wait for is not touched. To be called at least every 30 seconds
        by what serves this agent, or see `sweeping`.

        Raises:
            StateError: The state failed.
        """
        return await self.runtime().sweep()

    def sweeping(self) -> Sweeper:
        """Return what sweeps at once and every 20 seconds: `async with agent.sweeping():`."""
        from vitehub_chat.conversation.sweeping import Sweeper  # noqa: PLC0415 - cycle

        return Sweeper(self.sweep)

    def runtime(self) -> AgentRuntime:
        """Return what runs this agent, built at first use."""
        from vitehub_chat.agent.runtime import AgentRuntime  # noqa: PLC0415 - cycle

        with self._lock:
            if self._runtime is None:
                self._runtime = AgentRuntime(self)
            return self._runtime

    async def __aenter__(self) -> Self:
        await self.runtime().open_state()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop its turns, then close driver and state; repeating does nothing.

        Turns that run are recorded as interrupted; messages that wait are given back.
        """
        with self._lock:
            runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.aclose()
