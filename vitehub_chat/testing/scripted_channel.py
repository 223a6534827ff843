"""A scripted channel: a chat platform that does what a test tells it to.

The platform keeps what is posted and has a history; the channel in front of it signs and reads its
requests like a real one. Both are for tests of agents, of third parties too.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import attrs

from vitehub_chat.channels.messages import channel_message
from vitehub_chat.channels.posting import post_reply
from vitehub_chat.channels.values import (
    Author,
    ChannelRequest,
    DeliveryPlan,
    Inbound,
    Sent,
    Target,
)
from vitehub_chat.model.clock import read_time
from vitehub_chat.model.events import AgentEvent
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import LockScope

SIGNATURE = "x-scripted-signature"
LOOK_S = 0.002
BOT = "bot"
"""The account of the channel itself."""

Operation = Literal["post", "edit", "backfill"]


@attrs.define
class Post:
    """A message that the channel posted.

    Attributes:
        id: The platform's id of it.
        thread: Where it was posted.
        versions: What it said, in order; the last one is what it says now.
    """

    id: str
    thread: str
    versions: list[str]

    @property
    def text(self) -> str:
        """What it says now."""
        return self.versions[-1]


@attrs.define
class _Gate:
    """What holds calls back, and how many more of them; None is every one."""

    left: int | None
    opened: asyncio.Event = attrs.field(factory=asyncio.Event)


class ScriptedPlatform:
    """A chat platform in memory.

    Attributes:
        posts: What the channel posted, in order.
        history: The messages of each thread, oldest first, that `backfill` gives.
        backfills: The threads and limits that it was asked for, in order.
    """

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.history: dict[str, list[Inbound]] = {}
        self.backfills: list[tuple[str, int]] = []
        self._ids = itertools.count(1)
        self._failures: dict[Operation, list[BaseException]] = {}
        self._gates: dict[Operation, _Gate] = {}

    def fail(self, operation: Operation, error: BaseException, *, times: int = 1) -> None:
        """Let the next calls of an operation raise an error."""
        self._failures.setdefault(operation, []).extend([error] * times)

    def hold(self, operation: Operation, *, times: int | None = None) -> asyncio.Event:
        """Let the next calls of an operation wait until the event is set; None is every call."""
        self._gates[operation] = gate = _Gate(times)
        return gate.opened

    def texts(self, thread: str) -> list[str]:
        """Return what the posts of a thread say now, in order."""
        return [post.text for post in self.posts if post.thread == thread]

    async def until(self, condition: Callable[[], bool], *, seconds: float = 20) -> None:
        """Wait until something that is posted, edited or asked for makes a condition hold.

        Raises:
            TimeoutError: It did not, in time.
        """
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - it may be another loop that changes it
                await asyncio.sleep(LOOK_S)

    async def posted(self, *texts: str, thread: str = "t1") -> None:
        """Wait until the posts of a thread say these texts, in this order.

        Raises:
            TimeoutError: They do not, in time.
        """
        await self.until(lambda: self.texts(thread) == list(texts))

    async def post(self, thread: str, text: str) -> str:
        """Post a message and return its id."""
        await self._enter("post")
        post = Post(f"p{next(self._ids)}", thread, [text])
        self.posts.append(post)
        return post.id

    async def edit(self, post_id: str, text: str) -> None:
        """Change what a posted message says."""
        await self._enter("edit")
        next(post for post in self.posts if post.id == post_id).versions.append(text)

    async def read(self, thread: str, limit: int) -> Sequence[Inbound]:
        """Return the newest messages of a thread, oldest first."""
        self.backfills.append((thread, limit))
        await self._enter("backfill")
        return self.history.get(thread, [])[-limit:]

    async def _enter(self, operation: Operation) -> None:
        gate = self._gates.get(operation)
        if gate is not None and gate.left != 0:
            gate.left = None if gate.left is None else gate.left - 1
            await gate.opened.wait()
        if failures := self._failures.get(operation):
            raise failures.pop(0)


@attrs.frozen
class _Thread:
    """A thread of the platform, as a place to post to."""

    platform: ScriptedPlatform
    name: str

    async def post(self, text: str, /) -> str:
        return await self.platform.post(self.name, text)

    async def edit(self, message_id: str, text: str, /) -> None:
        await self.platform.edit(message_id, text)


def _as_features(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


@attrs.frozen(kw_only=True)
class ScriptedChannel:
    """A channel to a `ScriptedPlatform`.

    Attributes:
        kind: Its kind.
        features: What it can do: `backfill` and `edit`.
        lock_scope: Its own lock scope.
        secret: What its requests are signed with.
        max_length: The longest post, in characters, or None.
        platform: The platform behind it.
    """

    kind: str = "scripted"
    features: frozenset[str] = attrs.field(
        default=frozenset({"backfill", "edit"}), converter=_as_features
    )
    lock_scope: LockScope | None = None
    secret: str = attrs.field(default="secret", repr=False)
    max_length: int | None = None
    platform: ScriptedPlatform = attrs.field(factory=ScriptedPlatform)

    def paths(self) -> Sequence[str]:
        """Return its only path."""
        return ("",)

    def request(self, *happened: Inbound) -> ChannelRequest:
        """Return the signed request with which the platform tells what happened."""
        body = json.dumps([_to_json(each) for each in happened]).encode()
        return ChannelRequest(headers={SIGNATURE: self._sign(body)}, body=body)

    async def verify(self, request: ChannelRequest, /) -> bool:
        """Tell whether a request was signed with the secret."""
        given = request.headers.get(SIGNATURE, "")
        return hmac.compare_digest(given.encode(), self._sign(request.body).encode())

    async def parse(self, request: ChannelRequest, /) -> Sequence[Inbound]:
        """Return what happened."""
        return [_from_json(each) for each in json.loads(request.body)]

    async def backfill(self, target: Target, /, *, limit: int) -> Sequence[Message]:
        """Return the newest messages of a thread of the platform."""
        page = await self.platform.read(target.thread_id, limit)
        return [channel_message(self.kind, each) for each in page]

    async def send(
        self, target: Target, reply: AsyncIterator[AgentEvent], /, *, delivery: DeliveryPlan
    ) -> Sequence[Sent]:
        """Post an answer to its thread."""
        return await post_reply(
            reply,
            delivery,
            _Thread(self.platform, target.thread_id),
            can_edit="edit" in self.features,
            max_length=self.max_length,
        )

    def _sign(self, body: bytes) -> str:
        return hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()


def said(
    message_id: str,
    text: str | None = None,
    *,
    thread: str = "t1",
    channel: str | None = "c1",
    tenant: str | None = None,
    author: Author | str = "u1",
    at: datetime | None = None,
    kind: Literal["message", "edit", "delete"] = "message",
    is_dm: bool = False,
) -> Inbound:
    """Return what a platform tells of a message; its text is its id if none is given.

    The author `bot` is the account of the channel itself.
    """
    who = Author(id=author, is_me=author == BOT) if isinstance(author, str) else author
    parts = ({"type": "text", "text": message_id if text is None else text},)
    return Inbound(
        kind=kind,
        target=Target(
            thread_id=thread, channel_id=channel, tenant_id=tenant, message_id=message_id
        ),
        message_id=message_id,
        author=who,
        parts=() if kind == "delete" else parts,
        created_at=at,
        is_dm=is_dm,
    )


def history_of(*texts: str, thread: str = "t1") -> list[Inbound]:
    """Return messages of a thread, their texts being their ids."""
    return [said(text, thread=thread) for text in texts]


def _to_json(inbound: Inbound) -> dict[str, Any]:
    fields = attrs.asdict(inbound)
    return {**fields, "created_at": inbound.created_at and inbound.created_at.isoformat()}


def _from_json(fields: Mapping[str, Any]) -> Inbound:
    values = {
        **fields,
        "target": Target(**fields["target"]),
        "author": Author(**fields["author"]),
        "parts": tuple(fields["parts"]),
        "created_at": read_time(fields["created_at"]),
    }
    return Inbound(**values)
