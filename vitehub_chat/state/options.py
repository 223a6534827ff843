"""Options of an Agent State: what `open_agent_state(url, **options)` and `state = {…}` accept."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal

import attrs

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.policies import Retention

AuthToken = str | Callable[[], str | Awaitable[str]]
Durability = Literal["full", "normal"]

MAX_RETENTION: Final = timedelta(days=100_000)
"""Longest retention; times beyond it do not fit every database."""

_MAX_MS: Final = 2**31 - 1
_MAX_PREFIX_LENGTH: Final = 32
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@attrs.frozen(kw_only=True)
class StateOptions:
    """What a provider was told, checked.

    Attributes:
        auth_token: The token of a remote server, or a callable that gives one; never printed.
        auth_token_env: The environment variable that holds the token.
        table_prefix: What the names of all tables begin with.
        retention: None: rows are kept until deleted. A duration: a row expires that long after it
            was recorded. `"forever"`: rows never expire, older ones neither.
        durability: `full`: an acknowledged write survives a power failure. `normal`: the last ones
            may be lost then, not when only the process dies.
        busy_timeout_ms: How long to wait for another process that writes, in milliseconds.
        cleanup_interval_ms: How often expired data is removed at most, in milliseconds.
        migrate: Whether opening brings an older schema up to date.
        search: Whether the text of messages is kept for search.
    """

    auth_token: AuthToken | None = attrs.field(default=None, repr=False)
    auth_token_env: str | None = None
    table_prefix: str = "vitehub_agent_state_"
    retention: Retention = None
    durability: Durability = "full"
    busy_timeout_ms: int = 5000
    cleanup_interval_ms: int = 300_000
    migrate: bool = True
    search: bool = True

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any], /) -> StateOptions:
        """Check options as they are declared, in either spelling; None leaves one unset.

        The retention stands at `transcripts.retention`.

        Raises:
            ConfigError: An unknown name, both spellings of one option, a wrong type or a value out
                of range; the error has the path and never the value.
        """
        fields = {}
        for name, value in read_names(options, _READERS, "state").items():
            field = "retention" if name == "transcripts" else name
            fields[field] = _READERS[name](value, f"state.{name}")
        return cls(**fields)


def parse_retention(value: object, path: str) -> Retention:
    """Return a retention as it is declared: None, `"forever"`, `"30d"`, or milliseconds.

    The units of a text are `s`, `m`, `h` and `d`. A positive `timedelta` is taken as it is.

    Raises:
        ConfigError: It is none of these, or longer than `MAX_RETENTION`.
    """
    if value is None or value == "forever":
        return None if value is None else "forever"
    duration = _parse_duration(value)
    if duration is None or not timedelta() < duration <= MAX_RETENTION:
        raise _invalid(
            path,
            "must be 'forever', None, a text like '12h' or '30d' (units s, m, h, d), or a number"
            f" of milliseconds >= 1, and at most {MAX_RETENTION.days} days",
        )
    return duration


def read_names(options: object, known: Mapping[str, object], path: str) -> dict[str, Any]:
    """Return the options that are set, under their snake_case names.

    Raises:
        ConfigError: `options` is no mapping, has a name that is not known, or has both spellings
            of one.
    """
    if not isinstance(options, Mapping):
        raise _invalid(path, f"must be a mapping of options, not {type(options).__name__}")
    spellings = {spelling: name for name in known for spelling in (name, to_camel(name))}
    given: dict[str, Any] = {}
    for spelling, value in options.items():
        name = spellings.get(spelling) if isinstance(spelling, str) else None
        if name is None:
            raise ConfigError.unknown_name(str(spelling), known, path=f"{path}.{spelling}")
        if name in given:
            option = f"{path}.{name}"
            raise _invalid(option, f"is given twice, also as {to_camel(name)!r}; keep one")
        given[name] = value
    return {name: value for name, value in given.items() if value is not None}


def to_camel(name: str) -> str:
    """Return the camelCase twin of a snake_case name."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _parse_duration(value: object) -> timedelta | None:
    try:
        if isinstance(value, timedelta):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return timedelta(milliseconds=value)
        if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,18})([smhd])", value)):
            return timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        return None
    return None


def _read_transcripts(value: object, path: str) -> Retention:
    given = read_names(value, {"retention": None}, path)
    return parse_retention(given.get("retention"), f"{path}.retention")


def _read_auth_token(value: object, path: str) -> AuthToken:
    if isinstance(value, str) and value:
        return value
    if callable(value):
        return value  # what it gives is checked when it is called
    raise _invalid(path, "must be a non-empty text, or a callable that returns one")


def _read_auth_token_env(value: object, path: str) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        return value
    raise _invalid(path, "must be the name of an environment variable")


def _read_table_prefix(value: object, path: str) -> str:
    if (
        isinstance(value, str)
        and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value)
        and len(value) <= _MAX_PREFIX_LENGTH
        and not value.casefold().startswith("sqlite_")
    ):
        return value
    raise _invalid(
        path,
        f"must be 1 to {_MAX_PREFIX_LENGTH} of the letters a-z and A-Z, digits and '_', not begin"
        " with a digit, and not with 'sqlite_'",
    )


def _read_durability(value: object, path: str) -> Durability:
    if value == "full":
        return "full"
    if value == "normal":
        return "normal"
    raise _invalid(path, "must be 'full' or 'normal'")


def _read_ms(value: object, path: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_MS:
        return value
    raise _invalid(path, f"must be an integer of milliseconds, 1 to {_MAX_MS}")


def _read_bool(value: object, path: str) -> bool:
    if isinstance(value, bool):
        return value
    raise _invalid(path, "must be True or False")


def _invalid(path: str, rule: str) -> ConfigError:
    return ConfigError(rule, path=path, code="invalid_option")


_READERS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "auth_token": _read_auth_token,
    "auth_token_env": _read_auth_token_env,
    "table_prefix": _read_table_prefix,
    "transcripts": _read_transcripts,
    "durability": _read_durability,
    "busy_timeout_ms": _read_ms,
    "cleanup_interval_ms": _read_ms,
    "migrate": _read_bool,
    "search": _read_bool,
}
