"""What somebody else stored: a row that cannot be read hides no other one on any route."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.web.site import SetSite, said

ODD = [
    {"v": 1, "parts": [None]},
    {"v": 1, "parts": ["x"]},
    {"v": 1, "parts": [7, {"type": "text", "text": "x"}]},
    {"v": 1, "parts": [["type", "text"]]},
    {"v": 1, "parts": [{"type": "data-x", "data": float("nan")}]},
    {"v": 1, "parts": [{"type": "data-x", "data": float("-inf")}]},
    {"v": 1, "parts": [], "metadata": {"a": float("inf")}},
]
TOO_LARGE = '{"v":1,"parts":[{"type":"data-x","data":1e999}]}'
READS: list[tuple[str, dict[str, str]]] = [
    ("/history", {}),
    ("/history", {"around": "m2"}),
    ("/history/turns", {}),
    ("/history/window", {"next": "true"}),
    ("/history/search", {"q": "A"}),
    ("/history/export", {}),
]
UPDATE = "UPDATE vitehub_agent_state_rows SET body = ? WHERE message_id = ?"


def overwrite(path: Path, bodies: dict[str, str]) -> None:
    """Write bodies of messages as somebody else would."""
    connection = sqlite3.connect(path / "state.db")
    with connection:
        connection.executemany(UPDATE, [(body, name) for name, body in bodies.items()])
    connection.close()


@pytest.mark.parametrize("body", [*map(json.dumps, ODD), TOO_LARGE])
async def test_a_body_that_is_no_message_is_left_out_alone(
    set_file_site: SetSite, tmp_path: Path, body: str
) -> None:
    site = await set_file_site()
    await site.agent.conversation(site.key()).append([said(f"m{n}", f"A{n}") for n in range(3)])
    overwrite(tmp_path, {"m1": body})
    for path, query in READS:
        answer = await site.get(path, id="c1", **query)
        assert (path, answer.status_code) == (path, 200)
    items = (await site.get("/history", id="c1")).json()["items"]
    assert [item["message"]["id"] for item in items] == ["m0", "m2"]
    export = await site.get("/history/export", id="c1")
    lines = [json.loads(line) for line in export.text.splitlines()]
    assert (lines[-1]["messages"], lines[-1]["unreadable"]) == (2, 1)


async def test_a_body_that_is_deeper_than_we_would_store_is_shown(
    set_file_site: SetSite, tmp_path: Path
) -> None:
    site = await set_file_site()
    await site.agent.conversation(site.key()).append([said(f"m{n}", f"A{n}") for n in range(3)])
    deep = "[" * 400 + "]" * 400
    overwrite(tmp_path, {"m1": f'{{"v":1,"parts":[{{"type":"data-x","data":{deep}}}]}}'})
    items = (await site.get("/history", id="c1")).json()["items"]
    assert [item["message"]["id"] for item in items] == ["m0", "m1", "m2"]
    assert items[1]["message"]["parts"][0]["data"] == json.loads(deep)
