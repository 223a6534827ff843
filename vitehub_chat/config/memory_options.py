"""Memory options: from what was given to `memory` to the policy that it means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vitehub_chat.config.context_model import MemoryModel, zone_of
from vitehub_chat.config.durations import term
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.memory_policy import MemoryPolicy

_PLAIN = ("sink", "daily_note", "extract", "append_every_turn", "on_error")
_TIMES = ("note_timeout", "extract_timeout")


def lower_memory(given: MemoryModel | None, /) -> MemoryPolicy | None:
    """Return the policy that options mean; None without folder and sink: then it is off.

    Raises:
        ConfigError: There are both, or the folder is a URL of another machine.
    """
    if given is None or (given.root is None and given.sink is None):
        return None
    if given.root is not None and given.sink is not None:
        raise ConfigError(
            "cannot be given beside memory.root", path="memory.sink", hint="leave one of them out"
        )
    found: dict[str, Any] = {name: getattr(given, name) for name in _PLAIN}
    for name in _TIMES:
        milliseconds = getattr(given, f"{name}_ms")
        found[name] = None if milliseconds is None else term(milliseconds)
    found["timezone"] = None if given.timezone is None else zone_of(given.timezone)
    if given.root is not None:
        found["root"] = _folder_of(os.fspath(given.root))
    return MemoryPolicy(**{name: value for name, value in found.items() if value is not None})


def _folder_of(root: str) -> Path:
    """Return the folder that a path or a `file:` URL means.

    Raises:
        ConfigError: It is a URL of something else, or has a NUL.
    """
    is_url = root[:5].lower() == "file:"
    path = root[5:] if is_url else root
    if is_url and path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        path = slash + rest if host in {"", "localhost"} else ""
    if not path or "\0" in path or (not is_url and "://" in path):
        raise ConfigError("must be the path of a folder", path="memory.root")
    return Path(path)
