"""Reads: a step that writes nothing, on what was fetched at one moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.sql.attempts import Workshop
from vitehub_chat.state.sql.guessing import looks_for
from vitehub_chat.state.sql.looks.look import Asking, Look, Miss
from vitehub_chat.state.sql.scratch.tables import Scratch
from vitehub_chat.state.sql.scratch.work import Work
from vitehub_chat.state.tables import Transaction

T = TypeVar("T")


async def read(shop: Workshop, step: Callable[[Transaction], T], needs: Needs) -> T:
    """Return the answer of a step on one consistent view.

    Everything is fetched anew in one request; what is found to be missing or was assumed makes
    another one, for all of it.

    Raises:
        StateUnavailableError: There was no answer, or there was always more to fetch.
        Exception: What the step raised.
    """
    looks: dict[Look, None] = dict.fromkeys(looks_for(needs, shop.secret, None))
    for _ in range(shop.retrying.looks):
        known = await shop.loader.load(looks, Asking(shop.texts, needs.now))
        work = Work(known=known, now=needs.now, numbers=shop.numbers)
        try:
            answer = step(Scratch(work, shop.secret))
        except Miss as miss:
            looks[miss.look] = None
            continue
        except Exception:
            if not work.assumed:
                raise
        else:
            if not work.assumed:
                return answer
        looks.update(dict.fromkeys(work.assumed))
    raise StateUnavailableError("the state kept changing while it was read")
