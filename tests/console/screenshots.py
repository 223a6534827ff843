"""Takes the pictures of the documentation: `python -m tests.console.screenshots FOLDER`."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.console.desk import Desk, text
from tests.console.test_reading import HOSTILE
from tests.console.viewer import Chromium, Viewer

SAID = [
    "I moved last week. How do I change the address of my order?",
    "It is order 4711, the one with the lamp.",
    "Will it still be there before Friday?",
    "And can somebody else take the parcel in?",
    "My neighbour is called Ada.",
]
BEGINS = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
WIDTH, HEIGHT = 1100, 640


def answer(call: Any) -> str:
    """Answer like somebody of a shop."""
    return {
        SAID[0]: "Which order is it?",
        SAID[1]: "Thank you. The lamp goes to your new address now.",
        SAID[2]: "Yes, it leaves our house tomorrow.",
        SAID[3]: "Of course. Whom may I write down?",
    }.get(call.text, "Done: the parcel may be left with Ada.")


def furnish(desk: Desk) -> None:
    """Fill a desk with conversations."""
    desk.store(
        [text("g1", "The invoice is empty."), text("g2", "Fixed.", "assistant")],
        "acme/shop#7",
        "github",
    )
    desk.store([text("h1", HOSTILE), text("h2", "I cannot do that.", "assistant")], "hostile")
    for number, words in enumerate(SAID):
        at = BEGINS + timedelta(minutes=number)
        desk.turn(text(f"m{number}", words, createdAt=at.isoformat()), "order-4711")


def take(viewer: Viewer, path: Path) -> None:
    """Write what is shown as a picture."""
    viewer.do(lambda page: page.mouse.move(0, 0))
    viewer.do(lambda page: page.screenshot(path=path))


def main(folder: Path) -> None:
    """Take every picture."""
    options = {"context": {"window_tokens": 400, "reserve_output_tokens": 50}}
    browser = shutil.which("chromium") or ""
    with (
        Desk("memory:screenshots", driver=answer, options=options) as desk,
        Chromium.started(browser) as chromium,
        chromium.page() as page,
    ):
        furnish(desk)
        viewer = Viewer(chromium, page, desk)
        viewer.do(lambda page: page.set_viewport_size({"width": WIDTH, "height": HEIGHT}))
        viewer.enter()
        viewer.settle()
        take(viewer, folder / "console-list.png")
        viewer.click("#rows li:last-child button:has-text('Given')")
        viewer.until(lambda: viewer.is_visible("#panel .entries"))
        take(viewer, folder / "console-given.png")
        viewer.open("hostile")
        viewer.settle()
        take(viewer, folder / "console-hostile.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
