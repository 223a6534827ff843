"""Links: how a browser gets in, by a secret of the command and then by a cookie."""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import Final

from starlette.requests import Request

from vitehub_chat.model.clock import Clock
from vitehub_chat.model.ids import NewId

LINK_LIFE: Final = timedelta(seconds=120)


class Door:
    """Opens for whoever has the secret, and knows them by a cookie afterwards.

    Ports of a machine share their cookies, so the port is part of the name. The value is made anew
    with every door, so it is worth nothing after the process.

    Args:
        port: The port of the server.
        secret: A secret that can be used again and again; None makes one for a link, which can be
            used once, within two minutes.
        clock: What tells the time.
        new_token: What makes secrets.
    """

    def __init__(self, port: int, secret: str | None, *, clock: Clock, new_token: NewId) -> None:
        self.cookie_name = f"vitehub_chat_{port}"
        self._is_standing = secret is not None
        self._secret: str | None = new_token() if secret is None else secret
        self._cookie = new_token()
        self._clock = clock
        self._closes_at = clock.now() + LINK_LIFE

    def link(self, address: str) -> str:
        """Return the link; its fragment reaches neither a log nor a referrer.

        Of a secret that is used again it is the page that asks for it.
        """
        if self._is_standing or self._secret is None:
            return f"{address}/open"
        return f"{address}/open#{self._secret}"

    def exchange(self, given: str) -> str | None:
        """Return the value of the cookie for the secret; None for anything else.

        A wrong secret uses nothing up.
        """
        if self._secret is None or not _is_equal(given, self._secret):
            return None
        if not self._is_standing:
            self._secret = None
            if self._clock.now() > self._closes_at:
                return None
        return self._cookie

    def knows(self, request: Request) -> bool:
        """Tell whether a request comes from a browser that got in."""
        return _is_equal(request.cookies.get(self.cookie_name, ""), self._cookie)


def _is_equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(
        given.encode("utf-8", "surrogatepass"), secret.encode("utf-8", "surrogatepass")
    )
