"""Threads: what was said lately, for agents that store nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime

import attrs

from vitehub_chat.model.clock import Clock
from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ThreadHistory

MAX_THREADS = 10_000
"""How many threads are remembered; the one that was silent for longest is forgotten first."""


@attrs.define
class _Thread:
    messages: list[Message]
    touched_at: datetime


class ThreadCache:
    """The newest messages of threads, in order of arrival, answers right behind their questions.

    Bounded by `thread_history` per thread, and in the number of threads. Threads may share it.
    """

    def __init__(
        self, bounds: ThreadHistory, clock: Clock, *, max_threads: int = MAX_THREADS
    ) -> None:
        self._bounds = bounds
        self._clock = clock
        self._max_threads = max_threads
        self._threads: OrderedDict[ConversationKey, _Thread] = OrderedDict()
        self._lock = ForkSafeLock()

    def __len__(self) -> int:
        return len(self._threads)

    def messages(self, key: ConversationKey) -> tuple[Message, ...]:
        """Return what is remembered of a thread, oldest first."""
        with self._lock:
            self._forget_old()
            thread = self._threads.get(key)
            return () if thread is None else tuple(thread.messages)

    def add(self, key: ConversationKey, message: Message) -> bool:
        """Remember a message as the newest one; False, and no change, if its id is known."""
        with self._lock:
            thread = self._touch(key)
            if _find(thread.messages, message.id) is not None:
                return False
            thread.messages.append(message)
            self._trim(thread)
            return True

    def move_to_end(self, key: ConversationKey, message: Message) -> None:
        """Make a message the newest one, with what it says now."""
        with self._lock:
            thread = self._touch(key)
            _remove(thread.messages, message.id)
            thread.messages.append(message)
            self._trim(thread)

    def insert_after(self, key: ConversationKey, message_id: str | None, answer: Message) -> None:
        """Remember an answer behind the message that it answers, or as the newest one."""
        with self._lock:
            thread = self._touch(key)
            _remove(thread.messages, answer.id)
            at = _find(thread.messages, message_id)
            thread.messages.insert(len(thread.messages) if at is None else at + 1, answer)
            self._trim(thread)

    def merge_earlier(self, key: ConversationKey, earlier: Sequence[Message]) -> None:
        """Put earlier messages before those that are known.

        Of two with one id the known one counts, at the earlier place.
        """
        with self._lock:
            thread = self._touch(key)
            thread.messages = merge(earlier, thread.messages)
            self._trim(thread)

    def replace(self, key: ConversationKey, message: Message) -> bool:
        """Change what a message says; False if it is not known."""
        with self._lock:
            thread = self._threads.get(key)
            at = None if thread is None else _find(thread.messages, message.id)
            if thread is None or at is None:
                return False
            thread.messages[at] = message
            return True

    def remove(self, key: ConversationKey, message_id: str) -> bool:
        """Forget a message; False if it is not known."""
        with self._lock:
            thread = self._threads.get(key)
            return thread is not None and _remove(thread.messages, message_id)

    def _touch(self, key: ConversationKey) -> _Thread:
        self._forget_old()
        thread = self._threads.pop(key, None) or _Thread([], self._clock.now())
        thread.touched_at = self._clock.now()
        self._threads[key] = thread
        while len(self._threads) > self._max_threads:
            self._threads.popitem(last=False)
        return thread

    def _forget_old(self) -> None:
        limit = self._clock.now() - self._bounds.ttl
        while self._threads:
            key, oldest = next(iter(self._threads.items()))
            if oldest.touched_at > limit:
                return
            del self._threads[key]

    def _trim(self, thread: _Thread) -> None:
        del thread.messages[: -self._bounds.max_messages]


def merge(earlier: Iterable[Message], later: Iterable[Message]) -> list[Message]:
    """Join two lists of messages; of two with one id the last one counts, at the first place."""
    merged: list[Message] = []
    places: dict[str, int] = {}
    for message in (*earlier, *later):
        if message.id is not None and message.id in places:
            merged[places[message.id]] = message
            continue
        if message.id is not None:
            places[message.id] = len(merged)
        merged.append(message)
    return merged


def before(messages: Sequence[Message], ids: Iterable[str | None]) -> Sequence[Message]:
    """Return the messages before the first one of some ids; all of them if there is none."""
    stops = set(ids)
    stops.discard(None)
    end = next((at for at, each in enumerate(messages) if each.id in stops), len(messages))
    return messages[:end]


def _find(messages: Sequence[Message], message_id: str | None) -> int | None:
    if message_id is None:
        return None
    return next((at for at, each in enumerate(messages) if each.id == message_id), None)


def _remove(messages: list[Message], message_id: str | None) -> bool:
    at = _find(messages, message_id)
    if at is None:
        return False
    del messages[at]
    return True
