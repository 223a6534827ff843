"""Values of wrong types, as a foreign writer may have stored them, in a real browser."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from tests.console.conftest import Look, SetDesk
from tests.console.desk import Desk, text
from tests.console.viewer import Viewer

pytestmark = pytest.mark.browser

ODD: Sequence[Any] = (None, 7, True, ["a", {"b": 1}], {"a": 1}, {"toString": 1, "valueOf": 2})
FIELDS = {
    "text": ["text"],
    "reasoning": ["text"],
    "file": ["url", "filename", "mediaType"],
    "source-url": ["url", "title"],
    "dynamic-tool": ["toolName", "errorText", "input", "output"],
    "tool-x": ["toolName", "errorText"],
    "data-x": ["data", "id"],
}
PARTS = [
    *({"type": kind, name: odd} for kind, names in FIELDS.items() for name in names for odd in ODD),
    *({"type": odd} for odd in ODD),
    {},
]


@pytest.fixture
def desk(set_desk: SetDesk) -> Desk:
    return set_desk()


def item(seq: int, message: Any, **facts: Any) -> dict[str, Any]:
    return {"message": message, "seq": seq, "status": "complete", "cursor": f"c{seq}", **facts}


def answer_with(viewer: Viewer, path: str, answer: Mapping[str, Any]) -> None:
    """Let requests be answered with something else."""

    def answer_one(route: Route) -> None:
        route.fulfill(json=dict(answer))

    def work(page: Page) -> None:
        page.route(f"**/api/{path}", answer_one)

    viewer.do(work)


def page_of(items: Sequence[Any]) -> dict[str, Any]:
    cursors = dict.fromkeys(("older_cursor", "newer_cursor", "next_cursor"))
    state = {"at_live_edge": True, "generation": 0, "reset": False, "live_edge_seq": len(items)}
    return {"items": items, **cursors, **state}


def test_parts_with_values_of_every_kind_are_all_drawn(desk: Desk, look: Look) -> None:
    rows = [{"id": f"m{n}", "role": "assistant", "parts": [part]} for n, part in enumerate(PARTS)]
    desk.store([*rows, text("last", "Hello")])
    viewer = look(desk)
    viewer.enter()
    shown = viewer.settle()
    assert shown == list(range(len(PARTS) + 2 - len(shown), len(PARTS) + 2))
    assert viewer.texts("#rows li:last-child .text") == ["Hello"]
    assert viewer.texts("#rows .gone") == []


def test_texts_are_shown_as_they_are_and_other_values_as_json(desk: Desk, look: Look) -> None:
    parts = [
        {"type": "text", "text": {"a": [1]}},
        {"type": "text", "text": 7},
        {"type": "text"},
        {"type": "source-url", "url": {"a": 1}, "title": "T"},
        {"type": "dynamic-tool", "toolName": ["f"], "input": 1},
        {"type": {"a": 1}},
    ]
    desk.store([{"id": "m1", "role": "assistant", "parts": parts}])
    viewer = look(desk)
    viewer.enter()
    viewer.settle()
    texts = viewer.ask(
        "() => [...document.querySelectorAll('#rows .text')].map((n) => n.innerText)"
    )
    assert [json.loads(each) if each else None for each in texts] == [{"a": [1]}, 7, None]
    (note,) = viewer.texts("#rows .note")
    assert (note.startswith("Source T"), json.loads(note.removeprefix("Source T"))) == (
        True,
        {"a": 1},
    )
    assert viewer.texts("#rows summary") == ['Tool [ "f" ]', '{ "a": 1 }']


def test_a_row_that_cannot_be_drawn_leaves_the_others(desk: Desk, look: Look) -> None:
    desk.store([text("m1", "Hello")])
    viewer = look(desk)
    messages: list[Any] = [
        text("m1", "First"),
        text("m2", "Second", createdAt=ODD[-1]),
        None,
        *({"id": f"p{n}", "role": "user", "parts": odd} for n, odd in enumerate(ODD)),
        {"id": "list", "role": "user", "parts": list(ODD)},
        *({"id": f"r{n}", "role": odd, "parts": []} for n, odd in enumerate(ODD)),
        *({**text("x", "odd id"), "id": odd} for odd in ODD),
        text("last", "Last", role="skip"),
    ]
    items = [item(seq, message) for seq, message in enumerate(messages, 1)]
    answer_with(viewer, "history?*", page_of(items))
    viewer.enter()
    assert viewer.settle() == list(range(1, len(messages) + 1))
    (lost,) = viewer.texts("#rows li:has(.gone)")
    assert lost.split() == ["#3", "cannot", "be", "shown"]
    assert viewer.texts("#rows .text")[:2] == ["First", "Second"]
    assert viewer.is_visible("#rows .text:has-text('Last')")


def test_lists_and_panels_stand_values_of_every_kind(desk: Desk, look: Look) -> None:
    """Titles, previews, hits, plans: whatever of the answer is shown."""
    desk.turn(text("m1", "First"))
    viewer = look(desk)
    names = ("title", "thread", "channel", "session_id")
    sessions = [
        {"id": f"s{n}", name: odd, "message_count": odd}
        for n, (name, odd) in enumerate(itertools.product(names, ODD))
    ]
    viewer.enter()
    real = viewer.ask("() => fetch('api/sessions').then((answer) => answer.json())")["items"]
    answer_with(viewer, "sessions?*", {"items": [*real, *sessions]})
    viewer.do(lambda page: page.reload())
    viewer.until(lambda: bool(viewer.texts("#sessions li")))
    assert len(viewer.texts("#sessions li")) == len(sessions) + 1
    hits = [
        {**real[0], "message_id": odd, "seq": odd, "created_at": "x", "pieces": [odd, odd]}
        for odd in ODD
    ]
    answer_with(viewer, "history/search?*", {"items": hits})
    viewer.do(lambda page: page.fill("#query", "x"))
    viewer.press("Enter")
    viewer.until(lambda: len(viewer.texts(".jumps button")) == len(hits))
    entry = {"kept": True, "reason": "window", "message_id": "gone", "role": "user"}
    entries = [{**entry, name: odd} for name in ("role", "reason", "message_id") for odd in ODD]
    answer_with(viewer, "history/window?*", {"entries": entries, "left_out": 0, "status": ODD[4]})
    viewer.click("#next")
    viewer.until(lambda: len(viewer.texts("#panel .entry")) == len(entries))
    turns = [{"message_id": odd, "seq": odd, "preview": odd, "has_reply": odd} for odd in ODD]
    answer_with(viewer, "history/turns?*", {"items": turns})
    viewer.click("#turns")
    viewer.until(lambda: len(viewer.texts(".jumps button")) == len(turns))


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("**bold** order and order**", ["order", "order"]),
        ("a ** b order ** c", ["order"]),
        ("****", []),
        ("**order**", ["order"]),
        ("2**10 order 2**11", ["order"]),
    ],
)
def test_stars_of_a_message_are_no_marks(
    desk: Desk, look: Look, said: str, found: list[str]
) -> None:
    desk.store([text("m1", f"{said} please")])
    viewer = look(desk)
    viewer.enter()
    viewer.do(lambda page: page.fill("#query", "order please" if found else "please"))
    viewer.press("Enter")
    viewer.until(lambda: viewer.is_visible(".jumps button"))
    assert viewer.texts(".jumps mark") == [*found, "please"]
    assert viewer.texts(".jumps .name") == [f"{said} please"]


def test_a_star_can_be_searched_for(desk: Desk, look: Look) -> None:
    desk.store([text("m1", "2**10 is * more")])
    viewer = look(desk)
    viewer.enter()
    viewer.do(lambda page: page.fill("#query", "*"))
    viewer.press("Enter")
    viewer.until(lambda: viewer.is_visible(".jumps button"))
    assert viewer.texts(".jumps mark") == ["**", "*"]
    assert viewer.texts(".jumps .name") == ["2**10 is * more"]
