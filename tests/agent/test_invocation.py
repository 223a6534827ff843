"""On whose behalf a turn runs, and what its driver is told about it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.agent.support import Gate, Recorder, Waiting, agent_of, prepare, run, say, turn
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.requests import Invoker

LABELLED = {"id": "u1", "email": "a@x.io", "username": "ann", "name": "Ann"}


async def invoker_of(**fields: Any) -> Invoker:
    prepared = await prepare({"messages": [say("hi")], **fields})
    invoker = prepared.context["invoker"]
    assert isinstance(invoker, Invoker)
    return invoker


async def context_of(*, sessions: Any = None, **fields: Any) -> dict[str, Any]:
    given = {"messages": [say("hi")], **fields}
    return dict((await prepare(given, sessions=sessions)).context)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"id": "i", "sub": "s", "email": "e@x", "username": "u"}, "i"),
        ({"sub": "s", "email": "e@x", "username": "u"}, "s"),
        ({"email": "e@x", "username": "u"}, "e@x"),
        ({"username": "u"}, "u"),
        ({"id": "", "sub": "  ", "email": None, "username": "u"}, "u"),
        ({"id": " i "}, "i"),
        ({"id": 7}, "7"),
        ({"id": 0}, "0"),
    ],
)
async def test_the_first_id_that_is_not_blank_names_the_invoker(
    user: dict[str, Any], expected: str
) -> None:
    assert (await invoker_of(user=user)).id == expected


@pytest.mark.parametrize("user", [{}, {"name": "Ann"}, {"id": True}, {"id": 1.5}, {"id": []}])
async def test_a_user_without_an_id_makes_no_invoker(user: dict[str, Any]) -> None:
    assert "invoker" not in await context_of(user=user)


async def test_the_known_facts_of_a_user_are_the_meta_of_the_invoker() -> None:
    user = {**LABELLED, "sub": "s", "customer": "c1", "role": "admin", "phone": "1"}
    assert (await invoker_of(user=user)).meta == {**LABELLED, "sub": "s", "customer": "c1"}


async def test_blank_facts_of_a_user_are_left_out() -> None:
    invoker = await invoker_of(user={"id": "u1", "name": " ", "email": "", "customer": None})
    assert invoker.meta == {"id": "u1"}


async def test_meta_is_laid_over_the_facts_of_a_user() -> None:
    invoker = await invoker_of(user={"id": "u1", "name": "Ann"}, meta={"name": "Bo", "plan": 2})
    assert invoker.meta == {"id": "u1", "name": "Bo", "plan": 2}


async def test_an_email_of_meta_gives_address_and_domain() -> None:
    invoker = await invoker_of(user={"id": "u1"}, meta={"email": "a.b@c@d.io"})
    assert invoker.email == {"address": "a.b@c@d.io", "domain": "d.io"}


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ((), "Ann"),
        (("name",), "ann"),
        (("name", "username"), "a@x.io"),
        (("name", "username", "email"), "u1"),
    ],
)
async def test_the_label_is_name_username_email_or_id(
    missing: tuple[str, ...], expected: str
) -> None:
    user = {name: fact for name, fact in LABELLED.items() if name not in missing}
    assert (await invoker_of(user=user)).label == expected


async def test_a_given_label_wins() -> None:
    given = {"id": "k", "label": "Kim", "meta": {"name": "Other"}}
    assert (await invoker_of(invoker=given)).label == "Kim"


async def test_an_invoker_needs_an_id() -> None:
    with pytest.raises(InputError) as caught:
        await invoker_of(invoker={"kind": "customer"})
    assert caught.value.path == "invoker.id"


async def test_the_origin_stands_before_no_explicit_invoker() -> None:
    invoker = await invoker_of(invoker={"id": "k"}, run={"origin": "portal"})
    assert invoker.id == "k"


@pytest.mark.parametrize("name", ["triggered_by", "triggeredBy", "channel.sent_at"])
async def test_our_annotations_are_never_the_ones_of_the_caller(name: str) -> None:
    given = {"messages": [say("hi")], "run": {"annotations": {name: "evil", "x": "1"}}}
    prepared = await prepare(given)
    assert prepared.run is not None
    assert prepared.run.annotations == {"x": "1"}


async def test_values_of_the_caller_stay_under_ours() -> None:
    given = {"tenant": object(), "message": "mine", "chat": "mine", "channel": "mine"}
    context = await context_of(context=given)
    assert context["tenant"] is given["tenant"]
    assert context["message"] == {"text": "hi"}
    assert context["chat"] == {"message": {"text": "hi"}}
    assert context["channel"] == {"message": {"text": "hi"}}


async def test_the_message_is_told_with_id_metadata_and_text() -> None:
    prepared = await prepare(turn(say("hi", "m1", metadata={"x": 1})))
    told = {"id": "m1", "metadata": {"x": 1}, "text": "hi"}
    assert prepared.context["message"] == told
    assert prepared.context["chat"]["message"] == told


@pytest.mark.parametrize(
    ("run_info", "session", "expected"),
    [
        ({"thread_id": "t"}, None, "t"),
        ({"run_id": "r"}, None, "r"),
        ({"thread_id": "t", "run_id": "r"}, {"id": "s"}, "t:chat-session:s"),
        ({"run_id": "r"}, {"id": "s"}, "r:chat-session:s"),
    ],
)
async def test_the_label_of_a_session_follows_the_thread(
    run_info: dict[str, str], session: dict[str, str] | None, expected: str
) -> None:
    context = await context_of(sessions=True, run=run_info, session=session)
    assert context["chat.session_id"] == expected


async def test_without_thread_and_run_there_is_no_label() -> None:
    assert "chat.session_id" not in await context_of(sessions=True, session={"id": "s"})


async def test_an_empty_label_of_the_caller_is_none() -> None:
    context = await context_of(run={"thread_id": "t"}, context={"chat.session_id": ""})
    assert context["chat.session_id"] == "t"


async def test_messages_that_are_run_together_are_told(
    any_url: str | None, waiting: Waiting
) -> None:
    driver = Gate()
    async with agent_of(driver, any_url, concurrency="queue") as agent:
        tasks = [asyncio.create_task(run(agent, turn(say("a", "a"))))]
        await driver.reached.wait()
        tasks += [asyncio.create_task(run(agent, turn(say(text, text)))) for text in "bcd"]
        await waiting.reach(3)
        driver.open()
        await asyncio.gather(*tasks)
    told = [call.context.get("chat.coalesced_ids") for call in driver.calls]
    assert told == [None, ["b", "c"]]


async def test_the_driver_gets_what_prepare_shows(any_url: str | None) -> None:
    driver = Recorder()
    given = turn(say("hi", "m1"), session={"id": "s"}, user={"id": "u1"}, context={"x": 1})
    async with agent_of(driver, any_url, sessions=True) as agent:
        result = await run(agent, given)
    [call] = driver.calls
    assert result.prepared is not None
    assert call.messages == result.prepared.messages
    assert call.context == result.prepared.context
    assert call.run == result.prepared.run
    assert call.conversation_id == "s"
    assert call.system is None


async def test_an_agent_without_a_driver_says_so() -> None:
    with pytest.raises(ConfigError) as caught:
        await run(agent_of(None), turn(say("hi")))
    assert caught.value.path == "driver"
