"""The fields of an agent definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vitehub_chat.config.agent_definition import (
    AgentFields,
    PluginChoice,
    StateChoice,
    model_name,
    read_agent_definition,
    state_url,
)
from vitehub_chat.errors import ConfigError

TOKEN = "sk-never-to-be-seen"  # noqa: S105  a made-up one


class Answering:
    """A driver object."""

    def stream(self, call: object) -> object:
        """Answer."""
        return call


class Answers(Answering):
    """A driver object that could also be called."""

    def __call__(self) -> None:
        """Do nothing."""


class Greeting:
    """A capability object."""

    def __init__(self, name: str = "greeting") -> None:
        self.name = name
        self.triggers: dict[str, object] = {}


class Store:
    """An Agent State."""

    async def __aenter__(self) -> Store:
        return self

    async def aclose(self) -> None:
        """Do nothing."""


def answer(call: object) -> str:
    """Answer without a model."""
    return str(call)


def read(**fields: object) -> AgentFields:
    return read_agent_definition({"name": "support", **fields})


def refusal(**fields: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(**fields)
    return caught.value


def test_a_name_is_enough() -> None:
    assert read() == AgentFields(name="support")


def test_none_means_that_a_field_was_not_given() -> None:
    fields = ("driver", "capabilities", "channels", "state", "meta")
    assert read(**dict.fromkeys(fields)) == read()


def test_fields_are_read_in_order() -> None:
    capability, store = Greeting(), Store()
    fields = read(
        driver={"model": "openai:gpt-5.1-mini", "instructions": "Answer."},
        capabilities=["memory", {"use": "chat", "lockScope": "thread"}, capability],
        channels=({"use": "github", "secret": TOKEN}, "web"),
        state=store,
        meta={"team": "a"},
    )
    assert fields == AgentFields(
        name="support",
        driver=PluginChoice(
            "pydantic_ai", {"model": "openai:gpt-5.1-mini", "instructions": "Answer."}
        ),
        capabilities=(
            PluginChoice("memory"),
            PluginChoice("chat", {"lockScope": "thread"}),
            capability,
        ),
        channels=(PluginChoice("github", {"secret": TOKEN}), PluginChoice("web")),
        state=store,
        meta={"team": "a"},
    )


MODEL = object()


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("echo", PluginChoice("echo")),
        (answer, PluginChoice("callable", {"run": answer})),
        ({"run": answer}, PluginChoice("callable", {"run": answer})),
        ({"use": "echo"}, PluginChoice("echo")),
        ({"use": "strands", "model": "m"}, PluginChoice("strands", {"model": "m"})),
        ({"model": "openai/gpt"}, PluginChoice("pydantic_ai", {"model": "openai:gpt"})),
        ({"model": MODEL}, PluginChoice("pydantic_ai", {"model": MODEL})),
        (
            {"model": "test", "instructions": None},
            PluginChoice("pydantic_ai", {"model": "test"}),
        ),
    ],
)
def test_every_form_of_a_driver_is_a_choice(driver: object, expected: PluginChoice) -> None:
    assert read(driver=driver).driver == expected


@pytest.mark.parametrize("driver", [Answering(), Answers()])
def test_a_driver_object_stays_what_it_is(driver: object) -> None:
    assert read(driver=driver).driver is driver


@pytest.mark.parametrize(
    ("driver", "path"),
    [
        ("", "driver"),
        (5, "driver"),
        ([answer], "driver"),
        ({}, "driver.model"),
        ({"model": ""}, "driver.model"),
        ({"model": 5}, "driver.model"),
        ({"model": ["a"]}, "driver.model"),
        ({"model": "m", "instructions": 5}, "driver.instructions"),
        ({"model": "m", "temperature": 0}, "driver.temperature"),
        ({"instruction": "x", "model": "m"}, "driver.instruction"),
        ({"run": "answer"}, "driver.run"),
        ({"run": answer, "model": "m"}, "driver.model"),
        ({"use": ""}, "driver.use"),
        ({"use": 5}, "driver.use"),
        ({"use": None}, "driver.use"),
        ({"use": "echo", 5: 5}, "driver"),
    ],
)
def test_a_wrong_driver_is_refused(driver: object, path: str) -> None:
    assert refusal(driver=driver).path == path


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("openai/gpt-5.1-mini", "openai:gpt-5.1-mini"),
        ("openai:gpt-5.1-mini", "openai:gpt-5.1-mini"),
        ("openrouter:meta/llama", "openrouter:meta/llama"),
        ("bedrock/anthropic.claude-v1:0", "bedrock:anthropic.claude-v1:0"),
        ("huggingface/meta/llama", "huggingface:meta/llama"),
        ("test", "test"),
    ],
)
def test_a_slash_behind_the_provider_is_a_colon(given: str, expected: str) -> None:
    assert model_name(given) == expected


@pytest.mark.parametrize("field", ["capabilities", "channels"])
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("chat", ""),
        ({"use": "chat"}, ""),
        ([5], "[0]"),
        ([""], "[0]"),
        (["a", None], "[1]"),
        ([{}], "[0].use"),
        ([{"name": "chat"}], "[0].use"),
        ([{"use": ["chat"]}], "[0].use"),
        ([{"use": "chat", 5: 5}], "[0]"),
        ([Greeting], "[0]"),
    ],
)
def test_a_wrong_list_is_refused(field: str, value: object, path: str) -> None:
    assert refusal(**{field: value}).path == f"{field}{path}"


@pytest.mark.parametrize(
    "pair",
    [
        ["chat", "chat"],
        ["chat", {"use": "chat"}],
        [Greeting("chat"), {"use": "chat"}],
        [Greeting("chat"), Greeting("chat")],
    ],
)
def test_t35_a_second_chat_is_refused(pair: list[object]) -> None:
    assert refusal(capabilities=["memory", *pair]).path == "capabilities[2]"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("memory:", "memory:"),
        ("file:.vitehub/agent-state.db", "file:.vitehub/agent-state.db"),
        ("libsql://db.example.org", "libsql://db.example.org"),
        ("FILE:x.db", "FILE:x.db"),
        (".vitehub/agent-state.db", "file:.vitehub/agent-state.db"),
        ("/var/lib/a b%20.db", "file:/var/lib/a%20b%2520.db"),
        ("what?.db", "file:what%3F.db"),
        (":memory:", "file::memory:"),
        ("C:\\data\\state.db", "file:C:%5Cdata%5Cstate.db"),
        (Path("data/state.db"), "file:data/state.db"),
        ({"url": "data/state.db"}, "file:data/state.db"),
    ],
)
def test_a_bare_path_becomes_a_file_url(state: object, expected: str) -> None:
    assert read(state=state).state == StateChoice(expected)


def test_a_url_stays_as_it_is() -> None:
    assert state_url("libsql://h/a b?authToken=x%20") == "libsql://h/a b?authToken=x%20"


def test_options_of_a_state_have_one_spelling_afterwards() -> None:
    state: dict[str, object] = {
        "url": "memory:",
        "authToken": TOKEN,
        "tablePrefix": "p_",
        "transcripts": {"retention": "30d"},
        "durability": "normal",
        "busyTimeoutMs": 1,
        "cleanup_interval_ms": 2,
        "migrate": False,
        "search": None,
    }
    assert read(state=state).state == StateChoice(
        "memory:",
        {
            "auth_token": TOKEN,
            "table_prefix": "p_",
            "transcripts": {"retention": "30d"},
            "durability": "normal",
            "busy_timeout_ms": 1,
            "cleanup_interval_ms": 2,
            "migrate": False,
        },
    )


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ("", "state.url"),
        (5, "state"),
        ([], "state"),
        (Store, "state"),
        ({}, "state.url"),
        ({"url": 5}, "state.url"),
        ({"url": "memory:", "token": "x"}, "state.token"),
        ({"url": "memory:", "authToken": ""}, "state.auth_token"),
        ({"url": "memory:", "auth_token": 5}, "state.auth_token"),
        ({"url": "memory:", "auth_token": "x", "authToken": "x"}, "state.auth_token"),
        ({"url": "memory:", "auth_token": "x", "auth_token_env": "X"}, "state.auth_token_env"),
        ({"url": "memory:", "durability": "none"}, "state.durability"),
        ({"url": "memory:", "busy_timeout_ms": 0}, "state.busy_timeout_ms"),
        ({"url": "memory:", "busy_timeout_ms": "5"}, "state.busy_timeout_ms"),
        ({"url": "memory:", "migrate": 1}, "state.migrate"),
        ({"url": "memory:", "transcripts": {"prune": True}}, "state.transcripts.prune"),
        ({"url": "memory:", "transcripts": {"retention": "x"}}, "state.transcripts.retention"),
    ],
)
def test_a_wrong_state_is_refused(state: object, path: str) -> None:
    assert refusal(state=state).path == path


@pytest.mark.parametrize(
    "state",
    [
        {"url": f"libsql://h?authToken={TOKEN}", "auth_token": TOKEN, "authToken": TOKEN},
        {"url": [TOKEN]},
        {"url": f"libsql://h?authToken={TOKEN}", "auth_token": [TOKEN]},
        {"url": f"libsql://h?authToken={TOKEN}", "table_prefix": [TOKEN]},
        {"url": f"libsql://h?authToken={TOKEN}", "durability": TOKEN},
        {"url": f"libsql://h?authToken={TOKEN}", "auth_token": TOKEN, "authTokenEnv": TOKEN},
    ],
)
def test_no_error_shows_a_token(state: dict[str, object]) -> None:
    error = refusal(state=state)
    assert TOKEN not in f"{error} {error!r} {error.__cause__!r}"


def test_no_repr_shows_a_token() -> None:
    fields = read(
        state={"url": f"libsql://h?authToken={TOKEN}", "auth_token": TOKEN},
        channels=[{"use": "github", "secret": TOKEN}],
        driver={"use": "x", "key": TOKEN},
    )
    assert TOKEN not in f"{fields!r}"
    assert "libsql" in f"{fields!r}"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "name"),
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a\x00"}, "name"),
        ({"name": "x" * 513}, "name"),
        ({"name": "a", "meta": []}, "meta"),
        ({"name": "a", "capability": []}, "capability"),
    ],
)
def test_a_wrong_definition_is_refused(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_agent_definition(fields)
    assert caught.value.path == path


@pytest.mark.parametrize("fields", [None, [], "support"])
def test_a_definition_that_is_no_mapping_is_refused(fields: Any) -> None:
    with pytest.raises(ConfigError, match="must be a mapping"):
        read_agent_definition(fields)


def test_a_factory_that_was_not_called_is_told_so() -> None:
    def chat() -> None:
        """Do nothing."""

    assert str(refusal(capabilities=[chat])) == (
        "capabilities[0]: must be a name, a mapping with 'use' or an object with `triggers`, "
        "not function (call it: chat(...))"
    )


@pytest.mark.parametrize("name", ["agent", "settings"])
def test_an_option_of_the_driver_alone_asks_for_its_name(name: str) -> None:
    error = refusal(driver={"model": "test", name: {}})
    assert (error.path, error.hint) == (f"driver.{name}", "add 'use': 'pydantic_ai'")
