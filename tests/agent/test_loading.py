"""Loading an agent from a file or an import path."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.agent.support import run, say, turn
from vitehub_chat import load_agent
from vitehub_chat.errors import ConfigError, InputError

PYTHON = """
from vitehub_chat import chat, define_agent
agent = define_agent(name="support", driver="echo", capabilities=[chat()])
other = define_agent(name="other", driver="echo")
text = "no agent"
"""
FIELDS = {
    "name": "support",
    "driver": {"use": "echo"},
    "capabilities": [{"use": "chat", "triggerHistory": {"source": "thread", "maxMessages": 2}}],
}
TOML = """
name = "support"
[driver]
use = "echo"
[[capabilities]]
use = "chat"
triggerHistory = { source = "thread", maxMessages = 2 }
"""
YAML = """
name: support
driver: {use: echo}
capabilities:
  - use: chat
    triggerHistory: {source: thread, maxMessages: 2}
"""


def written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return str(file)


def refused(ref: str | Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_agent(ref)
    return caught.value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", TOML),
        ("a.json", json.dumps(FIELDS)),
        ("a.yaml", YAML),
        ("a.yml", YAML),
        ("A.TOML", TOML),
    ],
)
def test_a_definition_is_written_as_data(tmp_path: Path, name: str, text: str) -> None:
    agent = load_agent(written(tmp_path, name, text))
    result = asyncio.run(run(agent, turn(say("a", "a"), say("b", "b"), say("c", "c"))))
    assert agent.name == "support"
    assert result.text == "You said: c (1 earlier message)"


def test_a_python_file_has_an_agent(tmp_path: Path) -> None:
    file = written(tmp_path, "bot.py", PYTHON)
    for ref in (file, Path(file)):
        agent = load_agent(ref)
        assert asyncio.run(run(agent, turn(say("hi")))).text == "You said: hi"


def test_another_attribute_of_a_python_file_may_be_named(tmp_path: Path) -> None:
    assert load_agent(f"{written(tmp_path, 'bot.py', PYTHON)}:other").name == "other"


def test_an_import_path_names_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "agent_of_a_module.py", PYTHON)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_agent("agent_of_a_module:other").name == "other"
    del sys.modules["agent_of_a_module"]


@pytest.mark.parametrize(
    "ref", ["", "agent", "folder/agent", "agent.txt", "agent.ini", "no such file.py", "./"]
)
def test_what_names_no_agent_is_refused(ref: str) -> None:
    assert refused(ref).path == "ref"


@pytest.mark.parametrize("name", ["missing.toml", "missing.json", "missing.yaml", "missing.py"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    assert name in str(refused(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "name = "),
        ("a.toml", "[name"),
        ("a.json", "{"),
        ("a.json", "[]"),
        ("a.json", '{"name": NaN}'),
        ("a.json", '{"name": "a", "name": "b"}'),
        ("a.yaml", "name: [a"),
        ("a.yaml", "- name"),
        ("a.yaml", "name: !!python/object:os.system {}"),
        ("a.yaml", "name: a\nname: b"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str) -> None:
    assert name in str(refused(written(tmp_path, name, text)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", 'name = "a"\ncapabilities = [{use = "chat", history = {}}]'),
        ("a.json", '{"name": "a", "capabilities": [{"use": "chat", "history": {}}]}'),
        ("a.yaml", "name: a\ncapabilities: [{use: chat, history: {}}]"),
    ],
)
def test_a_wrong_option_has_the_same_path_in_every_file(
    tmp_path: Path, name: str, text: str
) -> None:
    error = refused(written(tmp_path, name, text))
    assert error.path == "capabilities[0].history"
    assert "trigger_history" in str(error)


def test_a_python_file_without_an_agent_says_what_to_do(tmp_path: Path) -> None:
    error = refused(written(tmp_path, "bot.py", "x = 1"))
    assert (error.path, "'agent'" in str(error)) == ("ref", True)
    assert error.hint is not None


@pytest.mark.parametrize("attribute", ["text", "chat"])
def test_what_is_no_agent_is_refused(tmp_path: Path, attribute: str) -> None:
    error = refused(f"{written(tmp_path, 'bot.py', PYTHON)}:{attribute}")
    assert (error.path, "define_agent" in (error.hint or "")) == ("ref", True)


@pytest.mark.parametrize("text", ["raise ValueError('s3cret')", "import no_such_module", "("])
def test_a_python_file_that_fails_is_named_without_its_words(tmp_path: Path, text: str) -> None:
    error = refused(written(tmp_path, "bot.py", text))
    assert "bot.py" in str(error)
    assert "s3cret" not in str(error)
    assert error.__cause__ is not None


def test_a_python_file_that_exits_is_refused(tmp_path: Path) -> None:
    assert "SystemExit" in str(refused(written(tmp_path, "bot.py", "raise SystemExit(3)")))


def test_an_error_of_the_definition_is_raised_as_it_is(tmp_path: Path) -> None:
    text = "from vitehub_chat import chat\nchat(timeout_ms=0)"
    assert refused(written(tmp_path, "bot.py", text)).path == "timeout_ms"


@pytest.mark.parametrize("ref", ["no_such_module_at_all:agent", "json:no_such_name", "json:dumps"])
def test_an_import_path_that_leads_nowhere_is_named(ref: str) -> None:
    assert ref.partition(":")[0] in str(refused(ref))


def test_a_loaded_agent_checks_its_input(tmp_path: Path) -> None:
    agent = load_agent(written(tmp_path, "a.toml", TOML))
    with pytest.raises(InputError) as caught:
        asyncio.run(run(agent, {"mesages": []}))
    assert caught.value.path == "mesages"
