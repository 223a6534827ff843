"""Steps: doing something at any chosen moment between two awaits of a turn."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any


class Steps:
    """Counts the steps of all tasks from `arm` on, and acts right after one of them.

    A step of a task is what it does from one await to the next. `is_over` tells that the action
    came too late, so that all earlier moments have been tried.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._left = 0
        self._action: Callable[[], object] | None = None

    def arm(self, number: int, action: Callable[[], object]) -> None:
        """Act after so many steps from now; 0 is at once."""
        self._left, self._action = number, action
        self._act_if_due()

    def disarm(self) -> bool:
        """Stop counting, and tell whether the action was not due yet."""
        is_left, self._action = self._action is not None, None
        return is_left

    def count(self) -> None:
        """Count a step."""
        if self._action is not None:
            self._left -= 1
            self._act_if_due()

    def _act_if_due(self) -> None:
        if self._left == 0 and self._action is not None:
            action, self._action = self._action, None
            action()


class _Counted(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are counted."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], steps: Steps) -> None:
        self._coroutine = coroutine
        self._steps = steps
        self.__qualname__ = getattr(coroutine, "__qualname__", "counted")

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError

    def send(self, value: Any) -> Any:
        try:
            return self._coroutine.send(value)
        finally:
            self._steps.count()

    def throw(self, *error: Any) -> Any:
        try:
            return self._coroutine.throw(*error)
        finally:
            self._steps.count()

    def close(self) -> None:
        self._coroutine.close()


@contextmanager
def counted_steps() -> Iterator[Steps]:
    """Count the steps of all tasks that begin inside, and keep what the loop complains about."""
    loop, steps = asyncio.get_running_loop(), Steps()

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        return asyncio.Task(_Counted(coroutine, steps), loop=loop, **more)

    def complain(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        steps.problems.append(str(context.get("message")))

    loop.set_task_factory(make)
    loop.set_exception_handler(complain)
    try:
        yield steps
        gc.collect()
    finally:
        loop.set_task_factory(None)
        loop.set_exception_handler(None)
