"""The circuit: no more writes to a server that takes none, until a probe goes through."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.state.providers.libsql.failures import AttemptError

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 30.0

Probe = Callable[[], Awaitable[object]]


class Circuit:
    """Whether the writes of a server are stuck: they get no answer, while reads do."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with a server that works."""
        self._clock = clock
        self._pause = 0.0
        self._probe_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether writes are held back."""
        return self._pause > 0

    def open(self) -> None:
        """Hold writes back; each time for twice as long as the last."""
        self._pause = min(self._pause * 2 or _FIRST_PAUSE, _LONGEST_PAUSE)
        self._probe_at = self._clock() + self._pause

    async def check(self, probe: Probe) -> None:
        """Return if writes may be sent, after `probe` has tried if it is time to.

        Raises:
            AttemptError: They may not.
        """
        if not self.is_open:
            return
        if self._clock() < self._probe_at:
            raise _stuck()
        try:
            await probe()
        except AttemptError as failure:
            if failure.timed_out:
                self.open()
                raise _stuck(failure.error.__cause__) from None
        self._pause = 0.0


def _stuck(cause: BaseException | None = None) -> AttemptError:
    error = StateUnavailableError(
        "the server answers reads but takes no writes",
        hint="it has to be restarted if this lasts",
    )
    return AttemptError(error, "never", cause)
