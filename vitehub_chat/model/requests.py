"""Requests: what one call of a trigger asks for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

import attrs

from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import HistoryWindow, LockScope


@attrs.frozen(kw_only=True)
class RunInfo:
    """Where a message came from and what its run is called; all of it optional.

    Attributes:
        annotations: Text to text, for telemetry and channels.
    """

    tenant_id: str | None = None
    channel_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    message_id: str | None = None
    origin: str | None = None
    annotations: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SessionChoice:
    """Which session a call wants: `new` starts one; else only `id` counts."""

    action: Literal["continue", "new", "switch"] = "continue"
    id: str | None = None


@attrs.frozen(kw_only=True)
class Invoker:
    """On whose behalf a turn runs.

    Attributes:
        id: Who it is, as one text.
        kind: What kind of caller; `chat` when derived from a user.
        label: How people call it.
        meta: Further facts.
        email: `{"address", "domain"}` where known.
    """

    id: str
    kind: str | None = None
    label: str | None = None
    meta: JsonObject = attrs.field(factory=dict)
    email: Mapping[str, str] | None = None


@attrs.frozen(kw_only=True)
class Replacement:
    """A turn that takes the place of stored messages; trusted."""

    kind: Literal["edit", "regenerate", "continue"]
    message_id: str


@attrs.frozen(kw_only=True)
class TurnRequest:
    """The input of one turn, checked.

    Attributes:
        messages: Oldest first; the last one is the current message.
        run: Where it came from, or None if the input has none.
        session: Which session is wanted.
        window: None uses the agent's; `"none"` or a window replaces it.
        user: Facts about the user.
        meta: Further facts about the caller.
        invoker: An explicit invoker, or None.
        timeout: Replaces the agent's, or None.
        context: Values for the driver.
        replace: What the turn takes the place of, or None.
        chat_id: The client's name of the conversation.
        user_key: The owner of the session.
        is_dm: Whether the thread is a direct message.
        trigger: The id of the trigger that was called, or None.
        lock_scope: The scope of a channel, where the agent leaves it open; None is `thread`.
        reply_to: Where the answer of a message goes that nobody waits for, as JSON, or None.
    """

    messages: tuple[Message, ...]
    run: RunInfo | None = None
    session: SessionChoice = SessionChoice()
    session_given: bool = False
    window: HistoryWindow | Literal["none"] | None = None
    user: JsonObject | None = None
    meta: JsonObject | None = None
    invoker: Invoker | None = None
    timeout: timedelta | None = None
    context: Mapping[str, Any] = attrs.field(factory=dict)
    replace: Replacement | None = None
    chat_id: str | None = None
    user_key: str | None = None
    is_dm: bool = False
    trigger: str | None = None
    lock_scope: LockScope | None = None
    reply_to: JsonObject | None = None

    @property
    def replaces(self) -> str | None:
        """The id of the stored message from which on this turn takes the place of all, or None."""
        if self.replace is None or self.replace.kind == "continue":
            return None
        return self.replace.message_id

    @property
    def current(self) -> Message:
        """The message that this turn answers."""
        return self.messages[-1]
