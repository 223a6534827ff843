"""Opening: from the URL of an Agent State to its provider."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from vitehub_chat import plugins
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.state.contract import AgentState

# One letter before the colon is a drive, not a scheme.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def open_agent_state(url: str, *, clock: Clock | None = None, **options: Any) -> AgentState:
    """Return the Agent State of a URL; it opens with `async with`.

    The scheme of the URL names the provider, in any letter case; a path without a scheme is a
    SQLite file. Nothing is touched before it is opened, so this may stand in a module.

    Args:
        url: Such as `file:.vitehub/agent-state.db`, `memory:` or `memory:NAME`.
        clock: The source of the time, None is that of the machine.
        options: The options of `StateOptions`, in either spelling, and those of the provider.

    Raises:
        ConfigError: The URL is empty or of an unknown scheme, or an option is wrong.
        MissingDependencyError: The provider needs an extra that is not installed.
    """
    factory = plugins.state_providers.get(state_scheme(url), path="state.url")
    return cast(AgentState, factory(url, clock=clock or SystemClock(), **options))


def state_scheme(url: object) -> str:
    """Return the scheme of a URL in lower case; that of a path is `file`.

    Raises:
        ConfigError: The URL is empty or no text.
    """
    if not isinstance(url, str) or not url.strip():
        raise ConfigError("must be a non-empty text: a URL or a path", path="state.url")
    match = _SCHEME.match(url)
    return "file" if match is None else match[1].lower()
