"""The reference of estimators."""

from __future__ import annotations

from tests.examples.tokens_page import PAGE, build_page, read_counts
from vitehub_chat import plugins


def test_the_page_has_the_estimates_of_this_release() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == build_page(read_counts(page))


def test_every_estimator_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [entry.name for entry in plugins.token_estimators.entries()]
    assert [name for name in names if f"| `{name}` |" not in page] == []
