"""Incoming: one thing that happened on a platform, and what becomes of it."""

from __future__ import annotations

from vitehub_chat.agent.agent import Agent
from vitehub_chat.channels.contract import Channel
from vitehub_chat.channels.desk import ChannelDesk
from vitehub_chat.channels.messages import channel_message, channel_request, conversation_of
from vitehub_chat.channels.values import Inbound
from vitehub_chat.errors import InputError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.requests import TurnRequest


class Incoming:
    """Takes in what a channel found in a request, for one agent."""

    def __init__(self, agent: Agent, channel: Channel, desk: ChannelDesk) -> None:
        self._agent = agent
        self._channel = channel
        self._desk = desk

    async def take(self, inbound: Inbound) -> None:
        """Have a message answered, or change what is stored of it.

        What the channel itself wrote does nothing. A message is stored, and its repeats are
        recognised, once this returns.

        Raises:
            InputError: It is no message that could be answered.
            ChatBusyError: The conversation is busy and the policy refuses it.
            StateError: The state failed.
        """
        if inbound.author.is_me:
            return
        if inbound.kind == "message":
            await self._accept(channel_request(self._channel, inbound, self._agent.policy))
        else:
            await self._change(inbound)

    async def _accept(self, request: TurnRequest) -> None:
        runtime, cache = self._agent.runtime(), self._desk.histories.cache
        if cache is None:
            await runtime.accept(request)
            return
        key = self._desk.key_of(request)
        # Before its turn can begin, which looks for what came before it.
        is_new = cache.add(key, request.current)
        try:
            verdict = (await runtime.accept(request)).verdict
        except InputError:
            if is_new:
                cache.remove(key, request.current.id or "")
            raise
        if verdict == "accepted" and not is_new:
            cache.move_to_end(key, request.current)
        elif verdict == "filtered" and is_new:
            cache.remove(key, request.current.id or "")

    async def _change(self, inbound: Inbound) -> None:
        """Change or delete what is stored of a message; no-op if nothing is. Starts no turn."""
        kind, cache = self._channel.kind, self._desk.histories.cache
        key = conversation_of(self._agent.name, kind, inbound.target)
        message_id = f"{kind}:{inbound.message_id}"
        if cache is not None:
            if inbound.kind == "edit":
                cache.replace(key, channel_message(kind, inbound))
            else:
                cache.remove(key, message_id)
            return
        await self._change_row(inbound, key, message_id)

    async def _change_row(self, inbound: Inbound, key: ConversationKey, message_id: str) -> None:
        conversation = self._agent.conversation(key)
        try:
            if inbound.kind == "edit":
                message = channel_message(self._channel.kind, inbound)
                await conversation.replace_message(message_id, message)
            else:
                await conversation.delete_message(message_id)
        except NotFoundError:
            # It was never stored, or is gone: there is nothing to change.
            return
