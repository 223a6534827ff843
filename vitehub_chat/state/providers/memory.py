"""The provider in memory: `memory:` for a store of its own, `memory:NAME` for a shared one."""

from __future__ import annotations

from typing import Any, Final, TypeVar
from urllib.parse import unquote

from vitehub_chat.errors import ConfigError, StateClosedError
from vitehub_chat.model.clock import Clock, SystemClock, to_epoch_us
from vitehub_chat.state.hosts import check_host
from vitehub_chat.state.memory.keeping import MemoryKeeper
from vitehub_chat.state.memory.seeking import MemorySeeker
from vitehub_chat.state.memory.store import MemoryStore, MemoryTables, store_named
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.stepped import Step, SteppedAgentState

T = TypeVar("T")

_CLEANED_AT_ONCE: Final = 200
_FEATURES: Final[frozenset[str]] = frozenset()


def open_memory(
    url: str,
    *,
    clock: Clock | None = None,
    max_ended_entries: int | None = None,
    **options: Any,
) -> MemoryAgentState:
    """Return a state that lives in this process; nothing of it survives the process.

    `memory:` has a store of its own. States of one `memory:NAME` share a store, which is there
    until the last of these objects is gone; closing one keeps what it stored.

    Args:
        url: `memory:` or `memory:NAME`; the name is percent-decoded.
        clock: The source of the time, None is that of the machine.
        max_ended_entries: How many ended turns are remembered at most, None is no limit: then
            each is kept as long as its claim.
        options: The options of `StateOptions`; those about files and servers have no effect.

    Raises:
        ConfigError: The URL or an option is wrong.
    """
    scheme, _, name = url.partition(":")
    if scheme.lower() != "memory" or name.startswith("//") or "?" in name:
        raise ConfigError("must be 'memory:' or 'memory:NAME'", path="state.url")
    return MemoryAgentState(
        name=unquote(name),
        clock=clock or SystemClock(),
        options=StateOptions.from_mapping(options),
        max_ended_entries=max_ended_entries,
    )


class MemoryAgentState(SteppedAgentState):
    """An Agent State in the process, for tests, for agents without a state, and to compare with.

    Any task of any event loop in any thread may use it. A call never waits for anything but
    another step, so cancelling a caller cannot cut a step in two.
    """

    system = "memory"

    def __init__(
        self,
        *,
        name: str = "",
        clock: Clock,
        options: StateOptions,
        max_ended_entries: int | None = None,
    ) -> None:
        """Create a closed state over the store of a name; without a name over a new one."""
        super().__init__(
            clock=clock,
            features=_FEATURES,
            retention=options.retention,
            seeker=MemorySeeker(self._open_store) if options.search else None,
        )
        self._store = store_named(name)
        self._max_ended_entries = max_ended_entries
        self._cleanup_interval = options.cleanup_interval_ms * 1000
        self._next_cleanup = 0
        self._is_open = False
        self.keeper = MemoryKeeper(self._open_store, clock)

    async def run_write(self, step: Step[T], /) -> T:
        """Run a step; when it raises nothing is written."""
        self._check_open()
        self._clean_up()
        answer = self._store.write(step)
        if self._max_ended_entries is not None:
            limit = self._max_ended_entries
            self._store.write(lambda tables: tables.entries.keep_at_most(limit))
        return answer

    async def run_read(self, step: Step[T], /) -> T:
        """Run a step that writes nothing."""
        self._check_open()
        return self._store.read(step)

    async def drop(self) -> None:
        """Delete everything that states of this name stored, then close this one."""
        self._check_open()
        self._store.drop()
        await self.aclose()

    async def _open(self) -> None:
        if self._is_open:
            return
        check_host(is_file=False)
        if self.retention == "forever":
            self._store.write(_keep_forever)
        self._next_cleanup = 0
        self._is_open = True
        self._clean_up()

    async def _close(self) -> None:
        self._is_open = False

    def _open_store(self) -> MemoryStore:
        self._check_open()
        return self._store

    def _check_open(self) -> None:
        if not self._is_open:
            raise StateClosedError(hint="use it inside of 'async with state'")

    def _clean_up(self) -> None:
        """Remove some of what has expired, and more with the next write while there is more."""
        now = to_epoch_us(self.clock.now())
        if now < self._next_cleanup:
            return

        def clean(tables: MemoryTables) -> int:
            cleaned = (tables.rows, tables.entries, tables.documents)
            return max(table.purge(now, _CLEANED_AT_ONCE) for table in cleaned)

        if self._store.write(clean) < _CLEANED_AT_ONCE:
            self._next_cleanup = now + self._cleanup_interval


def _keep_forever(tables: MemoryTables) -> None:
    tables.rows.keep_forever()
    tables.documents.keep_forever()
