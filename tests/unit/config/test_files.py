"""Files that hold a definition."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vitehub_chat.config.files import load_mapping
from vitehub_chat.errors import ConfigError, MissingDependencyError

DEFINITION = {
    "name": "support",
    "driver": {"model": "openai:gpt-5.1-mini"},
    "capabilities": [{"use": "chat", "triggerHistory": {"source": "thread", "maxMessages": 20}}],
}
TEXTS = {
    "agent.toml": """
name = "support"
[driver]
model = "openai:gpt-5.1-mini"
[[capabilities]]
use = "chat"
triggerHistory = { source = "thread", maxMessages = 20 }
""",
    "agent.JSON": """{"name": "support", "driver": {"model": "openai:gpt-5.1-mini"},
"capabilities": [{"use": "chat", "triggerHistory": {"source": "thread", "maxMessages": 20}}]}""",
    "agent.yaml": """
name: support
driver: {model: "openai:gpt-5.1-mini"}
capabilities:
  - use: chat
    triggerHistory: {source: thread, maxMessages: 20}
""",
    "agent.yml": """
window: &window {source: thread, maxMessages: 20}
""",
}


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: str | Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_mapping(path)
    return caught.value


@pytest.mark.parametrize("name", ["agent.toml", "agent.JSON", "agent.yaml"])
def test_every_format_gives_the_same_mapping(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, TEXTS[name])
    assert (load_mapping(path), load_mapping(str(path))) == (DEFINITION, DEFINITION)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_byte_order_mark_does_not_matter(tmp_path: Path, name: str) -> None:
    marked = write(tmp_path, name, "\ufeff" + TEXTS[name])
    plain = write(tmp_path, f"plain-{name}", TEXTS[name])
    assert load_mapping(marked) == load_mapping(plain)


def test_yaml_anchors_and_merges_are_read(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n"
    assert load_mapping(write(tmp_path, "a.yml", text)) == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
    }


@pytest.mark.parametrize("name", ["agent.ini", "agent", "agent.toml.bak", ".json"])
def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    error = refusal(tmp_path / name)
    assert error.hint == "known suffixes: .toml, .json, .yaml, .yml"
    assert name in error.message


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.toml", 'name = "a"\nstate = \n', 2),
        ("a.toml", 'name = "a"\nname = "b"\n', 2),
        ("a.json", '{"name": "a",\n"state": }', 2),
        ("a.json", "", 1),
        ("a.yaml", "name: a\nstate: [1, 2\n", 3),
        ("a.yaml", "name: a\nstate: !!python/object:os.system x\n", 2),
        ("a.yaml", "name: a\ndriver: b\nname: c\n", 3),
    ],
)
def test_an_error_names_file_and_line(tmp_path: Path, name: str, text: str, line: int) -> None:
    path = write(tmp_path, name, text)
    assert refusal(path).message.startswith(f"the file {str(path)!r}, line {line} ")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", '{"a": {"b": 1, "b": 2}}', "has the key 'b' twice in one mapping"),
        ("a.json", '{"a": NaN}', "holds NaN, which is not JSON"),
        ("a.json", '{"a": -Infinity}', "holds -Infinity, which is not JSON"),
        ("a.json", '{"a": ' + "9" * 5000 + "}", "holds a number that is too long"),
        ("a.json", "[" * 100_000, "is nested too deeply"),
        ("a.yaml", "[" * 1000, "is nested too deeply"),
        ("a.json", "[1]", "must hold a mapping, not list"),
        ("a.yaml", "", "must hold a mapping, not NoneType"),
        ("a.yaml", "text", "must hold a mapping, not str"),
        ("a.yaml", "a: 2026-99-99", "is not YAML of plain values"),
        ("a.json", b'{"a": "\xff"}', "is not UTF-8 text"),
        ("a.toml", b"\xff", "is not UTF-8 text"),
    ],
)
def test_what_is_not_well_formed_is_refused(
    tmp_path: Path, name: str, content: str | bytes, reason: str
) -> None:
    path = write(tmp_path, name, content)
    assert refusal(path).message == f"the file {str(path)!r} {reason}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    reasons = [refusal(path).message for path in (tmp_path / "no.toml", folder, "a\x00.toml")]
    assert reasons == [
        f"the file {str(tmp_path / 'no.toml')!r} cannot be read: No such file or directory",
        f"the file {str(folder)!r} cannot be read: Is a directory",
        "the file 'a\\x00.toml' cannot be read: not a path",
    ]


def test_yaml_without_its_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingDependencyError, match=r"vitehub-chat\[yaml\]"):
        load_mapping(write(tmp_path, "a.yaml", "name: a"))


@pytest.mark.parametrize("name", ["a.toml", "a.json", "a.yaml"])
def test_no_error_shows_a_value(tmp_path: Path, name: str) -> None:
    text = "authToken: sk-secret: [\nauthToken = sk-secret\n{ sk-secret"
    assert "sk-secret" not in str(refusal(write(tmp_path, name, text)))
