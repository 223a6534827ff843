"""Redaction: URLs made safe to show in errors, logs and reprs."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "***"

_SHOWN_PARAMETERS: Final = frozenset(
    {"cache", "connect_timeout", "immutable", "mode", "sslmode", "tls", "vfs"}
)
_LOCAL: Final = re.compile(
    r"(file|sqlite|memory):(?!//)|[.~\\]|/(?!/)|[A-Za-z]:[\\/]", re.IGNORECASE
)
_BEGINNING: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?//+")
_QUERY: Final = re.compile("[?#]")


def redact_url(url: str) -> str:
    """Return a URL without what may be secret in it.

    User name and password go, the value of every query parameter that is not known to be
    harmless, and the fragment. What is malformed loses rather too much than too little.
    """
    start = _QUERY.search(url)
    address, query = (url[: start.start()], url[start.start() :]) if start else (url, "")
    if not _LOCAL.match(url):
        beginning = _BEGINNING.match(url)
        scheme = beginning[0] if beginning else ""
        if "@" in query:  # the question mark may stand within a password
            return scheme + HIDDEN
        if "@" in address:
            address = f"{scheme}{HIDDEN}@{address.rpartition('@')[2]}"
    return address + _redact_query(query)


def _redact_query(query: str) -> str:
    parameters, has_fragment, _ = query.partition("#")
    shown = "&".join(_redact_parameter(each) for each in re.split("[&;]", parameters[1:]))
    return (parameters and f"?{shown}") + (has_fragment and f"#{HIDDEN}")


def _redact_parameter(parameter: str) -> str:
    name, separator, _ = parameter.partition("=")
    if name in _SHOWN_PARAMETERS:
        return parameter
    return f"{name}={HIDDEN}" if separator else HIDDEN
