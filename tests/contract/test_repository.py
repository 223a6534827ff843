"""The repository around the package: its files, its changelog, its metadata."""

from __future__ import annotations

import inspect
import re
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

DISTRIBUTION = metadata.distribution("vitehub-chat")
TOP_LEVEL = {
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "docs",
    "examples",
    "pyproject.toml",
    "tests",
    "uv.lock",
    "vitehub_chat",
}


def test_the_top_level_holds_nothing_unplaced(repository: Path) -> None:
    names = {path.name for path in repository.iterdir() if not path.name.startswith(".")}
    assert names - TOP_LEVEL == set()


def test_the_case_files_equal_the_shared_ones(repository: Path) -> None:
    shared = repository.parent / "shared" / "cases"
    if not shared.is_dir():
        pytest.skip("there is no ../shared/cases beside this checkout")
    assert contents(repository / "tests" / "cases" / "data") == contents(shared)


def test_the_newest_changelog_heading_is_the_version_or_unreleased(repository: Path) -> None:
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## \[?([^\]\s]+)", changelog, flags=re.MULTILINE)[0]
    assert newest in {"Unreleased", DISTRIBUTION.version}


@pytest.mark.parametrize(
    "entry", DISTRIBUTION.entry_points, ids=lambda entry: f"{entry.group}-{entry.name}"
)
def test_every_entry_point_names_something_that_exists(entry: metadata.EntryPoint) -> None:
    loaded = entry.load()
    assert inspect.ismodule(loaded) if entry.group == "pytest11" else callable(loaded)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
