"""Checks are run one by one, and told apart: kept, broken, or beside the point."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from vitehub_chat.errors import ConfigError, StateUnavailableError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.providers.memory import MemoryAgentState, open_memory
from vitehub_chat.testing import FakeClock, all_checks, conformance, run_checks
from vitehub_chat.testing.checks.expecting import equal, no, present, refused, yes
from vitehub_chat.testing.checks.registry import FEATURES, CheckGroup, OpenState
from vitehub_chat.testing.conformance import CheckResult, find_features


def open_named(clock: Clock, **options: Any) -> AgentState:
    return open_memory("memory:runner", clock=clock, **options)


def open_apart(clock: Clock) -> AgentState:
    return open_memory("memory:", clock=clock)


def test_checks_have_names_rules_and_coroutines_of_their_own() -> None:
    checks = all_checks()
    names = [check.name for check in checks]
    assert sorted(set(names)) == sorted(names)
    assert [check.name for check in checks if not check.rule.endswith(".")] == []
    assert [check.name for check in checks if not inspect.iscoroutinefunction(check.run)] == []


async def test_a_check_that_keeps_quiet_is_kept_and_one_that_raises_is_broken() -> None:
    group = CheckGroup("some")

    @group
    async def check_fine(open_state: OpenState, clock: FakeClock) -> None:
        async with open_state(clock):
            equal(1, 1, "one")

    @group
    async def check_wrong(open_state: OpenState, clock: FakeClock) -> None:
        async with open_state(clock):
            equal(1, 2, "the number")

    @group
    async def check_breaks(_open_state: OpenState, _clock: FakeClock) -> None:
        raise StateUnavailableError

    results = await run_checks(open_named, checks=group.checks)
    outcomes = [(each.name, each.outcome, str(each.error or "")) for each in results]
    assert outcomes == [
        ("some.fine", "ok", ""),
        ("some.wrong", "failed", "the number: 1, expected 2"),
        ("some.breaks", "failed", "The Agent State did not answer."),
    ]


async def test_a_check_that_needs_what_is_not_there_is_skipped_by_name() -> None:
    group = CheckGroup("some")

    @group.needs("durable", "options")
    async def check_lasting(_open_state: OpenState, _clock: FakeClock) -> None:
        raise AssertionError("must not run")

    results = await run_checks(open_apart, checks=group.checks)
    skipped = CheckResult(name="some.lasting", outcome="skipped", missing=("durable", "options"))
    assert results == [skipped]


async def test_a_check_that_hangs_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "TIMEOUT_SECONDS", 0.0)
    group = CheckGroup("some")

    @group
    async def check_hanging(_open_state: OpenState, _clock: FakeClock) -> None:
        await asyncio.Event().wait()

    results = await run_checks(open_named, checks=group.checks)
    assert [type(each.error) for each in results] == [TimeoutError]


async def test_states_that_a_check_left_open_are_closed() -> None:
    group, opened = CheckGroup("some"), list[MemoryAgentState]()

    def open_and_keep(clock: Clock) -> AgentState:
        opened.append(open_memory("memory:", clock=clock))
        return opened[-1]

    @group
    async def check_careless(open_state: OpenState, clock: FakeClock) -> None:
        await open_state(clock).__aenter__()

    await run_checks(open_and_keep, checks=group.checks)
    assert [state._is_open for state in opened] == [False] * len(opened)


async def test_one_store_options_and_steps_are_found_out() -> None:
    assert await find_features(open_named) == {"one_store", "options", "search", "steps"}
    assert await find_features(open_apart) == {"search", "steps"}


async def test_a_store_that_cannot_be_opened_is_no_result() -> None:
    def open_wrong(clock: Clock) -> AgentState:
        return open_memory("memory:", clock=clock, cleanup_interval_ms="often")

    with pytest.raises(ConfigError):
        await run_checks(open_wrong)


def test_an_unknown_feature_cannot_be_needed() -> None:
    with pytest.raises(ValueError, match=r"unknown features: \['lasting'\]"):
        CheckGroup("some").needs("lasting")
    assert {need for check in all_checks() for need in check.needs} <= set(FEATURES)


async def test_what_is_wrong_is_said_in_short() -> None:
    async def answer() -> str:
        return "x" * 1000

    with pytest.raises(AssertionError, match=r"^a thing is missing$"):
        present(None, "a thing")
    with pytest.raises(AssertionError, match=r"^is it so: False, expected True$"):
        yes(fact=False, question="is it so")
    with pytest.raises(AssertionError, match=r"^is it so: True, expected False$"):
        no(fact=True, question="is it so")
    with pytest.raises(AssertionError, match=r"… \(1002 characters\), expected ConfigError$"):
        await refused(ConfigError, answer(), "a call")
