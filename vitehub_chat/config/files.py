"""Files: reading a definition that is written as TOML, JSON or YAML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vitehub_chat.config.spelling import type_name
from vitehub_chat.errors import ConfigError, MissingDependencyError


def load_mapping(path: str | Path, /) -> dict[str, Any]:
    """Read a file that holds one mapping; its suffix says how it is written.

    Nothing in the file is run, and no key may stand twice in a mapping.

    Raises:
        ConfigError: The suffix is unknown, the file cannot be read, or it is not well-formed; the
            error names the file, and the line where that is known.
        MissingDependencyError: The file is YAML and the extra `yaml` is not installed.
    """
    file = Path(path)
    parse = _PARSERS.get(file.suffix.lower())
    if parse is None:
        problem = f"cannot tell how {str(file)!r} is written"
        raise ConfigError(problem, hint=f"known suffixes: {', '.join(_PARSERS)}")
    try:
        found = parse(_read(file), file)
    except RecursionError:
        raise _malformed(file, "is nested too deeply") from None
    if not isinstance(found, dict):
        raise _malformed(file, f"must hold a mapping, not {type_name(found)}")
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise _malformed(file, "is not UTF-8 text") from None
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a path"
        raise _malformed(file, f"cannot be read: {reason}") from None


def _parse_toml(text: str, file: Path) -> object:
    try:
        return tomllib.loads(text)
    except ValueError as exc:
        reason, _, place = str(exc).partition(" (at ")
        line = re.match(r"line (\d+)", place)
        raise _malformed(file, f"is not TOML: {reason}", line and line[1]) from None


def _parse_json(text: str, file: Path) -> object:
    def read_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return _without_repeats(pairs, file)

    def refuse_constant(name: str) -> object:
        raise _malformed(file, f"holds {name}, which is not JSON")

    try:
        return json.loads(text, object_pairs_hook=read_object, parse_constant=refuse_constant)
    except json.JSONDecodeError as exc:
        raise _malformed(file, f"is not JSON: {exc.msg}", exc.lineno) from None
    except ValueError:
        raise _malformed(file, "holds a number that is too long") from None


def _without_repeats(pairs: list[tuple[str, object]], file: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _malformed(file, f"has the key {key[:80]!r} twice in one mapping")
        found[key] = value
    return found


def _parse_yaml(text: str, file: Path) -> object:
    try:
        import yaml  # noqa: PLC0415  an extra
    except ImportError:
        what = f"reading {str(file)!r}"
        raise MissingDependencyError(what, extra="yaml") from None

    class Loader(yaml.SafeLoader):
        """A loader of plain values that refuses a key that stands twice."""

    def read_mapping(loader: Loader, node: yaml.MappingNode) -> Mapping[Any, Any]:
        keys = [(key.value, key.start_mark.line + 1) for key, _ in node.value if key.id == "scalar"]
        seen: set[str] = set()
        for key, line in keys:
            if key in seen and key != "<<":
                raise _malformed(file, f"has the key {key[:80]!r} twice in one mapping", line)
            seen.add(key)
        loader.flatten_mapping(node)
        return loader.construct_mapping(node, deep=True)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, read_mapping)
    try:
        return yaml.load(text, Loader)  # noqa: S506  a safe loader
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else None
        raise _malformed(file, "is not YAML of plain values", line) from None
    except (yaml.YAMLError, ValueError):
        raise _malformed(file, "is not YAML of plain values") from None


def _malformed(file: Path, problem: str, line: int | str | None = None) -> ConfigError:
    where = "" if line is None else f", line {line}"
    return ConfigError(f"the file {str(file)!r}{where} {problem}")


_PARSERS: Mapping[str, Callable[[str, Path], object]] = {
    ".toml": _parse_toml,
    ".json": _parse_json,
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
}
