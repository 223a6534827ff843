"""Conformance: running the checks of Agent State providers, with pytest or without."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Final, Literal

import attrs

from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.checks.catalogue import all_checks
from vitehub_chat.testing.checks.material import append, new_key, stored_ids
from vitehub_chat.testing.checks.registry import Check, OpenState
from vitehub_chat.testing.clock import FakeClock

TIMEOUT_SECONDS: Final = 120.0
"""How long one check may take; one that hangs has failed."""


@attrs.frozen(kw_only=True)
class CheckResult:
    """What became of one check.

    Attributes:
        name: The name of the check.
        outcome: `ok`, `failed`, or `skipped` because of the features that are `missing`.
        missing: The features that the provider does not have, of those that the check needs.
        error: Why it failed, or None.
    """

    name: str
    outcome: Literal["ok", "failed", "skipped"]
    missing: tuple[str, ...] = ()
    error: BaseException | None = None


async def run_checks(
    open_state: OpenState, /, *, checks: Iterable[Check] | None = None
) -> Sequence[CheckResult]:
    """Run checks one after the other and return what became of each.

    Args:
        open_state: Called with a clock, it returns a closed Agent State; the states of all calls
            have one store. If it takes options, too, they are those of `open_agent_state`. Checks
            use conversations of their own, so the store may have been used before.
        checks: Which ones, None is every one.

    Raises:
        ChatError: The store cannot be opened at all.
    """
    return [result async for result in iterate_checks(open_state, checks=checks)]


async def iterate_checks(
    open_state: OpenState, /, *, checks: Iterable[Check] | None = None
) -> AsyncIterator[CheckResult]:
    """Run checks like `run_checks`, and yield every result as soon as it is there."""
    features = await find_features(open_state)
    for check in all_checks() if checks is None else checks:
        missing = tuple(sorted(check.needs - features))
        if missing:
            yield CheckResult(name=check.name, outcome="skipped", missing=missing)
        else:
            yield await _run(check, open_state)


async def find_features(open_state: OpenState, /) -> frozenset[str]:
    """Return what a provider declares and whether it has steps, and what the opener has.

    That is `one_store` and `options`.
    """
    clock = FakeClock()
    async with open_state(clock) as state:
        found = set(state.features)
        if found & {"durable", "shared"} or await _have_one_store(state, open_state(clock)):
            found.add("one_store")
        if isinstance(state, SteppedAgentState):
            found.add("steps")
    if _takes_options(open_state):
        found.add("options")
    return frozenset(found)


async def _have_one_store(state: AgentState, other: AgentState) -> bool:
    key = new_key()
    await append(state, key, "m1")
    async with other:
        return await stored_ids(other, key) == ["m1"]


def _takes_options(open_state: OpenState) -> bool:
    parameters = inspect.signature(open_state).parameters.values()
    return any(each.kind is each.VAR_KEYWORD for each in parameters)


async def _run(check: Check, open_state: OpenState) -> CheckResult:
    async with AsyncExitStack() as opened:

        def open_and_note(clock: FakeClock, **options: object) -> AgentState:
            state = open_state(clock, **options)
            opened.push_async_callback(state.aclose)
            return state

        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await check.run(open_and_note, FakeClock())
        except Exception as error:  # noqa: BLE001 - whatever a provider raises is a failure
            return CheckResult(name=check.name, outcome="failed", error=error)
        return CheckResult(name=check.name, outcome="ok")
