"""What a definition means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import ECHO, Invoke, document, failure
from vitehub_chat import chat, plugins
from vitehub_chat.cli.settings import policy_values
from vitehub_chat.config.chat_model import ChatModel
from vitehub_chat.config.context_model import ContextModel, MemoryModel
from vitehub_chat.config.lowering import inner_models
from vitehub_chat.config.option_model import OptionModel
from vitehub_chat.config.schema import agent_json_schema
from vitehub_chat.config.transcripts_model import PruneModel
from vitehub_chat.state.opening import open_agent_state

OF_THEIR_OWN = {"context", "memory", "transcripts.prune"}
"""Groups of options that are off unless they are asked for."""


def origins(found: dict[str, Any]) -> dict[str, tuple[Any, str]]:
    return {each["path"]: (each["value"], each["origin"]) for each in found["settings"]}


def paths(model: type[OptionModel], prefix: str = "") -> set[str]:
    inner = inner_models(model)
    found: set[str] = set()
    for name in model.model_fields:
        path = f"{prefix}{name}"
        if path in OF_THEIR_OWN:
            continue
        found |= paths(inner[name], f"{path}.") if name in inner else {path}
    return found


def test_every_option_has_a_value() -> None:
    strategies = ("queue", "parallel", "debounce")
    shown: set[str] = set()
    for strategy in strategies:
        policy = chat(
            concurrency=strategy,  # type: ignore[arg-type]  # one of the strategies
            sessions=True,
            trigger_history={"source": "thread", "max_messages": 1},
        ).policy
        shown |= set(policy_values(policy))
    assert shown - {"trigger_history", "sessions"} == paths(ChatModel)


def test_values_come_from_the_definition_or_are_defaults(support: str, invoke: Invoke) -> None:
    found = origins(document(invoke("config", "check", support, "--json")))
    assert found["chat.trigger_history.max_messages"] == (4, "definition")
    assert found["chat.trigger_history.max_age_ms"] == (None, "default")
    assert found["chat.concurrency.strategy"] == ("serial", "default")
    assert found["chat.dedupe_ttl_ms"] == (600_000, "default")
    assert found["state.url"] == ("file:state.db", "definition")
    assert found["state.durability"] == ("full", "default")


def test_a_default_that_was_written_down_is_of_the_definition(folder: Path, invoke: Invoke) -> None:
    (folder / "support.toml").write_text(f'{ECHO}concurrency = "serial"\n')
    found = origins(document(invoke("config", "check", "support.toml", "--json")))
    assert found["chat.concurrency.strategy"] == ("serial", "definition")


def test_the_environment_comes_before_the_definition(
    support: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITEHUB_AGENT_STATE_URL", "memory:other")
    found = origins(document(invoke("config", "check", support, "--json")))
    assert found["state.url"] == ("memory:other", "environment")


def test_no_secret_is_shown(support: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITEHUB_AGENT_STATE_URL", "fake://me:s3cret@host/db?authToken=s3cret")
    monkeypatch.setenv("VITEHUB_AGENT_STATE_AUTH_TOKEN", "s3cret")
    result = invoke("config", "check", support, "--json")
    assert (result.exit_code, failure(result)["code"]) == (3, "config_error")
    assert "s3cret" not in result.output
    with plugins.state_providers.using(fake=lambda _url, **_options: open_agent_state("memory:")):
        for form in ([], ["--json"]):
            result = invoke("config", "check", support, *form)
            assert (result.exit_code, "s3cret" in result.output) == (0, False)
        found = origins(document(result))
    assert found["state.auth_token"] == ("***", "environment")
    assert found["state.url"] == ("fake://***@host/db?authToken=***", "environment")


def test_options_of_a_driver_are_not_shown(folder: Path, invoke: Invoke) -> None:
    definition = {"name": "a", "driver": {"use": "echo", "reply": "s3cret"}}
    (folder / "a.json").write_text(json.dumps(definition))
    found = origins(document(invoke("config", "check", "a.json", "--json")))
    assert found["driver.reply"] == ("(given)", "definition")


def test_of_further_facts_only_the_names_are_shown(folder: Path, invoke: Invoke) -> None:
    (folder / "a.json").write_text(json.dumps({"name": "a", "meta": {"team": "s3cret"}}))
    found = origins(document(invoke("config", "check", "a.json", "--json")))
    assert found["meta"] == ({"team": "(given)"}, "definition")


def test_an_option_without_effect_is_told(folder: Path, invoke: Invoke) -> None:
    (folder / "support.toml").write_text(
        f'{ECHO}sessions = {{ strategy = "manual", idleTimeoutMs = 5 }}\n'
    )
    found = document(invoke("config", "check", "support.toml", "--json"))
    assert found["warnings"] == ["sessions.idle_timeout_ms has no effect beside strategy='manual'"]
    result = invoke("config", "check", "support.toml")
    assert result.stderr == f"warning: {found['warnings'][0]}\n"


SETTINGS = """from vitehub_chat import PruneOptions, chat, define_agent

