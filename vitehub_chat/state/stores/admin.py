"""Looking after a store, as the contract offers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, Protocol

from vitehub_chat.errors import ChatBusyError, InputError, StateError
from vitehub_chat.model.keys import check_id
from vitehub_chat.model.policies import Retention
from vitehub_chat.state.codec import decode_row
from vitehub_chat.state.context import NO_CONTEXT, StateContext
from vitehub_chat.state.contract_admin import Integrity, Migration, PersonRecord, StoreInfo
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.steps.erasing import Person
from vitehub_chat.state.steps.inventory import STORES
from vitehub_chat.state.stores.persons import Erasure, PersonFinder
from vitehub_chat.state.stores.searching import Searching
from vitehub_chat.state.stores.store import StepRunner, Store

_ROWS_AT_ONCE: Final = 500


class Keeper(Protocol):
    """What a provider does for whoever looks after its store."""

    async def find_versions(self) -> tuple[int, int]:
        """Return the version of the store and that of this release; also while it is closed."""

    async def count_tables(self) -> Mapping[str, int]:
        """Return how many records each table has."""

    async def find_size(self) -> int | None:
        """Return how many bytes the store takes, or None."""

    async def clean_up(self, now: int, /) -> Mapping[str, int]:
        """Remove all that has expired, and return counts by table."""

    async def apply_retention(self, retention: Retention, /) -> int:
        """Give all rows the expiry of a retention, and count those that changed."""

    async def find_problems(self) -> Mapping[str, int]:
        """Count the records that belong to nothing, by fault."""

    async def rows_after(self, row_id: int, limit: int, /) -> Sequence[tuple[int, RowRecord]]:
        """Return rows of all conversations with their ids, those above an id, by id."""

    async def wipe(self) -> None:
        """Remove the traces of what was deleted, as far as nobody reads it at this moment."""


class KeptRunner(StepRunner, Protocol):
    """A provider that runs steps and looks after its store."""

    features: frozenset[str]
    search: Searching | None

    @property
    def keeper(self) -> Keeper:
        """What it does for that."""

    async def drop(self) -> None:
        """Delete the tables, then close the store."""


class Administration(Store, area="admin"):
    """`Admin`."""

    def __init__(self, runner: KeptRunner) -> None:
        super().__init__(runner)
        self._kept = runner

    async def info(self, *, ctx: StateContext = NO_CONTEXT) -> StoreInfo:
        """Carry out `Admin.info`."""
        keeper = self._kept.keeper
        counts = await self._in_time(keeper.count_tables(), ctx, writes=False)
        size = await self._in_time(keeper.find_size(), ctx, writes=False)
        version, newest = await self._in_time(keeper.find_versions(), ctx, writes=False)
        return StoreInfo(
            schema_version=version,
            newest_version=newest,
            features=self._kept.features,
            retention=self._kept.retention,
            counts=counts,
            size=size,
        )

    async def migrate(
        self,
        *,
        dry_run: bool = False,
        apply_retention: bool = False,
        ctx: StateContext = NO_CONTEXT,
    ) -> Migration:
        """Carry out `Admin.migrate`."""
        keeper = self._kept.keeper
        version, newest = await self._in_time(keeper.find_versions(), ctx, writes=False)
        if dry_run:
            return Migration(from_version=version, to_version=newest)
        # It has to be open.
        await self._read(lambda _tx, _now: None, ctx, Needs(now=self._now(ctx)))
        rows = 0
        if apply_retention:
            changing = keeper.apply_retention(self._kept.retention)
            rows = await self._in_time(changing, ctx, writes=True)
        search = self._kept.search
        texts = 0 if search is None else await search.keep_all(ctx)
        return Migration(from_version=version, to_version=version, rows=rows, texts=texts)

    async def cleanup(self, *, ctx: StateContext = NO_CONTEXT) -> Mapping[str, int]:
        """Carry out `Admin.cleanup`."""
        return await self._in_time(self._kept.keeper.clean_up(self._now(ctx)), ctx, writes=True)

    async def drop(self) -> None:
        """Carry out `Admin.drop`."""
        await self._kept.drop()

    async def check_integrity(self, *, ctx: StateContext = NO_CONTEXT) -> Integrity:
        """Carry out `Admin.check_integrity`."""
        keeper = self._kept.keeper
        problems = Counter(await self._in_time(keeper.find_problems(), ctx, writes=False))
        count = after = 0
        while rows := await self._in_time(
            keeper.rows_after(after, _ROWS_AT_ONCE), ctx, writes=False
        ):
            count, after = count + len(rows), rows[-1][0]
            problems["unreadable_rows"] += sum(not _is_readable(row) for _, row in rows)
        return Integrity(rows=count, problems={name: n for name, n in problems.items() if n})

    async def erase_person(
        self, tenant: str | None, user_key: str, /, *, ctx: StateContext = NO_CONTEXT
    ) -> Mapping[str, int]:
        """Carry out `Admin.erase_person`."""
        finder = self._finder(tenant, user_key, ctx)
        erasure = Erasure(
            finder,
            lambda step, needs: self._write(step, ctx, needs),
            self._writing(ctx, finder.now),
        )
        await erasure.run()
        await self._in_time(self._kept.keeper.wipe(), ctx, writes=True)
        if erasure.busy is not None:
            raise ChatBusyError(
                "a turn of this person waits or runs; everything else is erased",
                code="turn_in_progress",
                hint="erase once more when it has ended",
            ) from erasure.busy
        return {store: erasure.receipt[store] for store in STORES}

    async def export_person(
        self, tenant: str | None, user_key: str, /, *, ctx: StateContext = NO_CONTEXT
    ) -> AsyncIterator[PersonRecord]:
        """Carry out `Admin.export_person`."""
        async for record in self._finder(tenant, user_key, ctx).records():
            yield record

    def _finder(self, tenant: str | None, user_key: str, ctx: StateContext) -> PersonFinder:
        return PersonFinder(
            Person(
                tenant=None if tenant is None else check_id(tenant, "tenant"),
                user_key=_checked(user_key),
            ),
            lambda step, needs: self._read(step, ctx, needs),
            self._now(ctx),
        )


def _is_readable(record: RowRecord) -> bool:
    try:
        decode_row(record)
    except StateError:
        return False
    return True


def _checked(user_key: object) -> str:
    """Return a user key; None would be everybody without one."""
    if isinstance(user_key, str) and user_key:
        return check_id(user_key, "user_key")
    raise InputError("must be a text that is not empty", path="user_key")
