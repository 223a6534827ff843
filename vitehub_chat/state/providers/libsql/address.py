"""Addresses: which server a URL means, and how it is spoken to."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

import attrs

from vitehub_chat.errors import ConfigError

_PATH: Final = "state.url"
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SCHEMES: Final = ("libsql", *_PORTS)


@attrs.frozen
class Address:
    """Where a server is, without anything secret in it.

    Attributes:
        base_url: `http`, `https`, `ws` or `wss`, the host, the port and the base path; no slash
            at its end.
        token: The token that the URL had as `authToken`; never printed.
    """

    base_url: str
    token: str | None = attrs.field(default=None, repr=False)

    @property
    def is_socket(self) -> bool:
        """Whether it is that of a WebSocket."""
        return self.base_url.startswith("ws")

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return "/".join(self.base_url.split("/", 3)[:3])


def parse_address(url: str) -> Address:
    """Return the address that a URL means.

    `libsql://HOST` is `https://HOST`, and with `?tls=0` it is `http://HOST`.

    Raises:
        ConfigError: No host, another scheme, a user name, a fragment, or an unknown parameter.
    """
    parts = _split(url)
    token, scheme = _read_parameters(parts)
    if parts.username is not None or parts.password is not None:
        raise _invalid("has a user name or a password", "give a token as auth_token")
    if "#" in url:
        raise _invalid("has a fragment", "remove what begins with #")
    return Address(f"{scheme}://{_host(parts, scheme)}{parts.path.rstrip('/')}", token)


def _split(url: str) -> SplitResult:
    if any(character <= " " for character in url):
        raise _invalid("has a space or a control character", "write libsql://HOST")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # its text shows a part of the URL
        raise _invalid("is malformed", "write libsql://HOST or libsql://HOST:PORT") from None
    if parts.scheme not in _SCHEMES:
        raise _invalid("has another scheme", f"known: {', '.join(sorted(_SCHEMES))}")
    if not parts.hostname:
        raise _invalid("names no host", f"write {parts.scheme}://HOST")
    return parts


def _host(parts: SplitResult, scheme: str) -> str:
    host = parts.hostname or ""
    named = f"[{host}]" if ":" in host else host
    return named if parts.port in {None, _PORTS[scheme]} else f"{named}:{parts.port}"


def _read_parameters(parts: SplitResult) -> tuple[str | None, str]:
    """Return the token in a URL, and the scheme to speak."""
    token, tls = None, None
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "authToken":
            token = value or None
        elif name == "tls" and value in {"0", "1"}:
            tls = value == "1"
        elif name == "tls":
            raise _invalid("has another 'tls' than '0' and '1'", "leave it away to use TLS")
        else:
            known = ("authToken", "tls")
            raise ConfigError.unknown_name(name, known, path=_PATH, what="URL parameter")
    if parts.scheme == "libsql":
        return token, "http" if tls is False else "https"
    if tls not in {None, parts.scheme in {"https", "wss"}}:
        raise _invalid("has a 'tls' that its scheme contradicts", "leave 'tls' away")
    return token, parts.scheme


def _invalid(message: str, hint: str) -> ConfigError:
    return ConfigError(message, path=_PATH, code="invalid_option", hint=hint)
