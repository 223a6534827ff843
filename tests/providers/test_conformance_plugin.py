"""The pytest plugin: one test per check, and what it says when something is amiss."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from vitehub_chat.testing import all_checks

pytest_plugins = ["pytester"]

TEST = """
def test_conformance(agent_state_check, agent_state_opener):
    agent_state_check.run(agent_state_opener)
"""

OPENER = """
import pytest
from vitehub_chat.state.opening import open_agent_state

@pytest.fixture
def agent_state_opener():
    return lambda clock, **options: open_agent_state("memory:", clock=clock, **options)
"""

ONE = ("-k", "summaries.the_last_summary_counts")
DURABLE = ("-k", "lifecycle.rows_survive_reopening")

LOADED = """
import json, sys, pytest
before = set(sys.modules)
import vitehub_chat.testing.pytest_plugin
print(json.dumps(sorted(
    name for name in set(sys.modules) - before
    if name.partition(".")[0] not in sys.stdlib_module_names
)))
"""


@pytest.fixture
def others(pytester: pytest.Pytester) -> pytest.Pytester:
    """Give a folder with the test of somebody else's provider."""
    pytester.makepyfile(OPENER + TEST)
    return pytester


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:asyncio", "-n0", *options
    )


def test_every_check_is_one_test(others: pytest.Pytester) -> None:
    result = run(others, "-q")
    outcomes = result.parseoutcomes()
    assert set(outcomes) == {"passed", "skipped"}
    assert sum(outcomes.values()) == len(all_checks())
    run(others, "-v", *ONE).stdout.fnmatch_lines(["*summaries.the_last_summary_counts* PASSED*"])


def test_a_broken_rule_is_told(pytester: pytest.Pytester) -> None:
    broken = OPENER.replace(
        "    return",
        "    from vitehub_chat.state.steps import listing\n"
        "    listing.replace_surrogates = lambda text: 'another'\n"
        "    return",
    )
    pytester.makepyfile(broken + TEST)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n0", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*what was saved: ('another', *, expected ('first', *"])


def test_a_missing_feature_is_a_named_skip(others: pytest.Pytester) -> None:
    result = run(others, "-rs", *DURABLE)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*the provider lacks: durable"])


def test_a_required_feature_that_is_missing_fails(others: pytest.Pytester) -> None:
    result = run(others, *DURABLE, "--agent-state-require=search, durable")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the provider lacks: durable (see --agent-state-require)"])


def test_a_feature_that_nobody_knows_cannot_be_required(others: pytest.Pytester) -> None:
    result = run(others, *ONE, "--agent-state-require=durabel")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*unknown features durabel; known: durable, *"])


def test_a_forgotten_fixture_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TEST)
    result = run(pytester, *ONE)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["override the fixture 'agent_state_opener': *"])


def test_the_plugin_loads_nothing_but_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", LOADED],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = ["vitehub_chat", "vitehub_chat.testing", "vitehub_chat.testing.pytest_plugin"]
    assert json.loads(done.stdout) == expected
