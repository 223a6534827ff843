"""Every case of formatting."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import formatting_cases
from tests.cases.kinds import DATA

_CASES = json.loads((DATA / "formatting.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("body", _CASES, ids=lambda body: body["id"])
async def test_case(body: dict[str, Any]) -> None:
    await formatting_cases.run(body)


def test_all_cases_are_run() -> None:
    assert [body["id"] for body in _CASES] == [f"F{number:02}" for number in range(1, 24)]
