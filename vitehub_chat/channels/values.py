"""Values that go between the host and a channel."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

import attrs

from vitehub_chat.model.json_text import JsonObject


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@attrs.frozen(kw_only=True)
class ChannelRequest:
    """A request of a platform, as it came.

    Attributes:
        method: The method, in upper case.
        path: The path below that of the channel: empty, or beginning with a slash.
        headers: The headers; their names are in lower case.
        query: The query string, without its question mark.
        body: The bytes of the body, over which a signature is computed. Never printed.
    """

    method: str = "POST"
    path: str = ""
    headers: Mapping[str, str] = attrs.field(factory=dict, converter=_lower_names, repr=False)
    query: str = attrs.field(default="", repr=False)
    body: bytes = attrs.field(default=b"", repr=False)


@attrs.frozen(kw_only=True)
class ChannelResponse:
    """What a platform is answered.

    Attributes:
        status: The HTTP status.
        headers: The headers.
        body: The body.
    """

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b""


@attrs.frozen(kw_only=True)
class Author:
    """Who wrote a message.

    Attributes:
        id: The platform's id of the account.
        name: What people call it, or None.
        is_bot: Whether a program writes under it.
        is_me: Whether it is the account of this channel itself.
    """

    id: str
    name: str | None = None
    is_bot: bool = False
    is_me: bool = False


@attrs.frozen(kw_only=True)
class Target:
    """Where a message was written, and where its answer goes.

    It is stored with a message that waits, so that any process can answer it.

    Attributes:
        thread_id: The thread, unique within the channel of the platform.
        channel_id: The room that the thread is in, or None where a platform has none.
        tenant_id: The workspace or organisation, or None.
        message_id: The platform's id of the message that is answered, or None.
        data: What the channel needs besides, as JSON; no secrets, it is stored.
    """

    thread_id: str
    channel_id: str | None = None
    tenant_id: str | None = None
    message_id: str | None = None
    data: JsonObject = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Inbound:
    """Something that happened on a platform.

    Attributes:
        kind: `message` is answered; `edit` and `delete` change what is stored of a message.
        target: Where it happened.
        message_id: The platform's id of the message that it is about.
        author: Who wrote it.
        parts: The message as parts of a UI message; unused for `delete`.
        created_at: When it was written, or None. Order does not depend on it.
        is_dm: Whether only the author and the agent are there.
        facts: Further facts about the message as JSON, found at `metadata.channel`.
    """

    kind: Literal["message", "edit", "delete"] = "message"
    target: Target
    message_id: str
    author: Author
    parts: tuple[JsonObject, ...] = ()
    created_at: datetime | None = None
    is_dm: bool = False
    facts: JsonObject = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class DeliveryPlan:
    """How an answer is shown.

    Attributes:
        mode: `stream`: it is posted early and edited while it grows. `whole`: once it is there.
        update_interval: How long between two edits at least.
        placeholder: What is posted before the answer, or None for nothing.
        error_text: What is posted if the answer breaks off without a word, or None for nothing.
    """

    mode: Literal["stream", "whole"] = "whole"
    update_interval: timedelta = timedelta(milliseconds=500)
    placeholder: str | None = None
    error_text: str | None = None


@attrs.frozen(kw_only=True)
class Sent:
    """A message that a channel posted.

    Attributes:
        message_id: The platform's id of it.
        text: What it says.
    """

    message_id: str
    text: str = attrs.field(repr=False)
