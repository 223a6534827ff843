"""Distributions: what the installed ones say that they offer, read from their metadata.

The environment variable `VITEHUB_CHAT_PLUGINS`, set and empty, hides all but our own.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from importlib import metadata
from typing import NamedTuple

from vitehub_chat.errors import ChatError, ConfigError

PLUGINS_VARIABLE = "VITEHUB_CHAT_PLUGINS"
OURS = "vitehub-chat"


class Plugin(NamedTuple):
    """One name that a distribution offers in a group.

    Attributes:
        name: The name to ask for.
        value: The import path behind it.
        distribution: The distribution that offers it; empty for an import path.
        version: The version of that distribution, or None when it does not say.
        error: Why it cannot be used, or None as far as is known.
    """

    name: str
    value: str
    distribution: str
    version: str | None = None
    error: ChatError | None = None

    @property
    def origin(self) -> str:
        """The distribution and its version, as one text."""
        return f"{self.distribution} {self.version or '(no version)'}"


def broken_metadata() -> tuple[Plugin, ...]:
    """Return the distributions whose entry points cannot be read, with the reason; no names."""
    if not others_are_allowed():
        return ()
    return tuple(
        Plugin("", "", _name_of(distribution), _header(distribution, "Version"), found)
        for distribution in metadata.distributions()
        if isinstance(found := _read(distribution), ConfigError)
    )


def search(group: str) -> Iterator[Plugin]:
    """Yield every entry of a group that an installed distribution has, in the order of the path."""
    seen = set()
    for distribution in metadata.distributions() if others_are_allowed() else ():
        found = _read(distribution)
        if isinstance(found, ConfigError):
            continue  # told by broken_metadata()
        entries = found.select(group=group)
        name = _name_of(distribution) if entries else ""
        if entries and fold(name) not in seen:  # the first copy on the path is the installed one
            seen.add(fold(name))
            version = _header(distribution, "Version")
            yield from (Plugin(canonical(e.name), e.value, name, version) for e in entries)


def others_are_allowed() -> bool:
    """Tell whether distributions but our own are looked at."""
    return os.environ.get(PLUGINS_VARIABLE, "on").strip() != ""


def _read(distribution: metadata.Distribution) -> metadata.EntryPoints | ConfigError:
    try:
        return distribution.entry_points
    except Exception as error:  # noqa: BLE001 - text of others, read by a parser that may raise any
        return ConfigError(
            f"the entry points of {_name_of(distribution)} are unreadable: {cause(error)}",
            hint="reinstall or remove the distribution",
        )


def _name_of(distribution: metadata.Distribution) -> str:
    return _header(distribution, "Name") or f"(no name, in {distribution.locate_file('')})"


def _header(distribution: metadata.Distribution, name: str) -> str | None:
    try:
        headers = distribution.metadata
        return headers[name] or None if name in headers else None
    except Exception:  # noqa: BLE001 - unreadable and missing metadata say as little
        return None


def our_version() -> str | None:
    """Return the installed version of this package, or None if it is not installed."""
    try:
        return metadata.version(OURS)
    except metadata.PackageNotFoundError:
        return None


def fold(name: str) -> str:
    """Return the name of a distribution as all spellings of it have in common."""
    return re.sub(r"[-_.]+", "-", name).lower()


def canonical(name: str) -> str:
    """Return the name of an entry as it is compared; `+` stands for `.`."""
    return name.replace("+", ".")


def cause(error: BaseException) -> str:
    """Return the class of an error and the first line of its text, also when it has none."""
    return traceback.format_exception_only(error)[-1].strip().partition("\n")[0][:200]
