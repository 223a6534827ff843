"""The JSON Schema of an agent definition."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic.alias_generators import to_camel

from vitehub_chat.config.agent_definition import PluginChoice, read_agent_definition
from vitehub_chat.config.chat_model import ChatModel
from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.config.schema import agent_json_schema
from vitehub_chat.errors import ConfigError

SCHEMA = agent_json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)

SUPPORT: dict[str, Any] = {
    "name": "support",
    "state": "file:.vitehub/agent-state.db",
    "driver": {"model": "openai:gpt-5.1-mini", "instructions": "Answer support chat messages."},
    "capabilities": [
        {
            "use": "chat",
            "concurrency": "queue",
            "lockScope": "thread",
            "triggerHistory": {"source": "thread", "maxMessages": 20, "maxAgeMs": 1_800_000},
            "sessions": {
                "strategy": "hybrid",
                "idleTimeoutMs": 1_800_000,
                "metadataKey": "sessionId",
            },
        }
    ],
}


def with_chat(**options: object) -> dict[str, Any]:
    return {"name": "support", "capabilities": [{"use": "chat", **options}]}


GOOD: list[dict[str, Any]] = [
    SUPPORT,
    {"name": "support"},
    {"name": "support", "driver": "echo", "capabilities": ["chat"], "channels": ["web"]},
    {"name": "support", "driver": None, "capabilities": None, "state": None, "meta": None},
    {"name": "support", "driver": {"use": "strands", "anything": 1}, "meta": {"team": "a"}},
    {"name": "support", "capabilities": [{"use": "other", "anything": 1}]},
    {"name": "support", "channels": [{"use": "github", "apiUrl": "x"}]},
    {
        "name": "support",
        "state": {
            "url": "libsql://h",
            "authTokenEnv": "TOKEN",
            "busy_timeout_ms": 1,
            "transcripts": {"retention": "30d"},
        },
    },
    with_chat(trigger_history={"source": "transcript", "max_messages": 1}),
    with_chat(trigger_history="none", sessions=True, concurrency={"strategy": "debounce"}),
    with_chat(fallbackStreamingPlaceholderText=["a"], errorFallbackText=None),
    with_chat(thread_history={"maxMessages": 5, "ttl_ms": 5}, loading={"text": "x"}),
    with_chat(context=False, memory={}, transcripts={"prune": False, "retention": 5}),
]
BAD: list[dict[str, Any]] = [
    {},
    {"name": ""},
    {"name": "support", "capability": []},
    {"name": "support", "capabilities": "chat"},
    {"name": "support", "capabilities": [{}]},
    {"name": "support", "capabilities": [5]},
    {"name": "support", "driver": 5},
    {"name": "support", "driver": {"model": "m", "temperature": 0}},
    {"name": "support", "state": {}},
    {"name": "support", "state": {"url": "memory:", "token": "x"}},
    {"name": "support", "state": {"url": "memory:", "authToken": "x", "auth_token": "x"}},
    with_chat(history=5),
    with_chat(lockScope="threads"),
    with_chat(lockScope="thread", lock_scope="thread"),
    with_chat(triggerHistory={"source": "thread"}),
    with_chat(triggerHistory={"source": "thread", "maxMessages": 1, "max_messages": 1}),
    with_chat(triggerHistory={"source": "thread", "maxMessages": "20"}),
    with_chat(triggerHistory={"source": "thread", "maxMessages": 0}),
    with_chat(triggerHistory="thread"),
    with_chat(sessions=5),
    with_chat(timeoutMs=10**17),
    with_chat(loading={"text": ""}),
    with_chat(transcripts={"retention": "1w"}),
    with_chat(memory={"extract": True, "memoryAutoExtract": True}),
]


def is_accepted(definition: dict[str, Any]) -> bool:
    try:
        fields = read_agent_definition(definition)
        for item in fields.capabilities:
            if isinstance(item, PluginChoice) and item.use == "chat":
                lower_chat_options(item.options)
    except ConfigError:
        return False
    return True


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_it_can_be_written_down_and_is_the_same_every_time() -> None:
    assert json.loads(json.dumps(SCHEMA)) == agent_json_schema()


@pytest.mark.parametrize("definition", GOOD)
def test_what_is_accepted_fits_the_schema(definition: dict[str, Any]) -> None:
    found = [error.message for error in VALIDATOR.iter_errors(definition)]
    assert (is_accepted(definition), found) == (True, [])


@pytest.mark.parametrize("definition", BAD)
def test_what_is_refused_does_not_fit_the_schema(definition: dict[str, Any]) -> None:
    assert (is_accepted(definition), VALIDATOR.is_valid(definition)) == (False, False)


def test_every_property_is_described() -> None:
    objects = [SCHEMA, *SCHEMA["$defs"].values()]
    untold = [
        name
        for schema in objects
        for name, value in schema["properties"].items()
        if name != "use" and "description" not in value
    ]
    assert untold == []


def test_every_option_has_both_names() -> None:
    names = set(SCHEMA["$defs"]["ChatCapability"]["properties"]) - {"use"}
    code_only = {"identity", "filter"}
    fields = set(ChatModel.model_fields) - code_only
    assert names - code_only == fields | {to_camel(field) for field in fields}
