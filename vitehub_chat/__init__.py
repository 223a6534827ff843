"""Chat history, sessions and context for Python agents, as a plugin.

Names are loaded when they are first used, so importing the package loads no dependency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitehub_chat.agent.agent import Agent
    from vitehub_chat.agent.capability import Capability, Trigger
    from vitehub_chat.agent.definition import define_agent
    from vitehub_chat.agent.driver import Driver, DriverCall, ToolSpec
    from vitehub_chat.agent.loading import load_agent
    from vitehub_chat.agent.stream import AgentStream
    from vitehub_chat.agent.triggers import (
        prepare_agent_trigger,
        run_agent,
        run_agent_trigger,
        stream_agent_trigger,
    )
    from vitehub_chat.capability import Chat, chat
    from vitehub_chat.config.context_options import ContextOptions
    from vitehub_chat.config.prune_options import PruneOptions
    from vitehub_chat.conversation.conversation import Conversation
    from vitehub_chat.conversation.conversations import Conversations
    from vitehub_chat.model.keys import ConversationKey
    from vitehub_chat.model.messages import Message
    from vitehub_chat.model.results import ContextBudget, PreparedInvocation, RunResult
    from vitehub_chat.model.rows import HistoryPage, Row
    from vitehub_chat.state.opening import open_agent_state

_MODULES = {
    "Agent": "vitehub_chat.agent.agent",
    "AgentStream": "vitehub_chat.agent.stream",
    "Capability": "vitehub_chat.agent.capability",
    "Chat": "vitehub_chat.capability",
    "ContextBudget": "vitehub_chat.model.results",
    "ContextOptions": "vitehub_chat.config.context_options",
    "Conversation": "vitehub_chat.conversation.conversation",
    "ConversationKey": "vitehub_chat.model.keys",
    "Conversations": "vitehub_chat.conversation.conversations",
    "Driver": "vitehub_chat.agent.driver",
    "DriverCall": "vitehub_chat.agent.driver",
    "HistoryPage": "vitehub_chat.model.rows",
    "Message": "vitehub_chat.model.messages",
    "PreparedInvocation": "vitehub_chat.model.results",
    "PruneOptions": "vitehub_chat.config.prune_options",
    "Row": "vitehub_chat.model.rows",
    "RunResult": "vitehub_chat.model.results",
    "ToolSpec": "vitehub_chat.agent.driver",
    "Trigger": "vitehub_chat.agent.capability",
    "chat": "vitehub_chat.capability",
    "define_agent": "vitehub_chat.agent.definition",
    "load_agent": "vitehub_chat.agent.loading",
    "open_agent_state": "vitehub_chat.state.opening",
    "prepare_agent_trigger": "vitehub_chat.agent.triggers",
    "run_agent": "vitehub_chat.agent.triggers",
    "run_agent_trigger": "vitehub_chat.agent.triggers",
    "stream_agent_trigger": "vitehub_chat.agent.triggers",
}

__all__ = [
    "Agent",
    "AgentStream",
    "Capability",
    "Chat",
    "ContextBudget",
    "ContextOptions",
    "Conversation",
    "ConversationKey",
    "Conversations",
    "Driver",
    "DriverCall",
    "HistoryPage",
    "Message",
    "PreparedInvocation",
    "PruneOptions",
    "Row",
    "RunResult",
    "ToolSpec",
    "Trigger",
    "chat",
    "define_agent",
    "load_agent",
    "open_agent_state",
    "prepare_agent_trigger",
    "run_agent",
    "run_agent_trigger",
    "stream_agent_trigger",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vitehub_chat.plugins import import_path  # noqa: PLC0415 - at the first use of a name

    found = import_path(f"{_MODULES[name]}:{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
