"""Locations: which file a URL means."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import attrs

from vitehub_chat.errors import ConfigError

_SCHEME = re.compile(r"(file|sqlite):", re.IGNORECASE)
_MEMORY = ":memory:"


@attrs.frozen
class Location:
    """Where a store is: a file, or the memory of the process when there is no path.

    Finding the working directory of a relative path is left to who may block.
    """

    path: Path | None


def parse_location(url: str) -> Location:
    """Return the place that a URL means.

    `file:PATH` and `sqlite:PATH` are percent-decoded, a bare path is taken as it stands.
    `file:///PATH` is an absolute path, `sqlite:///PATH` is whatever stands behind the three
    slashes, so an absolute path has four. In memory are `:memory:`, behind a scheme or not, and
    every path with `?mode=memory`.

    Raises:
        ConfigError: No path, another host, or a parameter that does not exist.
    """
    match = _SCHEME.match(url)
    if match is None:
        return _place(url)
    rest, _, query = url[match.end() :].partition("?")
    in_memory = _read_mode(query)
    path = unquote(_strip_host(rest, match[1].lower()))
    return Location(None) if in_memory else _place(path)


def _place(path: str) -> Location:
    if path == _MEMORY:
        return Location(None)
    if not path or "\0" in path:
        raise _invalid("names no file", hint="write file:PATH")
    return Location(Path(path))


def _strip_host(rest: str, scheme: str) -> str:
    if "#" in rest:
        raise _invalid("has a fragment", hint="write # in a path as %23")
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in {"", "localhost"} or not slash:
        raise _invalid("names a host, but a file is on this one", hint="write file:PATH")
    return path if scheme == "sqlite" else f"/{path}"


def _read_mode(query: str) -> bool:
    """Tell whether the parameters ask for a store in memory."""
    is_memory = False
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name != "mode":
            raise ConfigError.unknown_name(name, ["mode"], path="state", what="URL parameter")
        if value not in {"memory", "rwc"}:
            raise _invalid("has another 'mode' than 'memory' and 'rwc'")
        is_memory = value == "memory"
    return is_memory


def _invalid(message: str, hint: str | None = None) -> ConfigError:
    return ConfigError(f"the URL {message}", path="state", code="invalid_option", hint=hint)
