"""Mutants whose values, plans or rolling summaries are wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from tests.providers.mutants.mutant import Mutant
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.rolling import Checkpoint, Rolling, RollingWrite
from vitehub_chat.state.memory import documents
from vitehub_chat.state.memory.documents import MemoryDocuments
from vitehub_chat.state.records import DocumentKind, DocumentRecord
from vitehub_chat.state.steps import key_values, rolling
from vitehub_chat.state.steps.key_values import ValuePlace
from vitehub_chat.state.stores import key_values as values_store
from vitehub_chat.state.stores.key_values import KeyValues
from vitehub_chat.state.tables import Transaction


def expires_a_moment_late(_is_expired: Any) -> Any:
    def mutated(document: DocumentRecord, now: int) -> bool:
        return document.expires_at is not None and document.expires_at < now

    return mutated


def keeps_the_old_expiry(put: Callable[..., None]) -> Any:
    def mutated(
        tx: Transaction, place: ValuePlace, body: str, expires_at: int | None, now: int
    ) -> None:
        before = tx.documents.get(place.home, "value", place.name, now)
        put(tx, place, body, expires_at if before is None else before.expires_at, now)

    return mutated


def looks_before_it_sets(_set_if_absent: Any) -> Any:
    async def mutated(self: KeyValues, key: str, /, *, scope: Any, **more: Any) -> bool:
        if await self.get(key, scope=scope) is not None:
            return False
        await asyncio.sleep(0)
        await self.set(key, scope=scope, **more)
        return True

    return mutated


def compares_like_python(_canonical: Any) -> Any:
    def mutated(value: Json) -> Json:
        return value

    return mutated


def keeps_the_oldest_items(append_to_list: Callable[..., int]) -> Any:
    def mutated(
        tx: Transaction, place: ValuePlace, added: Sequence[Json], limit: int | None, *rest: Any
    ) -> int:
        there = len(key_values.get_list(tx, place, rest[-1]))
        room = len(added) if limit is None else max(limit - there, 0)
        return append_to_list(tx, place, added[:room], limit, *rest)

    return mutated


def takes_the_last_item(get_list: Callable[..., list[Json]]) -> Any:
    def mutated(found: DocumentRecord) -> list[Json]:
        return list(reversed(get_list(found)))

    return mutated


def forgets_the_scope(place_of: Callable[..., ValuePlace]) -> Any:
    def mutated(key: object, scope: Any) -> ValuePlace:
        place = place_of(key, scope)
        parts = () if scope is None else attrs.astuple(scope)
        return ValuePlace("", "".join(part or "" for part in parts) + place.name)

    return mutated


def folds_case(get: Callable[..., DocumentRecord | None]) -> Any:
    def mutated(
        self: MemoryDocuments, home: str, kind: DocumentKind, name: str, now: int, /
    ) -> DocumentRecord | None:
        return get(self, home, kind, name.lower(), now) or get(self, home, kind, name, now)

    return mutated


def keeps_every_value_forever(_keep_forever: Any) -> Any:
    def mutated(self: MemoryDocuments) -> None:
        for document in list(self._documents._records.values()):
            self.put(attrs.evolve(document, expires_at=None))

    return mutated


def rescues_nothing(_keep_forever: Any) -> Any:
    def mutated(_self: MemoryDocuments) -> None:
        return None

    return mutated


def deletes_nothing(_delete_of: Any) -> Any:
    def mutated(
        self: MemoryDocuments, home: str, session_key: int | None, _now: int, /
    ) -> Mapping[str, int]:
        found = self._documents.all(self._homes.keys((home, session_key)))
        return {each.kind: 2 for each in found}

    return mutated


def takes_the_first(_newest: Any) -> Any:
    def mutated(
        self: MemoryDocuments, home: str, kind: DocumentKind, session_key: int, _now: int, /
    ) -> DocumentRecord | None:
        return self._documents.get(self._series.first((home, kind, session_key)))

    return mutated


def forgets_the_version(change: Callable[..., RollingWrite]) -> Any:
    def mutated(
        tx: Transaction, key: Any, session_id: str | None, since: Rolling, *rest: Any
    ) -> RollingWrite:
        found = rolling.get_rolling(tx, key, session_id, rest[-1].now)
        version = since.version if found is None else found.version
        return change(tx, key, session_id, attrs.evolve(since, version=version), *rest)

    return mutated


def forgets_the_generation(change: Callable[..., RollingWrite]) -> Any:
    def mutated(
        tx: Transaction, key: Any, session_id: str | None, since: Rolling, *rest: Any
    ) -> RollingWrite:
        found = rolling.get_rolling(tx, key, session_id, rest[-1].now)
        return change(tx, key, session_id, found or since, *rest)

    return mutated


def thins_nothing(_thin: Any) -> Any:
    def mutated(checkpoints: Sequence[Checkpoint], _roll: Any) -> Sequence[Checkpoint]:
        return checkpoints

    return mutated


MUTANTS = (
    Mutant(
        name="lets values expire a moment late",
        target=documents,
        attribute="_is_expired",
        replace=expires_a_moment_late,
        caught_by="values.a_value_is_gone_exactly_in_time",
    ),
    Mutant(
        name="lets plans expire a moment late",
        target=documents,
        attribute="_is_expired",
        replace=expires_a_moment_late,
        caught_by="plans.a_plan_lives_as_long_as_rows",
    ),
    Mutant(
        name="keeps the old expiry of a value",
        target=key_values,
        attribute="put",
        replace=keeps_the_old_expiry,
        caught_by="values.setting_again_sets_the_expiry_anew",
    ),
    Mutant(
        name="keeps the old expiry of a list",
        target=key_values,
        attribute="put",
        replace=keeps_the_old_expiry,
        caught_by="values.an_append_sets_the_expiry_of_the_whole_list",
    ),
    Mutant(
        name="looks for a value before it sets it",
        target=KeyValues,
        attribute="set_if_absent",
        replace=looks_before_it_sets,
        caught_by="values.an_absent_value_is_set_once",
    ),
    Mutant(
        name="compares values like Python",
        target=key_values,
        attribute="_canonical",
        replace=compares_like_python,
        caught_by="values.a_value_is_changed_only_from_what_is_expected",
    ),
    Mutant(
        name="keeps the oldest items of a list",
        target=key_values,
        attribute="append_to_list",
        replace=keeps_the_oldest_items,
        caught_by="values.a_list_keeps_its_newest_items",
    ),
    Mutant(
        name="takes the last item of a list",
        target=key_values,
        attribute="_items_of",
        replace=takes_the_last_item,
        caught_by="values.popping_takes_the_oldest_item",
    ),
    Mutant(
        name="forgets the scope of a key",
        target=values_store,
        attribute="place_of",
        replace=forgets_the_scope,
        caught_by="values.scopes_stay_apart",
    ),
    Mutant(
        name="folds the case of keys",
        target=MemoryDocuments,
        attribute="get",
        replace=folds_case,
        caught_by="values.keys_of_any_name_stay_apart",
    ),
    Mutant(
        name="keeps every value forever",
        target=MemoryDocuments,
        attribute="keep_forever",
        replace=keeps_every_value_forever,
        caught_by="values.forever_rescues_no_value",
    ),
    Mutant(
        name="rescues no plan",
        target=MemoryDocuments,
        attribute="keep_forever",
        replace=rescues_nothing,
        caught_by="plans.forever_keeps_plans",
    ),
    Mutant(
        name="rescues no rolling summary",
        target=MemoryDocuments,
        attribute="keep_forever",
        replace=rescues_nothing,
        caught_by="rolling.forever_keeps_summaries",
    ),
    Mutant(
        name="keeps values when it clears",
        target=MemoryDocuments,
        attribute="delete_of",
        replace=deletes_nothing,
        caught_by="values.clearing_a_conversation_deletes_its_values",
    ),
    Mutant(
        name="keeps plans when it clears",
        target=MemoryDocuments,
        attribute="delete_of",
        replace=deletes_nothing,
        caught_by="plans.clearing_deletes_plans",
    ),
    Mutant(
        name="returns the oldest plan",
        target=MemoryDocuments,
        attribute="newest",
        replace=takes_the_first,
        caught_by="plans.the_newest_plan_is_of_the_turn_that_ended_last",
    ),
    Mutant(
        name="forgets the version of a summary",
        target=rolling,
        attribute="_change",
        replace=forgets_the_version,
        caught_by="rolling.one_of_many_rolls_is_kept",
    ),
    Mutant(
        name="forgets the generation of a session",
        target=rolling,
        attribute="_change",
        replace=forgets_the_generation,
        caught_by="rolling.a_roll_of_a_cleared_session_is_refused",
    ),
    Mutant(
        name="thins no checkpoints",
        target=rolling,
        attribute="_thin",
        replace=thins_nothing,
        caught_by="rolling.old_checkpoints_are_thinned",
    ),
)
