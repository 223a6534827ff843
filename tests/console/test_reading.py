"""Reading conversations in a real browser: what is shown, what is not, and what was given."""

from __future__ import annotations

import pytest

from tests.console.conftest import Look, SetDesk
from tests.console.desk import Desk, text
from tests.console.viewer import Viewer

pytestmark = pytest.mark.browser

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    '<a href="javascript:alert(1)">x</a> [y](javascript:alert(2)) \u202edesrever\u202c ${7*7}'
)
OUTSIDE = "https://tracker.example/pixel.png"
MAKE_MARKUP = """() => {
  try {
    document.body.innerHTML = '<b>x</b>';
    return 'it worked';
  } catch (error) {
    return error.name;
  }
}"""
RUN_TEXT = """() => {
  try {
    document.createElement('script').text = 'document.title = 1';
    return 'it worked';
  } catch (error) {
    return error.name;
  }
}"""
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((each) => {
      const share = each / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const color = rgb(getComputedStyle(each).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const found = {};
  for (const node of document.querySelectorAll('body *')) {
    const says = [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    if (!says || !node.checkVisibility() || node.disabled) continue;
    const [one, two] = [light(rgb(getComputedStyle(node).color)), light(background(node))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) found[node.outerHTML] = ratio;
  }
  return found;
}"""
RING = "() => document.getElementById('ring').getAttribute('aria-label')"
UNLABELLED = """() => [...document.querySelectorAll('button, input, textarea, a[href], svg')]
  .filter((node) => node.checkVisibility())
  .filter((node) => !(node.getAttribute('aria-label') || node.innerText?.trim()
    || node.labels?.length))
  .map((node) => node.outerHTML)"""


@pytest.fixture
def desk(set_desk: SetDesk) -> Desk:
    return set_desk()


def test_hostile_text_is_text(desk: Desk, look: Look) -> None:
    desk.store([text("h1", HOSTILE), text("h2", HOSTILE, "assistant")], thread=HOSTILE[:90])
    viewer = look(desk)
    asked: list[str] = []
    viewer.do(lambda page: page.on("request", lambda request: asked.append(request.url)))
    viewer.enter()
    viewer.settle()
    shown = viewer.ask(
        "() => [...document.querySelectorAll('#rows .text')].map((n) => n.textContent)"
    )
    assert shown == [HOSTILE, HOSTILE]
    assert (
        viewer.ask("() => document.querySelectorAll('#rows :is(img, script, a), nav a').length")
        == 0
    )
    assert viewer.text("#title") == HOSTILE[:90]
    assert [url for url in asked if not url.startswith(desk.address)] == []


def test_a_bidi_override_ends_with_its_text(desk: Desk, look: Look) -> None:
    desk.store([text("h1", "\u202ereversed"), text("h2", "plain")])
    viewer = look(desk)
    viewer.enter()
    assert set(
        viewer.ask(
            "() => [...document.querySelectorAll('#rows .text')]"
            ".map((node) => getComputedStyle(node).unicodeBidi)"
        )
    ) == {"plaintext"}


def test_files_links_and_unknown_parts_are_named_and_not_loaded(desk: Desk, look: Look) -> None:
    parts = [
        {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": OUTSIDE},
        {"type": "source-url", "sourceId": "s", "url": OUTSIDE, "title": "A page"},
        {"type": "reasoning", "text": "I think"},
        {
            "type": "dynamic-tool",
            "toolName": "look_up",
            "toolCallId": "c1",
            "state": "output-available",
            "input": {"order": 7},
            "output": "<b>sent</b>",
        },
        {"type": "data-weather", "data": {"is": "<i>fine</i>"}},
    ]
    desk.store([{"id": "m1", "role": "assistant", "parts": parts}])
    viewer = look(desk)
    asked: list[str] = []
    viewer.do(lambda page: page.on("request", lambda request: asked.append(request.url)))
    viewer.enter()
    viewer.settle()
    assert viewer.texts("#rows .note") == ["File a.png image/png", f"Source A page {OUTSIDE}"]
    assert viewer.texts("#rows summary") == ["Reasoning", "Tool look_up", "data-weather"]
    viewer.click("summary:has-text('look_up')")
    assert viewer.texts("#rows details[open] .code") == ['{\n  "order": 7\n}', "<b>sent</b>"]
    assert [url for url in asked if not url.startswith(desk.address)] == []


def test_a_very_long_text_is_shown_whole_on_request(desk: Desk, look: Look) -> None:
    desk.store([text("m1", "x" * 50_000)])
    viewer = look(desk)
    viewer.enter()
    assert len(viewer.text("#rows .text")) == 20_001
    viewer.click("button:has-text('Show all 50,000 characters')")
    assert len(viewer.text("#rows .text")) == 50_000


def test_markup_from_scripts_and_text_as_code_are_refused(desk: Desk, look: Look) -> None:
    desk.store([text("m1", "Hello")])
    viewer = look(desk)
    viewer.enter()
    assert viewer.ask(MAKE_MARKUP) == "TypeError"
    assert viewer.ask(RUN_TEXT) == "TypeError"
    assert len(viewer.problems) == 2
    viewer.problems.clear()


def test_the_given_view_tells_why_each_message_was_left_out(set_desk: SetDesk, look: Look) -> None:
    """A turn over supplied messages that session, age and count cut."""
    desk = set_desk(
        options={
            "trigger_history": {"source": "thread", "max_messages": 3, "max_age_ms": 3_600_000},
            "sessions": {"strategy": "idle-timeout", "idle_timeout_ms": 1_800_000},
        }
    )
    times = ["08:00", "10:00", "10:05", "10:10", "10:15"]
    messages = [
        text(f"m{n}", f"said at {at}", createdAt=f"2026-01-01T{at}:00Z")
        for n, at in enumerate(times, 1)
    ]
    desk.converse(messages)
    viewer = look(desk)
    viewer.enter()
    viewer.click("#rows .assistant button:has-text('Given')")
    viewer.until(lambda: viewer.is_visible("#panel .entries"))
    kept = viewer.texts("[aria-label='Given'] > li .reason")
    assert kept == ["inside the window", "inside the window", "the message that is answered"]
    reasons = viewer.texts("[aria-label='Left out'] > li .reason")
    assert reasons == ["came before the session began", "the newer ones fill max_messages"]
    facts = viewer.text("#panel dl")
    assert ("complete" in facts, "echo" in facts) == (True, True)


def test_the_given_view_shows_a_row_deleted_since_as_deleted(desk: Desk, look: Look) -> None:
    desk.turn(text("m1", "First"))
    desk.turn(text("m2", "Second"))
    desk.delete("m1")
    viewer = look(desk)
    viewer.enter()
    viewer.click("#rows li:last-child button:has-text('Given')")
    viewer.until(lambda: viewer.is_visible("#panel .entries"))
    assert viewer.texts("#panel .gone") == ["deleted since"]
    assert "Second" in viewer.texts("#panel .entry .text")


def test_a_look_at_the_next_call_says_so_where_there_is_none(desk: Desk, look: Look) -> None:
    desk.turn(text("m1", "First"))
    viewer = look(desk)
    viewer.enter()
    viewer.do(
        lambda page: page.route(
            "**/api/history/window?*next=true*",
            lambda route: route.fulfill(status=501, json={"error": {"message": "Not today."}}),
        )
    )
    viewer.click("#next")
    viewer.until(lambda: "Not available here: Not today." in viewer.text("#panel-body"))


@pytest.mark.parametrize("status", [404, 501])
def test_a_search_that_is_not_there_is_said_to_be_so(desk: Desk, look: Look, status: int) -> None:
    desk.store([text("m1", "Hello")])
    viewer = look(desk)
    viewer.enter()
    viewer.do(
        lambda page: page.route(
            "**/api/history/search?*", lambda route: route.fulfill(status=status, json={})
        )
    )
    viewer.do(lambda page: page.fill("#query", "hello"))
    viewer.press("Enter")
    viewer.until(lambda: "Searching is not available here." in viewer.text("#panel-body"))


@pytest.mark.parametrize(("words", "mark"), [(30, ""), (400, ", nearly full")])
def test_the_ring_tells_how_full_the_context_is(
    set_desk: SetDesk, look: Look, words: int, mark: str
) -> None:
    desk = set_desk(options={"context": {"window_tokens": 500, "reserve_output_tokens": 50}})
    desk.turn(text("m1", "word " * words))
    viewer = look(desk)
    viewer.enter()
    viewer.until(lambda: " of 450 tokens" in viewer.ask(RING))
    assert viewer.ask(RING).partition("%)")[2] == mark
    share = viewer.ask("() => document.getElementById('used').getAttribute('stroke-dasharray')")
    assert float(share.split()[0]) > 0


def test_a_search_leads_to_the_message(desk: Desk, look: Look) -> None:
    desk.store([text(f"m{n}", f"message {n}") for n in range(1, 301)])
    desk.store([text("n1", "newer")], thread="newer")
    viewer = look(desk)
    viewer.enter()
    viewer.do(lambda page: page.fill("#query", "MESSAGE 150"))
    viewer.press("Enter")
    viewer.until(lambda: viewer.is_visible(".jumps button"))
    assert viewer.texts(".jumps mark") == ["message", "150"]
    viewer.click(".jumps button")
    viewer.until(lambda: 150 in viewer.rows())
    viewer.until(lambda: viewer.ask("() => document.activeElement.dataset.seq") == "150")
    assert viewer.text("#title") == "t1"
    viewer.do(lambda page: page.fill("#query", "nowhere"))
    viewer.press("Enter")
    viewer.until(lambda: "No message has all of these words." in viewer.text("#panel-body"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_label_and_contrast(desk: Desk, look: Look, scheme: str) -> None:
    desk.turn(text("m1", "First"))
    desk.turn(text("m2", "Second"))
    viewer = look(desk)
    viewer.do(lambda page: page.emulate_media(color_scheme=scheme))  # type: ignore[arg-type]
    viewer.enter()
    viewer.click("#rows li:last-child button:has-text('Given')")
    viewer.until(lambda: viewer.is_visible("#panel .entries"))
    assert viewer.ask(UNLABELLED) == []
    assert viewer.ask(CONTRASTS) == {}
    assert viewer.ask("() => document.querySelectorAll('[role=log][tabindex=\"0\"]').length") == 1


def test_a_long_list_of_conversations_comes_in_pages(desk: Desk, look: Look) -> None:
    for number in range(60):
        desk.store([text("m1", "Hello")], thread=f"t{number:02}")
    viewer = look(desk)
    viewer.enter()
    assert viewer.ask("() => document.querySelectorAll('#sessions li').length") == 50
    viewer.click("#more")
    viewer.until(lambda: len(viewer.texts("#sessions li")) == 60)
    assert viewer.is_visible("#more") is False
    assert viewer.focused().startswith("t09")


def test_nobody_gets_in_without_the_link(desk: Desk, look: Look) -> None:
    first, second = look(desk), look(desk)
    first.enter()
    assert first.ask("() => location.hash") == ""
    second.do(lambda page: page.goto(desk.link))
    second.until(lambda: "used already" in second.text("#status"))
    assert second.ask("() => location.hash") == ""


def test_a_secret_of_ones_own_can_be_typed_in(set_desk: SetDesk, look: Look) -> None:
    desk = set_desk(secret="s" * 40)
    viewer = look(desk)
    viewer.do(lambda page: page.goto(desk.link))
    viewer.do(lambda page: page.fill("#token", "s" * 40))
    viewer.press("Enter")
    viewer.do(lambda page: page.wait_for_url(f"{desk.address}/"))


def test_the_export_is_a_file(desk: Desk, look: Look) -> None:
    desk.store([text("m1", "Hello")])
    viewer = look(desk)
    viewer.enter()

    def save(viewer: Viewer) -> str:
        def work(page: object) -> str:
            with page.expect_download() as download:  # type: ignore[attr-defined]
                page.click("#export")  # type: ignore[attr-defined]
            found: str = download.value.path().read_text()
            return found

        return viewer.do(work)

    lines = save(viewer).splitlines()
    assert (len(lines), '"Hello"' in lines[1]) == (3, True)
