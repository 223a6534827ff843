"""The reference of options."""

from __future__ import annotations

from tests.examples.options_page import PAGE, build_page


def test_the_page_is_that_of_the_models() -> None:
    assert PAGE.read_text(encoding="utf-8") == build_page()
