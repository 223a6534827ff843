"""Passages: which reads are done on the event loop, because they take less than a worker's answer.

What is read for the first time may have to come from the disk, so a worker reads it. And the loop
has other things to do, so few reads are done before it turns to them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final
from weakref import WeakKeyDictionary

LARGEST_WINDOW: Final = 64
"""How many rows a window may have to be read on the loop."""

_REMEMBERED: Final = 1024
_AT_ONCE: Final = 4


class Passages:
    """Who may pass the worker; threads may share it."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, None] = OrderedDict()
        self._passed: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()

    def add(self, place: Hashable) -> None:
        """Note that a worker has read a place."""
        self._known[place] = None
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def may_pass(self, place: Hashable) -> bool:
        """Tell whether a place may be read on the running loop now; if so that counts."""
        if place not in self._known:
            return False
        loop = asyncio.get_running_loop()
        passed = self._passed.get(loop, 0)
        if passed == 0:
            loop.call_soon(self._begin_anew, loop)
        elif passed >= _AT_ONCE:
            return False
        self._passed[loop] = passed + 1
        return True

    def _begin_anew(self, loop: asyncio.AbstractEventLoop) -> None:
        self._passed[loop] = 0