agent = define_agent(
    name="a",
    driver="echo",
    state="memory:",
    capabilities=[
        chat(
            trigger_history={"source": "transcript", "max_messages": 9},
            context=True,
            memory={"root": "notes", "noteTimeoutMs": 9},
            transcripts={"prune": PruneOptions.from_settings("settings.json")},
        )
    ],
)
"""


def test_options_of_groups_that_are_on_are_shown_with_where_they_are_from(
    folder: Path, invoke: Invoke
) -> None:
    (folder / "a.py").write_text(SETTINGS)
    (folder / "settings.json").write_text('{"chatHistory.maxAgeHours": 1.5}')
    found = origins(document(invoke("config", "check", "a.py", "--json")))
    groups: dict[str, type[OptionModel]] = {
        "context": ContextModel,
        "memory": MemoryModel,
        "transcripts.prune": PruneModel,
    }
    for path, model in groups.items():
        names = {name.removeprefix(f"chat.{path}.") for name in found if f".{path}." in name}
        assert names == set(model.model_fields)
    assert found["chat.transcripts.prune"] == (True, "file")
    assert found["chat.transcripts.prune.max_age_hours"] == (1.5, "file")
    assert found["chat.transcripts.prune.max_messages"] == (50, "default")
    assert found["chat.memory"] == (True, "definition")
    assert found["chat.memory.root"] == ("notes", "definition")
    assert found["chat.memory.note_timeout_ms"] == (9, "definition")
    assert found["chat.memory.timezone"] == ("UTC", "default")


def test_groups_that_are_off_are_told(support: str, invoke: Invoke) -> None:
    found = origins(document(invoke("config", "check", support, "--json")))
    for path in ("context", "memory", "transcripts.prune"):
        assert found[f"chat.{path}"] == (False, "default")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('context = { summarizer = "gpt" }', "context.summarizer"),
        ('context = { estimator = "guess" }', "context.estimator"),
        ('transcripts = { prune = { estimator = "guess" } }', "transcripts.prune.estimator"),
        ('memory = { sink = "cloud" }', "memory.sink"),
    ],
)
def test_a_name_that_nothing_has_exits_with_3(
    folder: Path, invoke: Invoke, line: str, path: str
) -> None:
    (folder / "support.toml").write_text(f"{ECHO}{line}\n")
    result = invoke("config", "check", "support.toml", "--json")
    assert (result.exit_code, failure(result)["path"]) == (3, path)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("historyy = 3", "capabilities[0].historyy"),
        ("context = { limit = 0 }", "capabilities[0].context.limit"),
        ('concurrency = "steer"', "capabilities[0].concurrency.strategy"),
    ],
)
def test_a_wrong_definition_exits_with_3(
    folder: Path, invoke: Invoke, line: str, path: str
) -> None:
    (folder / "support.toml").write_text(f"{ECHO}{line}\n")
    result = invoke("config", "check", "support.toml", "--json")
    assert (result.exit_code, failure(result)["path"]) == (3, path)


def test_a_transcript_without_a_state_exits_with_3(folder: Path, invoke: Invoke) -> None:
    (folder / "support.toml").write_text(ECHO.replace('state = "file:state.db"', ""))
    result = invoke("config", "check", "support.toml", "--json")
    assert (result.exit_code, failure(result)["path"]) == (3, "trigger_history.source")


def test_nothing_is_opened(support: str, invoke: Invoke, folder: Path) -> None:
    invoke("config", "check", support)
    assert [path.name for path in folder.iterdir()] == ["support.toml"]


def test_the_schema_is_that_of_definitions(invoke: Invoke) -> None:
    assert document(invoke("config", "schema")) == agent_json_schema()
    assert document(invoke("config", "schema", "--json")) == agent_json_schema()


def test_condensing_says_where_each_of_its_values_comes_from(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "context.json").write_text('{"chat_context": {"retries": 5, "maxLoops": 7}}')
    (folder / "support.toml").write_text(f"{ECHO}context = {{ limit = 900, maxLoops = 3 }}\n")
    monkeypatch.setenv("VITEHUB_CHAT_CONTEXT_FILE", str(folder / "context.json"))
    monkeypatch.setenv("VITEHUB_CHAT_CONTEXT_TRIGGER_RATIO", "0.8")
    found = origins(document(invoke("config", "check", "support.toml", "--json")))
    names = ("limit", "max_loops", "trigger_ratio", "retries", "target_ratio")
    assert found["chat.context"] == (True, "definition")
    assert [found[f"chat.context.{name}"] for name in names] == [
        (900, "definition"),
        (3, "definition"),
        (0.8, "environment"),
        (5, "file"),
        (0.7, "default"),
    ]
