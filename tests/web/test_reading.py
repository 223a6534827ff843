"""Reading, cutting and deleting what is stored, over routes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.site import WINDOW, SetSite, Site, turn
from vitehub_chat.model.messages import format_time


async def talked(set_site: SetSite, turns: int = 3, **options: Any) -> Site:
    """Set up a site with so many turns `A0`, `A1`... in the chat `c1`."""
    site = await set_site(**options)
    for number in range(turns):
        site.clock.advance(seconds=1)
        await site.post(turn(f"m{number}", f"A{number}"))
    return site


async def test_a_page_has_whole_messages_and_where_to_go_on(set_site: SetSite) -> None:
    site = await talked(set_site)
    newest = (await site.get("/history", id="c1", limit=4)).json()
    assert [item["seq"] for item in newest["items"]] == [3, 4, 5, 6]
    assert newest["next_cursor"] == newest["older_cursor"]
    assert newest["at_live_edge"] is True
    assert newest["live_edge_seq"] == 6
    older = (await site.get("/history", id="c1", cursor=newest["older_cursor"])).json()
    assert [item["seq"] for item in older["items"]] == [1, 2]
    assert older["older_cursor"] is None
    newer = await site.get("/history", id="c1", cursor=older["newer_cursor"], direction="newer")
    assert [item["seq"] for item in newer.json()["items"]] == [3, 4, 5, 6]


async def test_an_item_is_a_ui_message_with_its_place(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    items = (await site.get("/history", id="c1")).json()["items"]
    (row, _) = await site.rows()
    assert items[0] == {
        "message": row.message.to_json(),
        "seq": 1,
        "status": "complete",
        "turn_no": 1,
        "turn_id": row.turn_id,
        "created_at": format_time(row.said_at),
        "cursor": row.cursor,
    }


async def test_a_page_around_a_message(set_site: SetSite) -> None:
    site = await talked(set_site)
    page = (await site.get("/history", id="c1", around="m1", limit=3)).json()
    assert [item["seq"] for item in page["items"]] == [2, 3, 4]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({}, 400, "invalid_input"),
        ({"id": "c1", "limit": "0"}, 400, "invalid_input"),
        ({"id": "c1", "limit": "many"}, 400, "invalid_input"),
        ({"id": "c1", "limit": "1.5"}, 400, "invalid_input"),
        ({"id": "c1", "direction": "up"}, 400, "invalid_input"),
        ({"id": "c1", "cursor": "x"}, 400, "invalid_cursor"),
        ({"id": "c1", "cursor": ""}, 400, "invalid_cursor"),
        ({"id": "c1", "cursor": "x", "around": "m1"}, 400, "invalid_input"),
        ({"id": "c1", "around": "unknown"}, 404, "not_found"),
        ({"id": "c1", "session_id": "s", "sessionId": "s"}, 400, "invalid_input"),
        ({"id": ["c1", "c2"]}, 400, "invalid_input"),
        ({"id": "unknown"}, 404, "not_found"),
        ({"session_id": "unknown"}, 404, "not_found"),
        ({"id": "c1", "session_id": "unknown"}, 404, "not_found"),
    ],
)
async def test_a_page_that_cannot_be_is_refused(
    set_site: SetSite, query: dict[str, Any], status: int, code: str
) -> None:
    site = await talked(set_site, 1)
    response = await site.get("/history", **query)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


async def test_the_cursor_of_another_conversation_is_no_cursor(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    await site.post(turn("x1", "X", "c2"))
    cursor = (await site.get("/history", id="c2")).json()["newer_cursor"]
    response = await site.get("/history", id="c1", cursor=cursor)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_cursor")


async def test_more_than_a_page_is_a_page(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    assert (await site.get("/history", id="c1", limit=1000)).status_code == 200


async def test_the_turn_index_has_a_light_row_per_message_of_a_user(set_site: SetSite) -> None:
    site = await talked(set_site, 2)
    page = (await site.get("/history/turns", id="c1", limit=1)).json()
    assert page["items"] == [
        {
            "turn_no": 1,
            "message_id": "m0",
            "seq": 1,
            "preview": "A0",
            "created_at": "2026-01-01T00:00:01.000Z",
            "has_reply": True,
        }
    ]
    rest = (await site.get("/history/turns", id="c1", cursor=page["next_cursor"])).json()
    assert [item["message_id"] for item in rest["items"]] == ["m1"]
    assert "next_cursor" not in rest


async def test_the_window_is_what_the_model_was_given(set_site: SetSite) -> None:
    site = await talked(set_site, 2)
    last = (await site.get("/history/window", id="c1")).json()
    assert [(each.get("seq"), each["reason"]) for each in last["entries"]] == [
        (1, "window"),
        (2, "window"),
        (None, "current"),
    ]
    assert (last["status"], last["driver"], last["summary"]) == ("complete", "stepped", None)
    first_turn = (await site.rows())[0].turn_id
    first = (await site.get("/history/window", id="c1", turn_id=first_turn)).json()
    assert [each["reason"] for each in first["entries"]] == ["current"]


async def test_a_window_that_cannot_be_is_refused(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    assert (await site.get("/history/window", id="c1", turn_id="x")).status_code == 404
    for query in ({"next": "maybe"}, {"next": "true", "turn_id": "x"}):
        response = await site.get("/history/window", id="c1", **query)
        assert response.status_code == 400


async def test_the_next_window_is_a_dry_run_with_a_placeholder(set_site: SetSite) -> None:
    site = await talked(set_site, 2, chat={"trigger_history": {**WINDOW, "max_messages": 3}})
    before = await site.texts()
    window = (await site.get("/history/window", id="c1", next="true")).json()
    assert [(each.get("seq"), each["reason"]) for each in window["entries"]] == [
        (3, "window"),
        (4, "window"),
        (None, "current"),
    ]
    assert set(window) == {"entries", "left_out", "summary", "trimmed"}
    assert (await site.texts(), len(site.driver.calls)) == (before, 2)


async def test_the_next_window_is_that_of_the_session_that_is_asked_for(
    set_site: SetSite,
) -> None:
    sessions = {"strategy": "manual"}
    site = await set_site(chat={"sessions": sessions}, trusted_fields=("session",))
    for message_id, session in (("m1", "s1"), ("m2", "s2")):
        await site.post({**turn(message_id, message_id), "session": {"id": session}})
    query = {"id": "c1", "session_id": "s1", "next": "true"}
    window = (await site.get("/history/window", **query)).json()
    kept = [each.get("message_id") for each in window["entries"] if each["kept"]]
    assert (window["session_id"], kept[0], len(kept)) == ("s1", "m1", 3)


async def test_a_manual_summary_is_saved_beside_the_history(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    assert (await site.get("/history/summary", id="c1")).json() == {
        "rolling": None,
        "manual": None,
    }
    saved = await site.send("PUT", "/history/summary", {"id": "c1", "text": "Short."})
    manual = {"text": "Short.", "created_at": "2026-01-01T00:00:01.000Z"}
    assert saved.json() == {"rolling": None, "manual": manual}
    assert (await site.get("/history/summary", id="c1")).json()["manual"] == manual


async def test_a_rolled_summary_is_that_of_the_session_used_last(set_site: SetSite) -> None:
    site = await set_site(chat={"sessions": {"strategy": "manual"}}, trusted_fields=("session",))
    for number, name in enumerate(("s1", "s2")):
        site.clock.advance(seconds=1)
        await site.post({**turn(f"m{number}", "A"), "session": {"id": name}})
    assert site.state is not None
    key, summaries = site.key("c1", "ada"), site.state.summaries
    since = await summaries.get_rolling(key, session_id="s2")
    assert since is not None
    more: dict[str, Any] = {"summary": "Short.", "anchor": 4, "model": "small"}
    await summaries.commit_roll(key, session_id="s2", since=since, **more)
    facts = {
        "created_at": "2026-01-01T00:00:02.000Z",
        "through_seq": 3,
        "version": 1,
        "model": "small",
    }
    expected = {"rolling": {"text": "Short.", **facts}, "manual": None}
    assert (await site.get("/history/summary", id="c1")).json() == expected
    item = (await site.get("/sessions/c1")).json()
    assert (item["session_id"], item["summary"]) == ("s2", {"rolling": facts, "manual": None})
    narrowed = await site.get("/history/summary", id="c1", session_id="s1")
    assert narrowed.json() == {"rolling": None, "manual": None}


@pytest.mark.parametrize("text", ["", " ", None, 5])
async def test_a_summary_needs_text(set_site: SetSite, text: object) -> None:
    site = await talked(set_site, 1)
    response = await site.send("PUT", "/history/summary", {"id": "c1", "text": text})
    assert response.status_code == 400


async def test_an_export_is_lines_of_json_under_a_constant_name(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    response = await site.get("/history/export", id="c1")
    assert response.headers["content-type"].startswith("application/x-ndjson")
    name = 'attachment; filename="conversation.ndjson"'
    assert response.headers["content-disposition"] == name
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert [line["type"] for line in lines] == ["session", "message", "message", "end"]


async def test_the_session_list_is_paged_and_newest_first(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    site.clock.advance(minutes=1)
    await site.post(turn("x1", "X", "c2"))
    page = (await site.get("/sessions", limit=1)).json()
    assert page["items"] == [
        {
            "id": "c2",
            "started_at": "2026-01-01T00:01:01.000Z",
            "last_message_at": "2026-01-01T00:01:01.000Z",
            "message_count": 2,
        }
    ]
    rest = (await site.get("/sessions", cursor=page["next_cursor"])).json()
    assert [item["id"] for item in rest["items"]] == ["c1"]
    since = (await site.get("/sessions", updated_since="2026-01-01T00:01:00Z")).json()
    assert [item["id"] for item in since["items"]] == ["c2"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": "0"}, "invalid_input"),
        ({"updated_since": "yesterday"}, "invalid_input"),
        ({"cursor": "x"}, "invalid_cursor"),
    ],
)
async def test_a_list_that_cannot_be_is_refused(
    set_site: SetSite, query: dict[str, str], code: str
) -> None:
    site = await set_site()
    response = await site.get("/sessions", **query)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)


async def test_a_session_has_facts_about_its_summaries(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    await site.send("PUT", "/history/summary", {"id": "c1", "text": "Short."})
    item = (await site.get("/sessions/c1")).json()
    assert item == {
        "id": "c1",
        "started_at": "2026-01-01T00:00:01.000Z",
        "last_message_at": "2026-01-01T00:00:01.000Z",
        "message_count": 2,
        "generation": 0,
        "summary": {"rolling": None, "manual": {"created_at": "2026-01-01T00:00:01.000Z"}},
    }
    assert (await site.get("/sessions/unknown")).status_code == 404


async def test_a_delete_counts_and_repeated_it_is_zeros(set_site: SetSite) -> None:
    site = await talked(set_site, 1)
    first = await site.send("DELETE", "/sessions/c1")
    assert (first.status_code, first.json()["rows"], first.json()["sessions"]) == (200, 2, 1)
    again = await site.send("DELETE", "/sessions/c1")
    assert (again.status_code, set(again.json().values())) == (200, {0})
    assert again.json().keys() == first.json().keys()
    assert (await site.get("/history", id="c1")).status_code == 404
    assert (await site.get("/sessions")).json() == {"items": []}


async def test_a_truncation_cuts_from_a_message_on(set_site: SetSite) -> None:
    site = await talked(set_site)
    body = {"id": "c1", "fromMessageId": "m1", "idempotencyKey": "k1"}
    first = await site.send("POST", "/truncate", body)
    expected = {"deleted": 4, "live_edge_seq": 2, "generation": 1, "summary": "kept"}
    assert first.json() == expected
    again = await site.send("POST", "/truncate", body)
    assert again.json() == expected
    assert await site.texts() == ["A0", "A0[]"]


async def test_a_truncation_can_keep_the_message_itself(set_site: SetSite) -> None:
    site = await talked(set_site, 2)
    body = {"id": "c1", "from_message_id": "m1", "inclusive": False, "expectedGeneration": 0}
    assert (await site.send("POST", "/truncate", body)).json()["deleted"] == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"id": "c1"}, 400),
        ({"from_message_id": "m0"}, 400),
        ({"id": "c1", "from_message_id": "unknown"}, 404),
        ({"id": "unknown", "from_message_id": "m0"}, 404),
        ({"id": "c1", "from_message_id": "m0", "inclusive": "yes"}, 400),
    ],
)
async def test_a_truncation_that_cannot_be_is_refused(
    set_site: SetSite, body: dict[str, Any], status: int
) -> None:
    site = await talked(set_site, 1)
    assert (await site.send("POST", "/truncate", body)).status_code == status
    assert len(await site.rows()) == 2


async def test_a_session_can_be_read_alone(set_site: SetSite) -> None:
    site = await set_site(chat={"sessions": {"strategy": "manual"}}, trusted_fields=("session",))
    for session_id in ("s1", "s2"):
        body = {**turn(f"m-{session_id}", session_id), "session": {"id": session_id}}
        assert (await site.post(body)).status_code == 200
    whole = (await site.get("/history", id="c1")).json()["items"]
    assert [item["session_id"] for item in whole] == ["s1", "s1", "s2", "s2"]
    part = (await site.get("/history", id="c1", session_id="s1")).json()["items"]
    assert part[0]["message"]["id"] == "m-s1"
    assert len(part) == 2
    gone = await site.send("DELETE", "/sessions/c1?session_id=s1")
    assert gone.json()["rows"] == 2
    assert (await site.get("/history", id="c1", session_id="s1")).status_code == 404
    assert len((await site.get("/history", id="c1")).json()["items"]) == 2
