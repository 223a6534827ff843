"""Guarding: what every request of the console has to be like, and what every answer says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vitehub_chat.web.problems import Problem

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_READS: Final = frozenset({"GET", "HEAD"})

Admit = Callable[[Request], Problem | None]
"""Takes a request and returns why it may not go on, or None."""


class Guard:
    """Refuses requests of other sites, and puts the headers on every answer.

    A name that is not listed in `Host` is 421: a page of another site can make its own name lead
    to this machine. A write has to come from a page of the same origin, or it is 403.

    Args:
        app: What answers.
        hosts: The names under which it may be asked; one without a port holds for every port.
        admit: What is asked last, or None.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], admit: Admit | None = None) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._admit = admit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = self._problem(Request(scope))
        answer: ASGIApp = self._app if problem is None else _answer(problem)
        await answer(scope, receive, _secured(send))

    def _problem(self, request: Request) -> Problem | None:
        host = _only(request.headers, "host").lower()
        if not (host in self._hosts or _without_port(host) in self._hosts):
            return Problem(
                status=421, code="unknown_host", message="This name does not lead to a console."
            )
        if request.method not in _READS and not _is_same_origin(request.headers, host):
            return Problem(
                status=403, code="forbidden", message="A page of another origin may not do this."
            )
        return None if self._admit is None else self._admit(request)


def _answer(problem: Problem) -> Response:
    return problem.respond()


def _secured(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(SECURITY_HEADERS)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return send_with_headers


def _only(headers: Headers, name: str) -> str:
    """Return a header that comes exactly once, or else nothing."""
    values = headers.getlist(name)
    return values[0] if len(values) == 1 else ""


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _is_same_origin(headers: Headers, host: str) -> bool:
    try:
        origin = urlsplit(_only(headers, "origin").lower())
    except ValueError:
        return False
    return origin.scheme in {"http", "https"} and origin.netloc == host
