"""Talking to an agent, searching and deleting in a real browser, with the keyboard alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.console.conftest import Look, SetDesk
from tests.console.desk import Desk, text

pytestmark = pytest.mark.browser


class Slow:
    """Answers in words, the last one once it is told to."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def __call__(self, _call: object) -> AsyncIterator[str]:
        yield "First "
        await self.goes_on.wait()
        yield "and last."


@pytest.fixture
def desk(set_desk: SetDesk) -> Desk:
    return set_desk()


def test_a_message_is_answered_and_the_conversation_goes_on(desk: Desk, look: Look) -> None:
    viewer = look(desk)
    viewer.enter()
    viewer.do(lambda page: page.fill("#say", "Hello"))
    viewer.press("Enter")
    viewer.until(lambda: len(viewer.rows()) == 2)
    viewer.until(lambda: not viewer.is_visible("#stop"))
    viewer.do(lambda page: page.fill("#say", "Again"))
    viewer.press("Enter")
    viewer.until(lambda: len(viewer.rows()) == 4)
    assert viewer.texts("#rows .text") == [
        "Hello",
        "You said: Hello",
        "Again",
        "You said: Again (2 earlier messages)",
    ]
    assert viewer.texts("#live .text") == []
    assert len(viewer.texts("#sessions li")) == 1


def test_an_answer_grows_and_is_followed_again_after_a_reload(
    set_desk: SetDesk, look: Look
) -> None:
    driver = Slow()
    desk = set_desk(driver=driver)
    viewer = look(desk)
    viewer.enter()
    viewer.do(lambda page: page.fill("#say", "Hello"))
    viewer.press("Enter")
    viewer.until(lambda: viewer.texts("#live .assistant .text") == ["First "])
    viewer.do(lambda page: page.reload())
    viewer.until(lambda: viewer.texts("#live .assistant .text") == ["First "])
    desk.soon(driver.goes_on.set)
    viewer.until(lambda: viewer.texts("#rows .assistant .text") == ["First and last."])


def test_an_answer_that_is_stopped_is_recorded_as_interrupted(
    set_desk: SetDesk, look: Look
) -> None:
    viewer = look(set_desk(driver=Slow()))
    viewer.enter()
    viewer.do(lambda page: page.fill("#say", "Hello"))
    viewer.press("Enter")
    viewer.until(lambda: viewer.texts("#live .assistant .text") == ["First "])
    viewer.click("#stop")
    viewer.until(lambda: viewer.texts("#rows .assistant .text") == ["First "])
    assert viewer.texts("#rows .mark") == ["interrupted"]


def test_a_refused_message_stays_in_the_box(desk: Desk, look: Look) -> None:
    viewer = look(desk)
    viewer.enter()
    viewer.do(
        lambda page: page.route(
            "**/api/chat",
            lambda route: route.fulfill(status=429, json={"error": {"message": "Too many wait."}}),
        )
    )
    viewer.do(lambda page: page.fill("#say", "Hello"))
    viewer.press("Enter")
    viewer.until(lambda: viewer.text("#status") == "Too many wait.")
    assert viewer.do(lambda page: page.input_value("#say")) == "Hello"


def test_a_conversation_of_another_channel_is_only_read(desk: Desk, look: Look) -> None:
    desk.store([text("m1", "Hello")])
    viewer = look(desk)
    viewer.enter()
    viewer.settle()
    assert viewer.is_visible("#chat") is False


def test_a_conversation_is_deleted_after_it_was_confirmed(desk: Desk, look: Look) -> None:
    desk.store([text("m1", "Hello"), text("m2", "Hi", "assistant")])
    viewer = look(desk)
    viewer.enter()
    viewer.click("#delete")
    assert "t1: 2 messages" in viewer.text("#confirm")
    viewer.click("#confirm-no")
    assert viewer.rows() == [1, 2]
    viewer.click("#delete")
    viewer.click("#confirm-yes")
    viewer.until(lambda: viewer.text("#status").startswith("Deleted: rows 2"))
    assert viewer.rows() == []
    assert viewer.texts("#sessions li") == ["Nothing yet"]


def test_what_cannot_be_deleted_now_says_why(set_desk: SetDesk, look: Look) -> None:
    driver = Slow()
    desk = set_desk(driver=driver)
    viewer = look(desk)
    viewer.enter()
    viewer.do(lambda page: page.fill("#say", "Hello"))
    viewer.press("Enter")
    viewer.until(lambda: viewer.texts("#live .assistant .text") == ["First "])
    viewer.do(lambda page: page.reload())
    viewer.until(lambda: viewer.rows() == [1])
    viewer.click("#delete")
    viewer.click("#confirm-yes")
    viewer.until(lambda: "running" in viewer.text("#status"))
    assert viewer.rows() == [1]
    desk.soon(driver.goes_on.set)


def test_a_person_reads_inspects_and_deletes_with_the_keyboard_alone(
    desk: Desk, look: Look
) -> None:
    for number in (1, 2):
        desk.turn(text(f"m{number}", f"Question {number}"), thread="older")
    desk.store([text("n1", "Newer")], thread="newer")
    viewer = look(desk)
    viewer.enter()
    viewer.settle()
    viewer.go_to("newer")
    viewer.press("ArrowDown")
    assert viewer.focused().startswith("older")
    viewer.press("Enter")
    viewer.until(lambda: viewer.rows() == [1, 2, 3, 4])
    viewer.go_to("log")
    viewer.press("Home", "End")
    viewer.go_to("Given")
    viewer.press("Enter")
    viewer.until(lambda: viewer.is_visible("#panel .entries"))
    assert viewer.focused() == "panel-title"
    viewer.press("Escape")
    assert viewer.is_visible("#panel") is False
    assert viewer.focused() == "Given"
    viewer.go_to("turns", "Shift+Tab")
    viewer.press("Enter")
    viewer.until(lambda: viewer.is_visible("#panel .jumps button"))
    viewer.press("Tab", "Tab", "Enter")
    viewer.until(lambda: viewer.ask("() => document.activeElement.dataset.seq") == "1")
    viewer.go_to("panel-close")
    viewer.press("Enter")
    viewer.go_to("delete", "Shift+Tab")
    viewer.press("Enter")
    assert viewer.focused() == "confirm-no"
    viewer.press("Escape")
    assert viewer.focused() == "delete"
    viewer.press("Enter", "Tab", "Enter")
    viewer.until(lambda: viewer.text("#status").startswith("Deleted: rows 4"))
    assert viewer.focused().startswith("newer")


def test_the_keyboard_reaches_search_and_the_chat_box(desk: Desk, look: Look) -> None:
    viewer = look(desk)
    viewer.enter()
    viewer.go_to("query")
    viewer.go_to("new")
    viewer.press("Enter")
    assert viewer.focused() == "say"
    viewer.do(lambda page: page.keyboard.type("Hello"))
    viewer.press("Shift+Enter")
    viewer.do(lambda page: page.keyboard.type("there"))
    viewer.press("Enter")
    viewer.until(lambda: len(viewer.rows()) == 2)
    assert viewer.texts("#rows .user .text") == ["Hello\nthere"]
