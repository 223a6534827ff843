"""Every case of the folder of cases, and what the runner makes of other folders."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.cases.kinds import DATA, KINDS, Case, read_folder


async def test_case(case: Case, state: str | None, tmp_path: Path) -> None:
    url = f"file:{tmp_path}/state.db" if state == "file:" else state
    await KINDS[case.kind].run(case, url)


def test_every_case_is_run_but_for_what_needs_a_missing_feature() -> None:
    folder = read_folder(DATA)
    assert Counter(case.kind for case in folder.cases) == {
        "flush": 7,
        "formatting": 23,
        "history": 15,
        "prune": 24,
        "rolling": 24,
        "selection": 64,
        "tokens": 7,
    }
    assert folder.left_out == ()


@pytest.mark.parametrize("name", ["weather.json", "Selection.json", "1.json"])
def test_a_file_of_an_unknown_kind_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"cases": []}', encoding="utf-8")
    with pytest.raises(pytest.UsageError, match=name):
        read_folder(tmp_path)


@pytest.mark.parametrize("names", [[], ["flush.json"]])
def test_a_folder_without_a_case_to_run_is_an_error(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text('{"cases": []}', encoding="utf-8")
    with pytest.raises(pytest.UsageError, match=tmp_path.name):
        read_folder(tmp_path)
