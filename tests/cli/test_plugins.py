"""Installed plugins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.helpers import Invoke, document

ENTRIES = """
[vitehub_agent.drivers]
good = plugin_module:create
bad = missing_module:create
"""


@pytest.fixture
def others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with a driver that works and one that does not."""
    info = folder / "other-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: other\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (folder / "plugin_module.py").write_text("def create(config): ...\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "plugin_module", raising=False)


def statuses(found: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {each["name"]: each["status"] for each in found["plugins"]}


@pytest.mark.usefixtures("others")
def test_the_list_names_everything_and_imports_nothing(invoke: Invoke) -> None:
    found = document(invoke("plugins", "list", "--json"))
    listed = [each for each in found["plugins"] if each["name"] in {"chat", "good"}]
    assert [(each["group"], each["distribution"]) for each in listed] == [
        ("vitehub_agent.capabilities", "vitehub-chat"),
        ("vitehub_agent.drivers", "other"),
    ]
    assert "plugin_module" not in sys.modules


@pytest.mark.usefixtures("folder")
def test_the_doctor_finds_everything_of_ours_in_order(invoke: Invoke) -> None:
    found = document(invoke("plugins", "doctor", "--json"))
    ours = {each["name"]: each["status"] for each in found["plugins"]}
    assert set(ours.values()) == {"ok"}
    assert set(ours) >= {"chat", "file", "memory", "sqlite", "callable", "echo", "pydantic_ai"}


@pytest.mark.usefixtures("others")
def test_a_broken_plugin_exits_with_1_and_stops_no_other(invoke: Invoke) -> None:
    result = invoke("plugins", "doctor")
    assert result.exit_code == 1
    lines = {line.split()[1]: line for line in result.stdout.splitlines()}
    assert (lines["good"].split()[2], lines["bad"].split()[2]) == ("ok", "broken")
    assert "other 1.5" in lines["bad"]
    assert "No module named 'missing_module'" in lines["bad"]


@pytest.mark.usefixtures("folder")
def test_a_missing_extra_is_not_broken(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    result = invoke("plugins", "doctor", "--json")
    found = document(result)
    assert statuses(found)["pydantic_ai"] == "extra not installed"
    assert "vitehub-chat[models]" in str(found["plugins"])


def test_a_distribution_with_unreadable_entry_points_is_shown(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = folder / "torn-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: torn\nVersion: 2.0\n")
    (info / "entry_points.txt").write_bytes(b"\xff")
    monkeypatch.syspath_prepend(folder)
    result = invoke("plugins", "doctor")
    assert result.exit_code == 1
    line = next(line for line in result.stdout.splitlines() if "torn 2.0" in line)
    assert line.split()[2] == "broken"
