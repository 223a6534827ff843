"""Settings: what an application decides about the routes of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict

import attrs

from vitehub_chat.errors import ConfigError

TRUSTABLE: Final[Mapping[str, str]] = {
    "session": "session",
    "meta": "meta",
    "user": "user",
    "timeoutMs": "timeout_ms",
    "timeout_ms": "timeout_ms",
    "triggerHistory": "trigger_history",
    "trigger_history": "trigger_history",
}
"""The body fields that can be trusted, in either spelling."""


class ChatRouteOptions(TypedDict, total=False):
    """What `mount_chat` and `chat_app` take besides who may call.

    Attributes:
        trusted_fields: Body fields that clients may set: `session`, `meta`, `user`, `timeoutMs`,
            `triggerHistory`; default none.
        history: `server`: only the new message is taken from a client, the rest is the transcript;
            the default with a state. `client`: the client's messages are the thread.
        read_routes: Whether the routes exist that read, cut and delete; default True.
        ag_ui: Whether `POST {path}/ag-ui` exists; default False.
        replay: Where running answers can be followed again and stopped: `memory`: in this process;
            `state`: in every process on the same state.
        max_body_bytes: The largest body that is read; default 4 MiB.
        keepalive_ms: After so many silent milliseconds a comment is sent; default 15,000.
        shutdown_grace_ms: How long turns may take to end by themselves; default 10,000.
    """

    trusted_fields: Sequence[str]
    history: Literal["server", "client"] | None
    read_routes: bool
    ag_ui: bool
    replay: Literal["memory", "state"]
    max_body_bytes: int
    keepalive_ms: int
    shutdown_grace_ms: int


@attrs.frozen(kw_only=True)
class RouteSettings:
    """The options, checked; see `ChatRouteOptions`."""

    trusted_fields: Sequence[str] = ()
    history: Literal["server", "client"] | None = None
    read_routes: bool = True
    ag_ui: bool = False
    replay: str = "memory"
    max_body_bytes: int = 4 * 1024 * 1024
    keepalive_ms: int = 15_000
    shutdown_grace_ms: int = 10_000

    @property
    def keepalive_s(self) -> float:
        """After so many silent seconds a comment is sent."""
        return self.keepalive_ms / 1000

    @property
    def trusted(self) -> frozenset[str]:
        """The trusted fields by their snake_case names."""
        return frozenset(TRUSTABLE[name] for name in self.trusted_fields)


def read_settings(options: Mapping[str, Any]) -> RouteSettings:
    """Check the options.

    Raises:
        ConfigError: One is unknown or wrong.
    """
    known = [field.name for field in attrs.fields(RouteSettings)]
    for name in options:
        if name not in known:
            raise ConfigError.unknown_name(name, known)
    settings = RouteSettings(**options)
    _check_trusted(settings.trusted_fields)
    if settings.history not in {None, "server", "client"}:
        raise ConfigError("is 'server' or 'client'", path="history")
    if settings.replay not in {"memory", "state"}:
        raise ConfigError("is 'memory' or 'state'", path="replay")
    for name in ("read_routes", "ag_ui"):
        if not isinstance(getattr(settings, name), bool):
            raise ConfigError("is True or False", path=name)
    for name in ("max_body_bytes", "keepalive_ms", "shutdown_grace_ms"):
        value = getattr(settings, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError("must be an integer >= 1", path=name)
    return settings


def _check_trusted(names: object) -> None:
    if isinstance(names, str) or not isinstance(names, Sequence | frozenset | set):
        raise ConfigError("must be a sequence of names", path="trusted_fields")
    for name in names:
        if name not in TRUSTABLE:
            raise ConfigError.unknown_name(
                str(name), TRUSTABLE, path="trusted_fields", what="field"
            )
