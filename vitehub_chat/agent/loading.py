"""Loading: an agent from a file or an import path."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from vitehub_chat import plugins
from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.definition import define_agent
from vitehub_chat.config.files import load_mapping
from vitehub_chat.errors import ChatError, ConfigError

DATA_SUFFIXES = (".toml", ".json", ".yaml", ".yml")
ATTRIBUTE = "agent"


def load_agent(ref: str | Path) -> Agent:
    """Return the agent that a reference names.

    Args:
        ref: `path.py` (its `agent`, or `path.py:attr`), `path.toml`, `.json`, `.yaml`, or
            `module:attr`.

    Raises:
        ConfigError: There is no such file, it cannot be read or run, or holds no agent.
        MissingDependencyError: A YAML file without the extra `yaml`.
    """
    text = str(ref)
    path, _, attribute = text.rpartition(":")
    if text.endswith(".py"):
        return _from_python(Path(text), ATTRIBUTE)
    if path.endswith(".py"):
        return _from_python(Path(path), attribute)
    if Path(text).suffix.lower() in DATA_SUFFIXES:
        return define_agent(load_mapping(text))
    if path:
        return _as_agent(plugins.import_path(text, path="ref"), text)
    raise ConfigError(
        f"{text!r} names no agent",
        path="ref",
        hint="use path.py, path.toml, path.json, path.yaml or module:attr",
    )


def _from_python(path: Path, attribute: str) -> Agent:
    if not path.is_file():
        raise ConfigError(f"there is no file {str(path)!r}", path="ref")
    module = _run_file(path)
    if not hasattr(module, attribute):
        raise ConfigError(
            f"{str(path)!r} has no attribute {attribute!r}",
            path="ref",
            hint=f"assign the agent to `{ATTRIBUTE}`, or name another one: {path.name}:NAME",
        )
    return _as_agent(getattr(module, attribute), str(path))


def _run_file(path: Path) -> ModuleType:
    name = f"vitehub_chat_ref_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ConfigError(f"{str(path)!r} is no Python file", path="ref")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ChatError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(
            f"running {str(path)!r} failed{_line_in(path, error)}: {_describe(error)}", path="ref"
        ) from error
    return module


def _describe(error: BaseException) -> str:
    """Return the class of an error, and its text where that cannot quote a secret."""
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, ImportError | SyntaxError) else name


def _line_in(path: Path, error: BaseException) -> str:
    """Say at which line of a file an error was raised, if it was raised there."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
    return f" at line {lines[-1]}" if lines else ""


def _as_agent(found: object, ref: str) -> Agent:
    if not isinstance(found, Agent):
        raise ConfigError(
            f"{ref!r} is of type {type(found).__name__!r}, not an agent",
            path="ref",
            hint="make it with define_agent(...)",
        )
    return found
