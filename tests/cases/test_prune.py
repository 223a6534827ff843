"""Every case of pruning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import prune_cases
from tests.cases.kinds import DATA

_CASES = json.loads((DATA / "prune.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("body", _CASES, ids=lambda body: body["id"])
def test_case(body: dict[str, Any]) -> None:
    prune_cases.run(body)


def test_all_cases_are_run() -> None:
    plain = [f"P{number:02}" for number in range(1, 24) if number != 18]
    assert sorted(body["id"] for body in _CASES) == sorted([*plain, "P18a", "P18b"])
