"""A long conversation in a real browser: few rows at a time, and none of them jumps."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route

from tests.console.conftest import Look, SetDesk
from tests.console.desk import Desk, text
from tests.console.viewer import Viewer

pytestmark = pytest.mark.browser

MOST = 100
HISTORY_OF_T1 = "**/api/history?*t1*"
# Whoever listens to scrolling has heard of it after two frames.
SCROLL = """async (by) => {
  document.getElementById('log').scrollBy(0, by);
  for (const _ of '12') await new Promise(requestAnimationFrame);
}"""
IS_AT_END = """() => {
  const box = document.getElementById('log');
  return box.scrollHeight - box.clientHeight - box.scrollTop < 2;
}"""
SCROLL_AND_NOTE = """async (by) => {
  const box = document.getElementById('log');
  box.scrollBy(0, by);
  const top = box.getBoundingClientRect().top;
  const rows = [...document.querySelectorAll('#rows > li')];
  const row = rows.find((each) => each.getBoundingClientRect().bottom > top);
  const place = row.getBoundingClientRect().top;
  for (const _ of '12') await new Promise(requestAnimationFrame);
  return [Number(row.dataset.seq), place];
}"""


def let_go(page: Page, route: Route) -> None:
    """Let a request go on and wait for its answer."""
    with page.expect_response(route.request.url) as answer:
        route.continue_()
    answer.value.finished()


def lines(count: int) -> list[dict[str, object]]:
    """Return messages of different heights."""
    return [text(f"m{n}", "\n".join(["line"] * (n % 5 + 1))) for n in range(1, count + 1)]


@pytest.fixture
def desk(set_desk: SetDesk) -> Desk:
    """Give a console with a conversation of 400 messages."""
    desk = set_desk()
    desk.store(lines(400))
    return desk


@pytest.fixture
def viewer(desk: Desk, look: Look) -> Viewer:
    """Give somebody who looks at it."""
    viewer = look(desk)
    viewer.enter()
    return viewer


def test_a_conversation_opens_at_its_newest_message(viewer: Viewer) -> None:
    assert viewer.settle()[-1] == 400
    assert viewer.ask(IS_AT_END) is True


@pytest.mark.slow
def test_5000_messages_to_the_oldest_and_back_within_100_rows(
    set_desk: SetDesk, look: Look
) -> None:
    desk = set_desk()
    desk.store(lines(5000))
    viewer = look(desk)
    viewer.enter()
    for pixels, end, last in ((-4000, 0, 1), (4000, -1, 5000)):
        seen: set[int] = set()
        while last not in seen:
            viewer.ask(SCROLL, pixels)
            rows = viewer.settle()
            assert len(rows) <= MOST
            assert rows == list(range(rows[0], rows[-1] + 1))
            seen.update(rows)
        assert rows[end] == last
        assert seen == set(range(1, 5001))


@pytest.mark.parametrize(("pixels", "end", "last"), [(-1300, 0, 1), (1300, -1, 400)])
def test_the_first_visible_row_keeps_its_place_while_a_page_is_loaded(
    viewer: Viewer, pixels: int, end: int, last: int
) -> None:
    if pixels > 0:
        while viewer.settle()[0] != 1:
            viewer.ask(SCROLL, -5000)
    loaded = 0
    while (before := viewer.settle())[end] != last:
        seq, top = viewer.ask(SCROLL_AND_NOTE, pixels)
        loaded += viewer.settle() != before
        assert abs(viewer.top_of(seq) - top) <= 1
    assert loaded >= 5


def test_rows_that_went_come_back(viewer: Viewer) -> None:
    while viewer.settle()[0] != 1:
        viewer.ask(SCROLL, -5000)
    assert viewer.rows()[-1] < 400
    while viewer.settle()[-1] != 400:
        viewer.ask(SCROLL, 5000)
    assert viewer.rows()[0] > 1


def test_what_is_said_meanwhile_comes_to_the_live_edge(viewer: Viewer, desk: Desk) -> None:
    viewer.settle()
    desk.store([text("new", "Just now")])
    viewer.until(lambda: viewer.rows()[-1] == 401)
    viewer.until(lambda: bool(viewer.ask(IS_AT_END)))


def test_an_answer_of_the_conversation_before_is_discarded(desk: Desk, look: Look) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    desk.store([text("o1", "Other")], thread="other")
    viewer = look(desk)
    viewer.enter()
    assert viewer.text("#title") == "other"
    viewer.do(lambda page: page.route(HISTORY_OF_T1, hold))
    viewer.click("#sessions button:has-text('t1')")
    viewer.until(lambda: bool(held))
    viewer.click("#sessions button:has-text('other')")
    viewer.until(lambda: viewer.rows() == [1])
    viewer.do(lambda page: let_go(page, held[0]))
    assert viewer.settle() == [1]
    assert viewer.text("#title") == "other"


def test_a_conversation_that_was_cut_is_loaded_anew(viewer: Viewer, desk: Desk) -> None:
    viewer.settle()
    desk.cut("m200")
    viewer.until(lambda: viewer.settle()[-1] == 199)


def test_the_turn_index_jumps_to_a_message_and_marks_it(viewer: Viewer) -> None:
    viewer.click("#turns")
    viewer.click(".jumps li:nth-child(5) button")
    viewer.until(lambda: 5 in viewer.rows())
    assert viewer.settle()[0] == 1
    assert viewer.ask("() => document.querySelector('.found').dataset.seq") == "5"
    assert viewer.ask("() => document.activeElement.dataset.seq") == "5"
    box = viewer.do(lambda page: page.locator("#log").bounding_box())
    assert box is not None
    assert box["y"] <= viewer.top_of(5) <= box["y"] + box["height"]
