"""chat(): the capability that gives an agent conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from vitehub_chat.agent.capability import (
    Capability,
    InvocationContext,
    Trigger,
    TriggerContext,
)
from vitehub_chat.agent.driver import ToolSpec
from vitehub_chat.agent.search_tools import search_tools
from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.config.trigger_input import parse_chat_message
from vitehub_chat.config.typed import ChatOptions
from vitehub_chat.conversation.invocation import PLACEHOLDER
from vitehub_chat.conversation.replies import find_placeholder
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.policies import UNSET, ChatPolicy
from vitehub_chat.model.requests import TurnRequest


class Chat(Capability):
    """Conversations for an agent; registers the trigger `chat.message`.

    Attributes:
        policy: What it decides, in the units of the inside.
        options: The options as they were given, to tell them from defaults.
    """

    name = "chat"

    def __init__(self, policy: ChatPolicy, options: Mapping[str, Any] | None = None) -> None:
        self.policy = policy
        self.options: Mapping[str, Any] = {} if options is None else dict(options)

    def __repr__(self) -> str:
        return f"Chat({self.policy!r})"

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """`message`: one message of a conversation and its answer."""
        return {"message": Trigger(read=_read_message, output="ui-message-stream")}

    def tools(self, ctx: InvocationContext, /) -> Sequence[ToolSpec]:
        """Return the tools that search past conversations, if the option `search_tools` is on."""
        return search_tools(ctx, self.policy) if self.policy.search_tools else ()

    async def prepare(self, ctx: InvocationContext, /) -> None:
        """Say in the context what is posted before the answer, if anything was decided."""
        placeholder = await find_placeholder(self.policy.reply, ctx.context)
        if placeholder is not UNSET:
            ctx.context[PLACEHOLDER] = placeholder


def chat(mapping: Mapping[str, Any] | None = None, /, **options: Unpack[ChatOptions]) -> Chat:
    """Return the capability that gives an agent conversations.

    Every option has a snake_case and a camelCase spelling; nothing is converted silently.

    Args:
        mapping: All options as one mapping, in place of keywords.
        options: See `vitehub_chat.config.chat_model` and the reference of options.

    Raises:
        ConfigError: Anything is wrong; the error has the path of the option.

    Warns:
        ConfigOverrideWarning: An option has no effect beside another one.
    """
    if mapping is not None and options:
        raise ConfigError(
            "give the options as one mapping or as keywords, not both", path=next(iter(options))
        )
    given = options if mapping is None else mapping
    policy = lower_chat_options(given)
    return Chat(policy, given)


async def _read_message(_ctx: TriggerContext, given: Mapping[str, Any]) -> TurnRequest:
    return parse_chat_message(given)
