"""Every case of estimation that needs no files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import tokens_cases
from tests.cases.kinds import DATA

_ALL = json.loads((DATA / "tokens.json").read_text(encoding="utf-8"))["cases"]
_CASES = [body for body in _ALL if not tokens_cases.lacking_estimators(body)]


@pytest.mark.parametrize("body", _CASES, ids=lambda body: body["id"])
def test_case(body: dict[str, Any]) -> None:
    tokens_cases.run(body)


def test_only_what_needs_files_is_left_out() -> None:
    assert [body["id"] for body in _ALL if body not in _CASES] == ["T07"]
