"""The network: one request and its answer, or why there is none."""

from __future__ import annotations

import asyncio
import io
from types import SimpleNamespace
from typing import Final

import aiohttp

from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.state.providers.libsql.failures import AttemptError, unavailable
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.providers.libsql.sessions import Session

_STALE_SECONDS: Final = 1.0
_LARGE: Final = 1024 * 1024  # from there on it is sent in pieces


async def post(
    session: Session,
    url: str,
    body: bytes,
    *,
    token: str | None,
    limits: Limits,
    seconds: float | None = None,
) -> tuple[int, bytes]:
    """Send a request and return status and body of its answer.

    Args:
        session: The connections to use.
        url: Where to.
        body: JSON.
        token: What is shown to the server, or None.
        limits: How long it may take.
        seconds: Another limit than that for a request, or None.

    Raises:
        AttemptError: There is no complete answer.
    """
    # Most answers are small, and packing them costs both sides more than sending them.
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    context = SimpleNamespace(is_reused=False)
    loop = asyncio.get_running_loop()
    has_idled = loop.time() - session.answered_at >= _STALE_SECONDS
    # A limit of aiohttp loses a cancellation that comes in the same turn of the loop (3.14.5).
    patience = aiohttp.ClientTimeout(
        total=None, connect=limits.connect, sock_connect=limits.connect
    )
    try:
        async with (
            asyncio.timeout(seconds or limits.request),
            session.http.post(
                url,
                data=body if len(body) < _LARGE else io.BytesIO(body),
                headers=headers,
                allow_redirects=False,  # a token is for one server
                timeout=patience,
                trace_request_ctx=context,
            ) as response,
        ):
            return response.status, await response.read()
    except (aiohttp.ClientError, OSError) as error:
        raise from_network(error, is_stale=has_idled and context.is_reused) from None
    except RuntimeError as error:
        if not session.http.closed:
            raise
        raise unavailable("the connections were closed", "always", error) from None
    finally:
        session.answered_at = loop.time()


def from_network(error: Exception, *, is_stale: bool = False) -> AttemptError:
    """Return what an error means; `is_stale` says that the connection was long idle before."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        wrapped = StateUnavailableError(
            "no secure connection to the server", retryable=False, hint="check its certificate"
        )
        return AttemptError(wrapped, "never", error)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        failure = unavailable("no connection to the server", "always", error)
        failure.error.hint = "check that state.url names one that runs"
        return failure
    if isinstance(error, TimeoutError):
        return unavailable("the server did not answer in time", "idempotent", error, timed_out=True)
    if is_stale and isinstance(error, aiohttp.ClientOSError | aiohttp.ServerDisconnectedError):
        return unavailable("an idle connection was closed", "always", error, at_once=True)
    return unavailable("the connection to the server was lost", "idempotent", error)
