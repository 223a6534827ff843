"""Changing a stored message and having an answer made anew, as chat clients ask for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.site import SetSite, Site, read_stream, said, text_of, turn


async def talked(set_site: SetSite, **options: Any) -> Site:
    """Set up a site with two turns `A` and `B`."""
    site = await set_site(**options)
    await site.post(turn("m1", "A"))
    await site.post(turn("m2", "B"))
    return site


def anew(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "c1", "trigger": "regenerate-message", "messages": list(messages), **more}


@pytest.mark.parametrize("spelling", ["messageId", "message_id"])
async def test_an_edit_cuts_from_its_message_on_and_runs(set_site: SetSite, spelling: str) -> None:
    site = await talked(set_site)
    response = await site.post({**turn("m1", "C"), spelling: "m1"})
    assert text_of(read_stream(response.text)) == "C[]"
    assert await site.texts() == ["C", "C[]"]
    page = (await site.get("/history", id="c1")).json()
    assert page["generation"] == 1


async def test_an_edit_may_have_a_new_id(set_site: SetSite) -> None:
    site = await talked(set_site)
    await site.post({**turn("m3", "C"), "messageId": "m2"})
    assert await site.texts() == ["A", "A[]", "C", "C[A,A[]]"]


async def test_the_last_answer_is_made_anew_without_an_id(set_site: SetSite) -> None:
    site = await talked(set_site)
    first = (await site.rows())[3].message.id
    response = await site.post(anew(said("m1", "A"), said("m2", "B")))
    start = read_stream(response.text)[0]
    assert start["messageId"] != first
    assert site.driver.calls == ["A[]", "B[A,A[]]", "B[A,A[]]"]
    assert await site.texts() == ["A", "A[]", "B", "B[A,A[]]"]


async def test_an_earlier_answer_is_made_anew_by_its_id(set_site: SetSite) -> None:
    site = await talked(set_site)
    answer = (await site.rows())[1].message.id
    response = await site.post(anew(said("m1", "A"), messageId=answer))
    assert text_of(read_stream(response.text)) == "A[]"
    assert await site.texts() == ["A", "A[]"]


async def test_an_answer_is_made_anew_by_the_id_of_its_message(set_site: SetSite) -> None:
    site = await talked(set_site)
    await site.post(anew(said("m1", "A"), messageId="m1"))
    assert await site.texts() == ["A", "A[]"]
    assert len(site.driver.calls) == 3


async def test_a_message_that_was_never_stored_is_just_run(set_site: SetSite) -> None:
    site = await set_site()
    await site.post(anew(said("m1", "A")))
    await site.post(anew(said("m2", "B")))
    assert await site.texts() == ["A", "A[]", "B", "B[A,A[]]"]


async def test_an_answer_is_made_anew_without_a_state(set_stateless_site: SetSite) -> None:
    site = await set_stateless_site()
    await site.post(turn("m1", "A"))
    await site.post(turn("m1", "A"))
    assert site.driver.calls == ["A[]"]
    await site.post(anew(said("m1", "A")))
    assert site.driver.calls == ["A[]", "A[]"]


@pytest.mark.parametrize("kind", ["edit", "answer"])
async def test_a_message_of_the_other_kind_is_refused(set_site: SetSite, kind: str) -> None:
    site = await talked(set_site)
    answer = (await site.rows())[1].message.id
    edit = {**turn("m3", "C"), "messageId": answer}
    body = edit if kind == "edit" else anew(said("m2", "B"), messageId="m1")
    response = await site.post(body)
    error = response.json()["error"]
    assert (response.status_code, error["path"]) == (400, "messageId")
    assert len(await site.rows()) == 4


@pytest.mark.parametrize("user", ["ada", "bob"])
async def test_an_unknown_message_and_one_of_somebody_else_are_not_found(
    set_site: SetSite, user: str
) -> None:
    site = await talked(set_site)
    message_id = "unknown" if user == "ada" else "m1"
    for body in ({**turn("m3", "C"), "messageId": message_id}, anew(said("m3", "C"))):
        response = await site.post({**body, "messageId": message_id}, user=user)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
    assert await site.texts() == ["A", "A[]", "B", "B[A,A[]]"]


async def test_while_a_turn_runs_nothing_is_replaced(set_site: SetSite) -> None:
    site = await set_site(stops=True)
    site.release("A")
    await site.post(turn("m1", "A"))
    running = site.follow("POST", "", turn("m2", "B"))
    await site.begun("B")
    for body in ({**turn("m1", "C"), "messageId": "m1"}, anew(said("m1", "A"), messageId="m1")):
        response = await site.post(body)
        assert response.status_code == 409
        assert response.json()["error"]["code"] == "turn_in_progress"
        assert "retry-after" in response.headers
    site.release("B")
    await running.chunks()
    assert await site.texts() == ["A", "A[]", "B", "B[A,A[]]"]
