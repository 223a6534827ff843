"""Definitions: what they may say, and where they say what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agent.support import Recorder, run, say, turn
from vitehub_chat import Agent, Capability, chat, define_agent, open_agent_state
from vitehub_chat.errors import ConfigError
from vitehub_chat.plugins import capabilities, channels


def refused(*args: Any, **fields: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        define_agent(*args, **fields)
    return caught.value


class Named(Capability):
    """A capability of any name."""

    def __init__(self, name: str) -> None:
        self.name = name


class Half:
    """Looks like a capability but is none."""

    name = "half"
    triggers: dict[str, Any] = {}  # noqa: RUF012 - the shape of the contract


async def test_a_mapping_means_the_same_as_keywords() -> None:
    fields: dict[str, Any] = {
        "name": "a",
        "driver": "echo",
        "capabilities": [{"use": "chat", "triggerHistory": {"source": "thread", "maxMessages": 2}}],
        "meta": {"x": 1},
    }
    given = turn(say("a", "a"), say("b", "b"), say("c", "c"))
    answers = [
        (await run(agent, given)).text for agent in (define_agent(fields), define_agent(**fields))
    ]
    assert answers == ["You said: c (1 earlier message)"] * 2


def test_a_capability_is_given_by_name_by_options_or_as_itself() -> None:
    agents = [
        define_agent(name="a", capabilities=[given])
        for given in ("chat", {"use": "chat"}, chat(), "vitehub_chat.capability:chat")
    ]
    assert [sorted(agent.triggers) for agent in agents] == [["chat.message"]] * 4
    assert len({agent.policy for agent in agents}) == 1


@pytest.mark.parametrize(
    "driver",
    [
        "echo",
        {"use": "echo"},
        {"use": "echo", "reply": "You said: hi"},
        lambda call: f"You said: {call.text}",
        {"run": lambda call: f"You said: {call.text}"},
        "vitehub_chat.agent.drivers.echo:create",
    ],
    ids=["name", "mapping", "options", "callable", "run", "path"],
)
async def test_a_driver_is_given_in_many_ways(driver: Any) -> None:
    agent = define_agent(name="a", driver=driver, capabilities=["chat"])
    assert (await run(agent, turn(say("hi")))).text == "You said: hi"


async def test_a_driver_with_wrong_options_fails_at_the_turn() -> None:
    agent = define_agent(name="a", driver={"use": "echo", "replay": "x"}, capabilities=["chat"])
    with pytest.raises(ConfigError) as caught:
        await run(agent, turn(say("hi")))
    assert caught.value.path == "driver.replay"
    assert caught.value.hint == "did you mean 'reply'?"


async def test_a_registered_capability_is_found_by_its_name() -> None:
    class Other(Capability):
        def __init__(self, *, level: int = 0) -> None:
            self.name = f"other-{level}"

    with capabilities.using(other=Other):
        agent = define_agent(name="a", capabilities=[{"use": "other", "level": 3}, "chat"])
    assert [capability.name for capability in agent.capabilities] == ["other-3", "chat"]


def test_channels_are_found_by_their_kind() -> None:
    with channels.using(pigeon=lambda **options: ("pigeon", options)):
        agent = define_agent(name="a", channels=[{"use": "pigeon", "loft": 1}])
    assert list(agent.channels) == [("pigeon", {"loft": 1})]


def test_a_definition_opens_nothing(tmp_path: Any) -> None:
    agent = define_agent(name="a", state=f"file:{tmp_path}/no/state.db", driver="echo")
    assert isinstance(agent, Agent)
    assert list(tmp_path.iterdir()) == []


def test_a_token_is_never_shown() -> None:
    agent = define_agent(name="a", state={"url": "libsql://x?authToken=s3cret", "authToken": "t0p"})
    assert "s3cret" not in repr(agent)
    assert "t0p" not in repr(agent)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "name"),
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a\x00"}, "name"),
        ({"name": "a", "capability": []}, "capability"),
        ({"name": "a", "driver": 5}, "driver"),
        ({"name": "a", "driver": ""}, "driver"),
        ({"name": "a", "driver": "ekko"}, "driver"),
        ({"name": "a", "driver": {"use": "ekko"}}, "driver"),
        ({"name": "a", "driver": {"instructions": "x"}}, "driver.model"),
        ({"name": "a", "driver": {"run": 5}}, "driver.run"),
        ({"name": "a", "capabilities": "chat"}, "capabilities"),
        ({"name": "a", "capabilities": ["chat", "tchat"]}, "capabilities[1]"),
        ({"name": "a", "capabilities": [5]}, "capabilities[0]"),
        ({"name": "a", "capabilities": [{"max": 1}]}, "capabilities[0].use"),
        ({"name": "a", "capabilities": ["chat", {"use": "chat"}]}, "capabilities[1]"),
        ({"name": "a", "capabilities": [Named("x"), Named("x")]}, "capabilities[1]"),
        ({"name": "a", "capabilities": [Half()]}, "capabilities[0]"),
        ({"name": "a", "channels": ["pigeon"]}, "channels[0]"),
        ({"name": "a", "state": 5}, "state"),
        ({"name": "a", "state": ""}, "state.url"),
        ({"name": "a", "state": {}}, "state.url"),
        ({"name": "a", "meta": []}, "meta"),
    ],
)
def test_what_is_wrong_has_a_path(fields: dict[str, Any], path: str) -> None:
    assert refused(fields).path == path
    assert refused(**fields).path == path


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"triggerHistory": {"source": "thread"}}, "trigger_history.max_messages"),
        ({"lockScopes": "thread"}, "lockScopes"),
        ({"sessions": {"idleTimeoutMs": "5"}}, "sessions.idle_timeout_ms"),
    ],
)
def test_a_wrong_option_of_a_capability_has_its_path_and_its_place(
    options: dict[str, Any], path: str
) -> None:
    error = refused(name="a", capabilities=[Named("x"), {"use": "chat", **options}])
    assert error.path == f"capabilities[1].{path}"


def test_options_that_a_factory_does_not_take_are_refused() -> None:
    class Bare(Capability):
        name = "bare"

    with capabilities.using(bare=Bare):
        error = refused(name="a", capabilities=[{"use": "bare", "level": 3}])
    assert error.path == "capabilities[0]"


def test_the_nearest_name_is_told() -> None:
    assert "did you mean 'echo'?" in str(refused(name="a", driver="eco"))
    assert "did you mean 'chat'?" in str(refused(name="a", capabilities=["chatt"]))


@pytest.mark.parametrize("driver", ["openai:gpt-5", "gpt-5"])
def test_a_model_in_place_of_a_driver_is_told_how_to_be_given(driver: str) -> None:
    assert "a model is given as {'model': 'openai:gpt-5'}" in str(refused(name="a", driver=driver))


def test_a_mapping_excludes_keywords() -> None:
    assert refused({"name": "a"}, driver="echo").path == "driver"


async def test_an_opened_state_and_a_driver_object_are_taken_as_they_are() -> None:
    class Driver:
        kind = "mine"
        profile = model = window_tokens = None
        tools = ()

        def stream(self, _call: Any, /) -> Any:
            raise AssertionError

        async def aclose(self) -> None:
            return

    driver: Any = Driver()
    async with open_agent_state("memory:") as state:
        agent = define_agent(name="a", driver=driver, state=state)
        assert agent.driver is driver
        assert agent.state is state
        assert await agent.open_state() is state


async def test_an_agent_without_chat_has_no_triggers_and_says_so() -> None:
    agent = define_agent(name="a", driver=Recorder())
    with pytest.raises(Exception, match=r"does the definition list chat\(\)"):
        await run(agent, turn(say("hi")))
