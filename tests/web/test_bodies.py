"""Bodies: what is read of them, and hostile ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.site import SetSite, Site, said, turn

TEXT = "\x00\ud83d \u2028 </script> {{7*7}} ' OR 1=1 -- ☕"


async def post_raw(
    site: Site, body: bytes, kind: str = "application/json", path: str = ""
) -> tuple[int, str]:
    headers = {"x-user": "ada"} | ({"content-type": kind} if kind else {})
    response = await site.http.post(f"/api/chat{path}", content=body, headers=headers)
    return response.status_code, response.json()["error"]["code"]


@pytest.mark.parametrize("path", ["", "/ag-ui", "/truncate", "/c1/stop"])
@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"],
)
async def test_what_is_not_declared_as_json_is_415(set_site: SetSite, path: str, kind: str) -> None:
    site = await set_site(ag_ui=True)
    assert await post_raw(site, json.dumps(turn()).encode(), kind, path) == (415, "not_json")


async def test_the_content_type_may_have_parameters(set_site: SetSite) -> None:
    site = await set_site()
    headers = {"x-user": "ada", "content-type": "Application/JSON; charset=utf-8"}
    body = json.dumps(turn()).encode()
    response = await site.http.post("/api/chat", content=body, headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["", "/ag-ui", "/truncate", "/c1/stop"])
async def test_a_body_that_is_too_large_is_413(set_site: SetSite, path: str) -> None:
    site = await set_site(ag_ui=True, max_body_bytes=1000)
    assert await post_raw(site, b" " * 1001, path=path) == (413, "body_too_large")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"a"',
        b"null",
        b"\xff\xfe",
        b'{"id": "c1"} x',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"id": ' + b"9" * 5000 + b"}",
    ],
)
async def test_what_is_no_json_object_is_400(set_site: SetSite, body: bytes) -> None:
    site = await set_site()
    assert await post_raw(site, body) == (400, "invalid_input")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
async def test_a_number_that_is_none_is_400(set_site: SetSite, number: str) -> None:
    site = await set_site()
    body = json.dumps(turn()).replace('"parts"', f'"metadata": {{"a": {number}}}, "parts"')
    assert await post_raw(site, body.encode()) == (400, "invalid_input")
    assert site.driver.calls == []


async def test_metadata_that_is_nested_too_deep_is_400(set_site: SetSite) -> None:
    site = await set_site()
    nested = json.loads("[" * 300 + "]" * 300)
    body = {"id": "c1", "messages": [said("m1", "A", metadata={"a": nested})]}
    response = await site.post(body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_input")


async def test_any_text_comes_back_as_it_was(set_site: SetSite) -> None:
    site = await set_site()
    body = json.dumps({"id": "c1", "messages": [said("m1", TEXT)]}).encode()
    headers = {"x-user": "ada", "content-type": "application/json"}
    response = await site.http.post("/api/chat", content=body, headers=headers)
    assert response.status_code == 200
    page = (await site.get("/history", id="c1")).json()
    text = page["items"][0]["message"]["parts"][0]["text"]
    assert text == TEXT.replace("\ud83d", "\ufffd")


async def test_names_that_mean_something_to_javascript_are_plain_keys(set_site: SetSite) -> None:
    site = await set_site()
    metadata = {"__proto__": {"admin": True}, "constructor": 1}
    body = {"id": "c1", "messages": [said("m1", "A", metadata=metadata)], "__proto__": {}}
    assert (await site.post(body)).status_code == 200
    stored = (await site.get("/history", id="c1")).json()["items"][0]["message"]
    assert stored["metadata"] == metadata


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.just("c1") | JSON_VALUES,
        "messages": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "id": st.just("m1") | JSON_VALUES,
                    "role": st.sampled_from(["user", "assistant", "system"]) | JSON_VALUES,
                    "parts": st.lists(st.just({"type": "text", "text": "A"}) | JSON_VALUES)
                    | JSON_VALUES,
                    "metadata": JSON_VALUES,
                    "createdAt": JSON_VALUES,
                },
            )
            | JSON_VALUES,
            max_size=3,
        ),
        "messageId": JSON_VALUES,
        "trigger": JSON_VALUES,
        "session": JSON_VALUES,
        "run": JSON_VALUES,
    },
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(body=BODIES)
async def test_no_body_is_a_fault_of_this_side(set_site: SetSite, body: Any) -> None:
    site = await set_site(ag_ui=True)
    content = json.dumps(body).encode()
    headers = {"x-user": "ada", "content-type": "application/json"}
    for path in ("", "/ag-ui", "/truncate", "/c1/stop"):
        response = await site.http.post(f"/api/chat{path}", content=content, headers=headers)
        assert response.status_code in {200, 400, 404}
    await site.close()
