"""The checks notice what they are there for: each mutant of the provider in memory is caught."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.providers.mutants import of_documents, of_histories, of_search, of_steps, of_tables
from tests.providers.mutants.mutant import Mutant
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.providers.memory import open_memory
from vitehub_chat.testing import all_checks, run_checks
from vitehub_chat.testing.checks.registry import Check, OpenState

MUTANTS = (
    *of_tables.MUTANTS,
    *of_steps.MUTANTS,
    *of_documents.MUTANTS,
    *of_histories.MUTANTS,
    *of_search.MUTANTS,
)


async def run_apart(checks: Iterable[Check]) -> dict[str, str]:
    """Run each check on a store of its own, and return the outcomes by name."""
    outcomes: dict[str, str] = {}
    for check in checks:
        (result,) = await run_checks(opener(check.name), checks=[check])
        outcomes[result.name] = result.outcome
    return outcomes


def opener(name: str) -> OpenState:
    url = f"memory:{name} {new_id()}"

    def open_state(clock: Clock, **options: Any) -> AgentState:
        return open_memory(url, clock=clock, **options)

    return open_state


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
async def test_the_kit_catches(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(mutant.target, mutant.attribute)
    monkeypatch.setattr(mutant.target, mutant.attribute, mutant.replace(right))
    group = mutant.caught_by.partition(".")[0]
    checks = [each for each in all_checks() if each.name.startswith(f"{group}.")]
    outcomes = await run_apart(checks)
    assert mutant.caught_by in {name for name, each in outcomes.items() if each == "failed"}


async def test_what_is_not_broken_passes_all_of_these_checks() -> None:
    names = {mutant.caught_by for mutant in MUTANTS}
    checks = [each for each in all_checks() if each.name in names]
    assert await run_apart(checks) == dict.fromkeys(names, "ok")
