"""The pytest plugin: every check of Agent State providers as one test.

A test that takes `agent_state_check` is run once per check; `agent_state_check.run(opener)` runs
that one. The fixture `agent_state_opener` is to be overridden beside it.

Every pytest of an environment loads this module, so it imports nothing but pytest.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from vitehub_chat.testing.checks.registry import Check, OpenState

_FIXTURE = "agent_state_check"
_OPTION = "--agent-state-require"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that turns skips into failures."""
    parser.getgroup("vitehub-chat").addoption(
        _OPTION,
        metavar="FEATURES",
        default="",
        help="fail, not skip, where a provider lacks one of these features, separated by commas",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes a check once per check."""
    if _FIXTURE in metafunc.fixturenames:
        from vitehub_chat.testing.checks.catalogue import all_checks  # noqa: PLC0415

        checks = all_checks()
        metafunc.parametrize(_FIXTURE, checks, indirect=True, ids=[each.name for each in checks])


@pytest.fixture
def agent_state_opener() -> OpenState:
    """Say that it is to be overridden."""
    pytest.fail(
        "override the fixture 'agent_state_opener': it returns a callable that takes a clock, and"
        " options if the provider has some, and returns a closed state, of one store every time",
        pytrace=False,
    )


@pytest.fixture
def agent_state_check(request: pytest.FixtureRequest) -> AgentStateCheck:
    """Give one check of Agent State providers."""
    option = request.config.getoption(_OPTION)
    return AgentStateCheck(request.param, _features(str(option)))


class AgentStateCheck:
    """One check, to be run on a provider."""

    def __init__(self, check: Check, required: frozenset[str]) -> None:
        self._check = check
        self._required = required

    def run(self, open_state: OpenState) -> None:
        """Run the check in an event loop of its own.

        Skips the test if the provider lacks a feature that the check needs, or fails it if that
        feature is required.
        """
        from vitehub_chat.testing.conformance import run_checks  # noqa: PLC0415

        (result,) = asyncio.run(run_checks(open_state, checks=[self._check]))
        if result.error is not None:
            raise result.error
        if result.outcome == "skipped":
            missing = f"the provider lacks: {', '.join(result.missing)}"
            if self._required.intersection(result.missing):
                pytest.fail(f"{missing} (see {_OPTION})", pytrace=False)
            pytest.skip(missing)


def _features(option: str) -> frozenset[str]:
    """Return the features that an option names."""
    from vitehub_chat.testing.checks.registry import FEATURES  # noqa: PLC0415

    named = frozenset(filter(None, map(str.strip, option.split(","))))
    unknown = sorted(named - set(FEATURES))
    if unknown:
        raise pytest.UsageError(
            f"{_OPTION}: unknown features {', '.join(unknown)}; known: {', '.join(FEATURES)}"
        )
    return named
