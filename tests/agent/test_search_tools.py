"""The tools with which a model looks into past conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agent.support import TRANSCRIPT, agent_of, run, say, turn
from vitehub_chat import Agent, DriverCall, run_agent
from vitehub_chat.agent.driver import ToolSpec
from vitehub_chat.agent.search_tools import NOTE

HALF = "a\ud83d"
"""A text with half of a surrogate pair."""


class Caller:
    """A driver that calls one tool and keeps what it gives."""

    def __init__(self) -> None:
        self.tool: str | None = None
        self.given: dict[str, Any] = {}
        self.tools: list[ToolSpec] = []
        self.result: Any = None

    async def __call__(self, call: DriverCall) -> str:
        self.tools = list(call.tools)
        if self.tool is not None:
            tool = next(each for each in call.tools if each.name == self.tool)
            self.result = await tool.call(**self.given)
        return "fine"

    async def use(self, agent: Agent, tool: str, /, *, turn_: dict[str, Any], **given: Any) -> Any:
        self.tool, self.given = tool, given
        await run(agent, turn_)
        self.tool = None
        return self.result


def agent_with(caller: Caller, url: Any, **options: Any) -> Agent:
    return agent_of(caller, url, search_tools=True, **options)


def by(user: str | None, text: str, message_id: str, thread: str) -> dict[str, Any]:
    more = {} if user is None else {"user_key": user}
    return turn(say(text, message_id), thread=thread, **more)


async def test_without_the_option_there_are_none(url: str) -> None:
    caller = Caller()
    async with agent_of(caller, url) as agent:
        await run(agent, turn(say("hi", "m1")))
    assert caller.tools == []


async def test_without_a_state_and_in_a_direct_call_there_are_none(url: str) -> None:
    caller = Caller()
    await run(agent_with(caller, None), turn(say("hi", "m1")))
    assert caller.tools == []
    async with agent_with(caller, url) as agent:
        await run_agent(agent, "hi")
        assert caller.tools == []
        await run(agent, turn(say("hi", "m1")))
    assert [tool.name for tool in caller.tools] == ["conversation_search", "conversation_get"]


async def test_a_hit_of_another_conversation_leads_to_its_messages(url: str) -> None:
    caller = Caller()
    async with agent_with(caller, url, trigger_history=TRANSCRIPT) as agent:
        await run(agent, by("ann", "My cat is called Minka", "m1", "old"))
        now = by("ann", "what is my CAT called?", "m2", "new")
        found = await caller.use(agent, "conversation_search", turn_=now, query="cat called")
        assert found["note"] == NOTE
        [hit] = found["hits"]
        assert (hit["message_id"], hit["role"], hit["seq"]) == ("m1", "user", 1)
        assert hit["snippet"] == "My **cat** is **called** Minka"
        now = by("ann", "and then?", "m3", "new")
        given = {"conversation": hit["conversation"], "around": hit["message_id"]}
        read = await caller.use(agent, "conversation_get", turn_=now, **given)
        assert read["messages"][0]["message_id"] == "m1"
        assert [each["role"] for each in read["messages"]] == ["user", "assistant"]
        assert read["messages"][0]["parts"] == [{"type": "text", "text": "My cat is called Minka"}]
        assert (read["note"], read["truncated"]) == (NOTE, False)


async def test_what_the_model_has_before_it_is_left_out(url: str) -> None:
    caller = Caller()
    window = {"source": "transcript", "max_messages": 3}
    async with agent_with(caller, url, trigger_history=window) as agent:
        for number in range(4):
            await run(agent, by("ann", f"tea {number}", f"m{number}", "t"))
        now = by("ann", "tea?", "m4", "t")
        found = await caller.use(agent, "conversation_search", turn_=now, query="tea", limit=2)
        assert [hit["message_id"] for hit in found["hits"]] == ["m2", "m1"]
        now = by("ann", "so?", "m5", "t")
        given = {"conversation": found["hits"][0]["conversation"], "max_messages": 50}
        read = await caller.use(agent, "conversation_get", turn_=now, **given)
        users = [each["message_id"] for each in read["messages"] if each["role"] == "user"]
        assert users == ["m0", "m1", "m2", "m3"]
        assert read["left_out"] == 3


async def test_l173_a_model_sees_the_conversations_of_one_person_alone(url: str) -> None:
    caller = Caller()
    async with agent_with(caller, url) as agent:
        await run(agent, by("bob", "the secret of bob", "b1", "bobs"))
        await run(agent, by("ann", "the secret of ann", "a1", "anns"))
        now = by("bob", "?", "b2", "bobs")
        found = await caller.use(agent, "conversation_search", turn_=now, query="secret of")
        [bobs] = found["hits"]
        now = by("ann", "!", "a2", "anns")
        found = await caller.use(agent, "conversation_search", turn_=now, query="secret")
        assert [hit["message_id"] for hit in found["hits"]] == ["a1"]
        for name in (bobs["conversation"], "x", "", "1:t", "4:bobs-", "-4:bobs-"):
            now = by("ann", "!", f"a {name}", "anns")
            read = await caller.use(agent, "conversation_get", turn_=now, conversation=name)
            assert (name, read["error"]["code"] in {"not_found", "invalid_input"}) == (name, True)
            assert "messages" not in read


async def test_without_an_owner_the_model_sees_this_conversation_alone(url: str) -> None:
    caller = Caller()
    async with agent_with(caller, url) as agent:
        await run(agent, by(None, "tea here", "m1", "here"))
        await run(agent, by(None, "tea there", "m2", "there"))
        await run(agent, by("ann", "tea of ann", "m3", "hers"))
        now = by(None, "?", "m4", "here")
        found = await caller.use(agent, "conversation_search", turn_=now, query="tea")
        assert [hit["message_id"] for hit in found["hits"]] == ["m1"]
        now = by(None, "?", "m5", "there")
        given = {"conversation": found["hits"][0]["conversation"]}
        read = await caller.use(agent, "conversation_get", turn_=now, **given)
        assert read["error"]["code"] == "not_found"


async def test_the_owner_may_come_from_identity(url: str) -> None:
    caller = Caller()

    def identity(context: dict[str, Any]) -> str:
        return str(context["chat"]["user"]["id"])

    async with agent_with(caller, url, identity=identity) as agent:
        for user, thread in (("ann", "t1"), ("bob", "t2"), ("ann", "t3")):
            given = turn(say(f"tea of {user}", thread), thread=thread, user={"id": user})
            found = await caller.use(agent, "conversation_search", turn_=given, query="tea")
        assert [hit["message_id"] for hit in found["hits"]] == ["t1"]


WRONG_SEARCHES: list[tuple[dict[str, Any], str]] = [
    ({}, "query: is missing"),
    ({"query": None}, "query: is missing"),
    ({"query": 5}, "query: must be of type string, not int"),
    ({"query": ["tea"]}, "query: must be of type string, not list"),
    ({"query": "tea", "limit": 0}, "limit: must be an integer >= 1"),
    ({"query": "tea", "limit": "5"}, "limit: must be of type integer, not str"),
    ({"query": "tea", "limit": True}, "limit: must be of type integer, not bool"),
    ({"query": "tea", "limit": 2.5}, "limit: must be of type integer, not float"),
    ({"query": "tea", "limit": 10**30}, "limit: is too large"),
    ({"query": "tea", "after": "yesterday"}, "after: must be a time in ISO 8601"),
    ({"query": "tea", "before": HALF}, "before: must be a time in ISO 8601"),
    ({"query": "tea", "before": 5}, "before: must be of type string, not int"),
    ({"query": "tea", "role": 5}, "role: must be of type string, not int"),
    ({"query": "tea", "role": "zz"}, "role: must be one of user, assistant, system"),
    ({"query": "tea", "role": HALF}, "role: must be one of user, assistant, system"),
    (
        {"query": "tea", "tenant": "x"},
        "input: there is no 'tenant'; known: query, limit, role, after, before",
    ),
    (
        {"query": "tea", "self": None},
        "input: there is no 'self'; known: query, limit, role, after, before",
    ),
    (
        {"query": "tea", HALF * 50: 1},
        f"input: there is no {(HALF * 50)[:40]!r}; known: query, limit, role, after, before",
    ),
]


@pytest.mark.parametrize(("given", "told"), WRONG_SEARCHES)
async def test_wrong_input_of_a_model_fails_no_turn(
    url: str, given: dict[str, Any], told: str
) -> None:
    caller = Caller()
    async with agent_with(caller, url) as agent:
        now = by("ann", "hi", "m1", "t")
        found = await caller.use(agent, "conversation_search", turn_=now, **given)
    assert found == {"error": {"code": "invalid_input", "message": told}}
    json.dumps(found, ensure_ascii=False).encode()


NO_PLACE = "conversation: is none; take one that conversation_search returned"
NAMES = "conversation, around, from_seq, to_seq, max_messages"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"conversation": None}, "conversation: is missing"),
        ({"conversation": 5}, "conversation: must be of type string, not int"),
        ({"conversation": "x"}, NO_PLACE),
        ({"conversation": ""}, NO_PLACE),
        ({"conversation": f"-2:{HALF}-"}, NO_PLACE),
        ({"conversation": "-1:\0-"}, NO_PLACE),
        *(
            ({"conversation": name}, NO_PLACE)
            for name in ("-01:t-", "-+1:t-", "- 1:t-", "-1:t--", "-1:t", "-\u0661:t-", "-1:t-\n")
        ),
        ({"around": 5}, "around: must be of type string, not int"),
        ({"around": "a\0"}, "around: contains the character U+0000 (ids are text without "),
        ({"around": HALF}, "around: contains the character U+D83D (ids are text without "),
        ({"around": "m1", "from_seq": 1}, "around: give one of around and a range"),
        ({"from_seq": -1}, "from_seq: must be an integer >= 0"),
        ({"from_seq": "1"}, "from_seq: must be of type integer, not str"),
        ({"to_seq": 10**30}, "to_seq: is too large"),
        ({"max_messages": 0}, "max_messages: must be an integer >= 1"),
        ({"session_id": "s1"}, f"input: there is no 'session_id'; known: {NAMES}"),
        ({"self": 1}, f"input: there is no 'self'; known: {NAMES}"),
    ],
)
async def test_wrong_input_for_a_conversation_fails_no_turn(
    url: str, given: dict[str, Any], told: str
) -> None:
    caller = Caller()
    async with agent_with(caller, url) as agent:
        now = by("ann", "hi", "m1", "t")
        asked = {"conversation": "-1:t-", **given}
        found = await caller.use(agent, "conversation_get", turn_=now, **asked)
    assert (list(found), found["error"]["code"]) == (["error"], "invalid_input")
    assert found["error"]["message"].startswith(told)
    json.dumps(found, ensure_ascii=False).encode()


async def test_null_is_the_same_as_not_given(url: str) -> None:
    caller = Caller()
    nulls = dict.fromkeys(("limit", "role", "after", "before"))
    others = dict.fromkeys(("around", "from_seq", "to_seq", "max_messages"))
    async with agent_with(caller, url) as agent:
        await run(agent, by("ann", "tea", "m1", "t"))
        now = by("ann", "?", "m2", "t2")
        found = await caller.use(
            agent, "conversation_search", turn_=now, query=f"tea {HALF[1:]}", **nulls
        )
        [hit] = found["hits"]
        now = by("ann", "!", "m3", "t2")
        given = {"conversation": hit["conversation"], **others}
        read = await caller.use(agent, "conversation_get", turn_=now, **given)
    assert [each["message_id"] for each in read["messages"]][:1] == ["m1"]


async def test_without_an_index_the_model_is_told(url: str) -> None:
    caller = Caller()
    state = {"url": url, "search": False}
    async with agent_with(caller, state) as agent:
        now = by("ann", "hi", "m1", "t")
        found = await caller.use(agent, "conversation_search", turn_=now, query="hi")
    assert found["error"]["code"] == "config_error"
