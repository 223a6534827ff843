"""A viewer: somebody who looks at a console in a browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.console.desk import Desk
from tests.conversation.station import LIMIT_S

T = TypeVar("T")

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ROWS = "() => [...document.querySelectorAll('#rows > li')].map((row) => Number(row.dataset.seq))"
IS_BUSY = "() => document.getElementById('log').getAttribute('aria-busy') === 'true'"
TOP = "(seq) => document.querySelector(`#rows > [data-seq='${seq}']`).getBoundingClientRect().top"
FOCUSED = "() => document.activeElement.id || document.activeElement.innerText"


class Chromium:
    """A browser in a thread of its own: playwright keeps an event loop running there."""

    def __init__(self, pool: ThreadPoolExecutor, browser: Browser) -> None:
        self._pool = pool
        self._browser = browser

    @classmethod
    @contextmanager
    def started(cls, path: str) -> Iterator[Chromium]:
        """Start the browser at a path and close it in the end."""
        with ThreadPoolExecutor(1, "chromium") as pool:
            playwright = pool.submit(lambda: sync_playwright().start()).result()
            launch = playwright.chromium.launch
            browser = pool.submit(lambda: launch(executable_path=path, args=ARGUMENTS)).result()
            try:
                yield cls(pool, browser)
            finally:
                pool.submit(browser.close).result()
                pool.submit(playwright.stop).result()

    def run(self, work: Callable[[], T]) -> T:
        """Do something in the thread of the browser."""
        return self._pool.submit(work).result()

    @contextmanager
    def page(self) -> Iterator[Page]:
        """Give a page that knows nothing of the others."""
        size: Any = {"width": 1280, "height": 800}
        context = self.run(lambda: self._browser.new_context(viewport=size, locale="en-GB"))
        self.run(lambda: context.set_default_timeout(LIMIT_S * 1000))
        try:
            yield self.run(context.new_page)
        finally:
            self.run(context.close)


class Viewer:
    """Looks at a console.

    Attributes:
        desk: The console.
        problems: What the browser complained about: errors of scripts, refusals of the policy.
    """

    def __init__(self, chromium: Chromium, page: Page, desk: Desk) -> None:
        self.desk = desk
        self.problems: list[str] = []
        self._chromium = chromium
        self._page = page
        self.do(lambda page: page.on("pageerror", lambda error: self.problems.append(str(error))))
        self.do(lambda page: page.on("console", self._note))

    def _note(self, message: ConsoleMessage) -> None:
        is_answer = message.text.startswith("Failed to load resource")  # 404 and the like
        if message.type in {"error", "warning"} and not is_answer:
            self.problems.append(message.text)

    def do(self, work: Callable[[Page], T]) -> T:
        """Do something with the page."""
        return self._chromium.run(lambda: work(self._page))

    def enter(self) -> None:
        """Open the link and wait until the newest conversation is there."""
        self.do(lambda page: page.goto(self.desk.link))
        self.do(lambda page: page.wait_for_url(f"{self.desk.address}/"))
        self.until(lambda: bool(self.rows()) or self.is_visible("#chat"))

    def open(self, name: str) -> None:
        """Open a conversation of the list."""
        self.click(f"#sessions button:has-text('{name}')")
        self.until(lambda: self.text("#title") == name and bool(self.rows()))

    def click(self, selector: str) -> None:
        """Click on something."""
        self.do(lambda page: page.click(selector))

    def text(self, selector: str) -> str:
        """Return the visible text of something."""
        return self.do(lambda page: page.inner_text(selector))

    def texts(self, selector: str) -> list[str]:
        """Return the visible texts of all that match."""
        return self.do(lambda page: page.locator(selector).all_inner_texts())

    def is_visible(self, selector: str) -> bool:
        """Tell whether something is there and can be seen."""
        return self.do(lambda page: page.is_visible(selector))

    def ask(self, script: str, argument: Any = None) -> Any:
        """Run a function in the page and return its value."""
        return self.do(lambda page: page.evaluate(script, argument))

    def rows(self) -> list[int]:
        """Return the numbers of the rows in the document."""
        found: list[int] = self.ask(ROWS)
        return found

    def settle(self) -> list[int]:
        """Wait until nothing is being loaded and return the numbers of the rows."""
        self.until(lambda: not self.ask(IS_BUSY))
        return self.rows()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; waiting in the page would be refused by its policy."""
        give_up_at = time.monotonic() + LIMIT_S
        while not holds():
            assert time.monotonic() < give_up_at, "it never came to hold"
            self.do(lambda page: page.wait_for_timeout(20))

    def top_of(self, seq: int) -> float:
        """Return where a row is on the screen."""
        found: float = self.ask(TOP, seq)
        return found

    def focused(self) -> str:
        """Return what has the focus: its id, or its text."""
        found: str = self.ask(FOCUSED)
        return found

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.do(lambda page, key=key: page.keyboard.press(key))  # type: ignore[misc]

    def go_to(self, name: str, key: str = "Tab", most: int = 60) -> None:
        """Press a key until something has the focus, named as `focused` does."""
        for _ in range(most):
            if self.focused().startswith(name):
                return
            self.press(key)
        raise AssertionError(f"{key} never led to {name!r}, but to {self.focused()!r}")
