"""The scenes that are explored: two holders, three messages, and what may come between them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs

from tests.exploration.plans import LEASE, Planned, Scene
from vitehub_chat.model.policies import ConcurrencyPolicy, SessionPolicy

SESSIONS = SessionPolicy(strategy="hybrid", idle_timeout=timedelta(days=1))
_FIELDS = frozenset({"crashes", "passes", "by", "renews", "withdraws", "sessions"})


def messages(*threads: str, again: bool = False) -> tuple[Planned, ...]:
    """Return three messages of two senders; with `again` the last one is the first sent again."""
    first, second, third = threads or ("t1",) * 3
    claim = "m1" if again else None
    return (
        Planned(name="m1", sender="h1", thread=first, claim=claim),
        Planned(name="m2", sender="h2", thread=second),
        Planned(name="m3", sender="h1" if not again else "h2", thread=third, claim=claim),
    )


def scene(strategy: str, *threads: str, again: bool = False, **changes: Any) -> Scene:
    """Return a scene of one strategy; changes that are no fields of a scene are of the policy."""
    fields = {name: changes.pop(name) for name in tuple(changes) if name in _FIELDS}
    policy = ConcurrencyPolicy(strategy=strategy, **changes)  # type: ignore[arg-type]
    return Scene(policy=policy, messages=messages(*threads, again=again), **fields)


def in_sessions(strategy: str, *wanted: str | None, new: str = "", **changes: Any) -> Scene:
    """Return a scene whose messages want sessions; the one named `new` begins one."""
    plain = scene(strategy, sessions=SESSIONS, **changes)
    asked = [
        attrs.evolve(each, wanted=want, starts=each.name == new)
        for each, want in zip(plain.messages, wanted, strict=True)
    ]
    return attrs.evolve(plain, messages=tuple(asked))


SCENES = {
    "serial": scene("serial"),
    "queue": scene("queue"),
    "serial_sent_again": scene("serial", again=True),
    "queue_sent_again": scene("queue", again=True),
    "queue_of_two_threads": scene("queue", "t1", "t2", "t1"),
    "queue_of_two_sessions": in_sessions("queue", "s1", "s2", "s1"),
    "queue_with_a_new_session": in_sessions("queue", None, None, None, new="m2"),
    "serial_with_a_new_session": in_sessions("serial", "s1", "s1", "s1", new="m2"),
    "full_queue_loses_the_oldest": scene(
        "queue", max_queue_size=1, on_queue_full="drop-oldest", crashes=0
    ),
    "full_queue_loses_the_newest": scene(
        "serial", max_queue_size=1, on_queue_full="drop-newest", crashes=0
    ),
    "withdrawn": scene("serial", withdraws=True, crashes=0),
    "withdrawn_from_a_group": scene("queue", withdraws=True, crashes=0),
    "serial_renewed": scene("serial", renews=True, passes=3, by=LEASE / 2),
    "queue_renewed": scene("queue", renews=True, passes=3, by=LEASE / 2),
}
