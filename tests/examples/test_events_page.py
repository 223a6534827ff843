"""The reference of events."""

from __future__ import annotations

from tests.examples.events_page import PAGE, build_page
from tests.examples.extras import need


def test_the_page_is_that_of_the_code() -> None:
    need("opentelemetry")
    assert PAGE.read_text(encoding="utf-8") == build_page()
