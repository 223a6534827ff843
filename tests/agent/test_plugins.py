"""The plugin registry, on real metadata folders of distributions that lie on the path."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from vitehub_chat.distributions import Plugin, broken_metadata
from vitehub_chat.errors import ConfigError, MissingDependencyError
from vitehub_chat.plugins import (
    Registry,
    all_registries,
    capabilities,
    channels,
    drivers,
    import_path,
    state_providers,
)

GROUP = "vitehub_test.things"

Install = Callable[..., Path]
Thing = Callable[..., Any]


def is_thing(value: object) -> TypeGuard[Thing]:
    return callable(value)


@pytest.fixture
def things() -> Registry[Thing]:
    return Registry(GROUP, is_thing, {"own": "collections:OrderedDict"})


@pytest.fixture
def install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Install:
    """Give a function that installs a distribution: its metadata, and modules with their source."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("VITEHUB_CHAT_PLUGINS", raising=False)

    def write(
        name: str,
        entries: Mapping[str, str],
        modules: Mapping[str, str] | None = None,
        *,
        version: str = "1.0",
        group: str = GROUP,
    ) -> Path:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        headers = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(headers, encoding="utf-8")
        lines = [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
        (folder / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        for module, source in (modules or {}).items():
            (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
            request.addfinalizer(partial(sys.modules.pop, module, None))
        return folder

    return write


def messages(plugins: tuple[Plugin, ...]) -> dict[str, str | None]:
    return {plugin.name: str(plugin.error) if plugin.error else None for plugin in plugins}


def test_listing_imports_nothing_and_getting_imports_one(
    things: Registry[Thing], install: Install
) -> None:
    modules = {"plug_a": "def make(): return 'a'", "plug_b": "def make(): return 'b'"}
    install("plug-one", {"a": "plug_a:make", "b": "plug_b:make"}, modules)

    assert things.names() == ("a", "b", "own")
    assert [entry.name for entry in things.entries()] == ["own", "a", "b"]
    assert not {"plug_a", "plug_b"} & set(sys.modules)

    assert things.get("a")() == "a"
    assert "plug_b" not in sys.modules


def test_doctor_returns_name_value_distribution_version_and_error(
    things: Registry[Thing], install: Install
) -> None:
    install("plug-one", {"a": "plug_a:make"}, {"plug_a": "make = dict"}, version="2.5")

    ours = metadata.version("vitehub-chat")
    assert things.doctor() == (
        ("own", "collections:OrderedDict", "vitehub-chat", ours, None),
        ("a", "plug_a:make", "plug-one", "2.5", None),
    )


BROKEN = {
    "exits": ("raise SystemExit('enough')", "SystemExit: enough"),
    "generator": ("raise GeneratorExit", "GeneratorExit"),
    "syntax": ("def make(:", "SyntaxError: invalid syntax"),
    "missing": ("other = 1", "AttributeError: module 'plug_missing' has no attribute 'make'"),
    "needs": (
        "import not_installed_anywhere",
        "ModuleNotFoundError: No module named 'not_installed_anywhere'",
    ),
    "unprintable": (
        "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad",
        "plug_unprintable.Bad: <exception str() failed>",
    ),
}


def test_a_broken_plugin_is_named_with_its_cause_and_stops_no_other(
    things: Registry[Thing], install: Install
) -> None:
    install(
        "plug-broken",
        {name: f"plug_{name}:make" for name in BROKEN},
        {f"plug_{name}": source for name, (source, _) in BROKEN.items()},
        version="0.3",
    )
    install("plug-good", {"good": "plug_good:make"}, {"plug_good": "make = list"})

    expected: dict[str, str | None] = {
        name: f"plugin {name!r} ('plug_{name}:make') of the group {GROUP!r} from plug-broken 0.3 "
        f"failed: {cause} (other names keep working)"
        for name, (_, cause) in BROKEN.items()
    }
    assert messages(things.doctor()) == {**expected, "good": None, "own": None}
    for name, text in expected.items():
        with pytest.raises(ConfigError) as caught:
            things.get(name)
        assert str(caught.value) == text
        assert caught.value.__cause__ is not None
    assert things.get("good") is list


def test_the_error_carries_the_path_of_the_option(things: Registry[Thing]) -> None:
    with pytest.raises(ConfigError) as caught:
        things.get("nothing", path="capabilities[0].use")

    assert caught.value.path == "capabilities[0].use"


def test_a_keyboard_interrupt_during_an_import_is_not_swallowed(
    things: Registry[Thing], install: Install
) -> None:
    install("plug-a", {"a": "plug_stop:make"}, {"plug_stop": "raise KeyboardInterrupt"})

    with pytest.raises(KeyboardInterrupt):
        things.get("a")


def test_a_missing_extra_stays_a_missing_dependency(
    things: Registry[Thing], install: Install
) -> None:
    source = (
        "from vitehub_chat.errors import MissingDependencyError\n"
        "raise MissingDependencyError('the driver', extra='models')"
    )
    install("plug-a", {"a": "plug_extra:make"}, {"plug_extra": source})

    with pytest.raises(MissingDependencyError):
        things.get("a")
    assert isinstance(things.doctor()[1].error, MissingDependencyError)


def test_a_value_of_the_wrong_shape_is_refused(things: Registry[Thing], install: Install) -> None:
    install("plug-a", {"a": "plug_shape:make", "m": "plug_shape"}, {"plug_shape": "make = 3"})

    assert messages(things.doctor()) == {
        "own": None,
        "a": f"plugin 'a' ('plug_shape:make') of the group {GROUP!r} from plug-a 1.0 has the wrong "
        "shape, a 'int' (it has to be a callable that takes options)",
        "m": f"plugin 'm' ('plug_shape') of the group {GROUP!r} from plug-a 1.0 has the wrong "
        "shape, a 'module' (it has to be a callable that takes options)",
    }


async def test_a_built_in_is_found_without_reading_files_on_the_loop(
    things: Registry[Thing],
) -> None:
    assert things.get("own").__name__ == "OrderedDict"


def test_a_broken_built_in_is_named_with_our_version() -> None:
    broken = Registry(GROUP, is_thing, {"own": "vitehub_chat.nowhere:make"})

    with pytest.raises(ConfigError, match=f"from vitehub-chat {metadata.version('vitehub-chat')}"):
        broken.get("own")


def test_only_version_1_of_the_plugin_api_is_taken(
    things: Registry[Thing], install: Install
) -> None:
    source = "def make(): ...\ndef old(): ...\nmake.vitehub_chat_api = 1\nold.vitehub_chat_api = 2"
    install("plug-a", {"a": "plug_api:make", "b": "plug_api:old"}, {"plug_api": source})

    assert callable(things.get("a"))
    with pytest.raises(ConfigError, match="vitehub_chat_api 2, not 1"):
        things.get("b")


def test_an_unknown_name_lists_the_installed_ones_and_the_nearest(
    things: Registry[Thing], install: Install
) -> None:
    install("plug-a", {"gadget": "plug_gadget:make"})

    with pytest.raises(ConfigError) as caught:
        things.get("gagdet")
    assert str(caught.value) == (
        f"no 'gagdet' in the group {GROUP!r} (did you mean 'gadget'? installed: gadget, own)"
    )


def test_two_distributions_with_one_name_are_an_error_naming_both(
    things: Registry[Thing], install: Install
) -> None:
    install("plug-a", {"same": "plug_a:make", "other": "plug_a:make"}, {"plug_a": "make = dict"})
    install("plug-b", {"same": "plug_b:make"}, {"plug_b": "make = list"}, version="2.0")

    assert things.get("other") is dict
    with pytest.raises(ConfigError) as caught:
        things.get("same")
    text = str(caught.value)
    assert "plug-a 1.0 ('plug_a:make')" in text
    assert "plug-b 2.0 ('plug_b:make')" in text
    assert "uninstall all but one" in text
    assert [entry.name for entry in things.entries() if entry.error] == ["same", "same"]
    assert [entry.name for entry in things.doctor() if entry.error] == ["same", "same"]
    assert things.get("plug_b:make") is list


def test_a_plugin_cannot_replace_a_built_in(things: Registry[Thing], install: Install) -> None:
    install("plug-a", {"own": "plug_evil:make"}, {"plug_evil": "make = list"})

    assert things.get("own").__name__ == "OrderedDict"
    assert messages(things.entries()[1:]) == {
        "own": f"plugin 'own' ('plug_evil:make') of the group {GROUP!r} from plug-a 1.0 cannot "
        "replace the built-in one (use its import path 'plug_evil:make')"
    }
    assert "plug_evil" not in sys.modules


@pytest.mark.parametrize(
    "content",
    [f"[{GROUP}]\nno equals sign\n".encode(), b"\xff\xfe\x00", f"[{GROUP}]\na = =\nb\n".encode()],
)
def test_broken_metadata_of_one_distribution_stops_no_other(
    things: Registry[Thing], install: Install, content: bytes
) -> None:
    folder = install("plug-bad", {})
    (folder / "entry_points.txt").write_bytes(content)
    install("plug-good", {"good": "plug_good:make"}, {"plug_good": "make = list"})

    assert things.names() == ("good", "own")
    assert things.get("good") is list
    (broken,) = broken_metadata()
    assert (broken.distribution, broken.version) == ("plug-bad", "1.0")
    assert str(broken.error).startswith("the entry points of plug-bad are unreadable: ")


def test_a_distribution_without_metadata_still_offers_its_entries(
    things: Registry[Thing], install: Install, tmp_path: Path
) -> None:
    folder = install("plug-bare", {"bare": "plug_bare:make"}, {"plug_bare": "make = list"})
    (folder / "METADATA").unlink()

    assert things.get("bare") is list
    (entry,) = [entry for entry in things.entries() if entry.name == "bare"]
    assert entry.distribution == f"(no name, in {tmp_path})"
    assert entry.version is None


def test_a_second_copy_of_a_distribution_further_down_the_path_does_not_clash(
    things: Registry[Thing], install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = install("plug-a", {"a": "plug_a:make"}, {"plug_a": "make = list"})
    copy = tmp_path / "later" / folder.name
    copy.mkdir(parents=True)
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(sys, "path", [*sys.path, str(copy.parent)])

    assert things.get("a") is list


def test_an_empty_variable_turns_other_distributions_off(
    things: Registry[Thing], install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install("plug-a", {"a": "plug_a:make"}, {"plug_a": "make = list"})
    (folder.parent / "odd-1.dist-info").mkdir()
    (folder.parent / "odd-1.dist-info" / "entry_points.txt").write_bytes(b"\xff")
    monkeypatch.setenv("VITEHUB_CHAT_PLUGINS", "")

    assert things.names() == ("own",)
    assert broken_metadata() == ()
    with pytest.raises(ConfigError, match="turned off by VITEHUB_CHAT_PLUGINS"):
        things.get("a")
    assert things.get("own").__name__ == "OrderedDict"


def test_an_import_path_needs_no_registration(things: Registry[Thing], install: Install) -> None:
    install("plug-a", {}, {"plug_path": "class Box:\n    make = dict\nbad = 4"})

    assert things.get("plug_path:Box.make") is dict
    with pytest.raises(ConfigError, match="'plug_path:bad' for the group 'vitehub_test"):
        things.get("plug_path:bad")
    with pytest.raises(ConfigError, match="ModuleNotFoundError"):
        things.get("plug_nowhere:make")


@pytest.mark.parametrize("value", ["libsql://db.example?authToken=s3cret", "a:", ":b", "a b:c"])
def test_what_is_no_import_path_is_refused_without_showing_it(
    things: Registry[Thing], value: str
) -> None:
    for ask in (things.get, import_path):
        with pytest.raises(ConfigError) as caught:
            ask(value, path="state")
        assert str(caught.value) == (
            "state: is neither a name nor an import path "
            "(an import path looks like 'package.module:attribute')"
        )


def test_import_path_returns_any_object(install: Install) -> None:
    install("plug-a", {}, {"plug_any": "agent = 42"})

    assert import_path("plug_any:agent") == 42
    with pytest.raises(ConfigError, match="import path 'plug_any:gone' failed: AttributeError"):
        import_path("plug_any:gone")


def test_a_plus_in_a_scheme_is_a_dot_in_a_name(things: Registry[Thing], install: Install) -> None:
    install("plug-a", {"sql.http": "plug_plus:make"}, {"plug_plus": "make = list"})

    assert things.get("sql+http") is list
    with things.using(**{"x+y": dict}):
        assert things.get("x.y") is dict
        assert things.get("x+y") is dict


def test_using_registers_for_the_context_alone(things: Registry[Thing]) -> None:
    with things.using(mine=list), things.using(own=dict):
        assert things.names() == ("mine", "own")
        assert things.get("mine") is list
        assert things.get("own") is dict

    assert things.names() == ("own",)
    assert things.get("own").__name__ == "OrderedDict"


def test_using_refuses_the_wrong_shape(things: Registry[Thing]) -> None:
    wrong: Any = 3
    with pytest.raises(ConfigError) as caught, things.using(good=list, bad=wrong):
        pytest.fail("nothing is registered")
    assert caught.value.path == "bad"
    assert things.names() == ("own",)


def test_the_registries_of_all_groups_are_known() -> None:
    assert all_registries()[:4] == (capabilities, state_providers, drivers, channels)
    assert [registry.group for registry in all_registries()] == [
        "vitehub_agent.capabilities",
        "vitehub_agent.state",
        "vitehub_agent.drivers",
        "vitehub_agent.channels",
        "vitehub_chat.summarizers",
        "vitehub_chat.token_estimators",
        "vitehub_chat.memory_sinks",
        "vitehub_chat.formats",
    ]


def test_our_entry_points_are_the_built_in_names() -> None:
    ours = metadata.distribution("vitehub-chat").entry_points
    for registry in all_registries():
        built_in = {
            (entry.name, entry.value)
            for entry in registry.entries()
            if entry.distribution == "vitehub-chat"
        }
        declared = {(entry.name, entry.value) for entry in ours.select(group=registry.group)}
        assert declared == built_in


def test_only_the_registry_imports_modules_by_name(repository: Path) -> None:
    package = repository / "vitehub_chat"
    users = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in {"import_module", "__import__"})
        or (isinstance(node, ast.Name) and node.id in {"import_module", "__import__"})
    }
    assert users == {"plugins.py"}
