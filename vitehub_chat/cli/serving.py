"""Serving: a console on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import signal
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from vitehub_chat.agent.definition import define_agent
from vitehub_chat.cli.printer import Printer
from vitehub_chat.cli.source import Source
from vitehub_chat.errors import ConfigError, MissingDependencyError
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.model.ids import new_token

if TYPE_CHECKING:
    from vitehub_chat.web.console.links import Door

Command = TypeVar("Command", bound=Callable[..., Any])

LOOPBACK = "127.0.0.1"
TOKEN = re.compile(r"[0-9A-Fa-f]{64,}|(?=.*[^0-9A-Fa-f])[0-9A-Za-z_-]{43,}", re.ASCII)
"""A token of one's own: 32 random bytes need as many digits, if they are hex or base64url."""
HOW_TO_MAKE_ONE = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'

_STOPS = (signal.SIGINT, signal.SIGTERM)
_GRACE_S = 15


class Place(NamedTuple):
    """Where to listen, and who gets in.

    Attributes:
        host: The address.
        port: The port; 0 is a free one.
        names: Further names under which the console may be asked.
        token: A secret of one's own in place of a link that works once, or None.
        opens: Whether to open a browser.
    """

    host: str
    port: int
    names: Sequence[str]
    token: str | None
    opens: bool


def serving_options(command: Command) -> Command:
    """Add what says where to listen, and who gets in."""
    for add in (
        click.option("--open", "opens", is_flag=True, help="Open it in the browser."),
        click.option(
            "--token-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A file with the secret that lets people in, in place of a link that works once: "
            f"32 random bytes or more as hex or base64url.  [make one: {HOW_TO_MAKE_ONE}]",
        ),
        click.option(
            "--allow-host",
            "names",
            metavar="NAME",
            multiple=True,
            help="A name under which it may be asked; needed with another --host.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=0,
            help="The port.  [default: a free one]",
        ),
        click.option("--host", default=LOOPBACK, show_default=True, help="The address."),
    ):
        command = add(command)
    return command


def read_place(
    host: str, port: int, names: Sequence[str], token_file: Path | None, *, opens: bool
) -> Place:
    """Return where to listen, and who gets in.

    Raises:
        UsageError: Others can reach the address, and it is not said by what name or secret.
        ConfigError: The secret is too short for 32 bytes, or neither hex nor base64url.
    """
    if not _is_loopback(host) and not (names and token_file):
        raise click.UsageError(
            f"--host {host} can be reached by others: it needs --allow-host and --token-file"
        )
    token = None if token_file is None else _read_token(token_file)
    return Place(host, port, names, token, opens)


def serve_site(
    source: Source, place: Place, printer: Printer, *, tenant: str | None, talks: bool
) -> None:
    """Serve what is stored, and the agent if it `talks`, until a signal says to stop.

    Raises:
        MissingDependencyError: Without the extra `web`.
        ConfigError: The address cannot be used, or the agent has no state.
        NotFoundError: There is nothing at the URL of the state.
    """
    try:
        import uvicorn  # noqa: F401, PLC0415 - the extra may be missing

        from vitehub_chat.web.console.links import Door  # noqa: PLC0415
        from vitehub_chat.web.console.local import LocalSite, local_app  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError("the console", extra="web") from error
    with _listening(place) as listener:
        port = listener.getsockname()[1]
        door = Door(port, place.token, clock=SystemClock(), new_token=new_token)
        address = f"http://{_as_host(place.host)}:{port}"
        own = (LOOPBACK, "localhost", "[::1]", _as_host(place.host))
        hosts = [f"{name}:{port}" for name in own] + list(place.names)

        async def run(tell: Callable[[], None]) -> None:
            async with source.open() as state:
                agent = source.agent or define_agent(name=source.name, state=state)
                site = LocalSite(agent=agent, door=door, hosts=hosts, tenant=tenant, talks=talks)
                await _serve(local_app(site), listener, tell)

        with _telling(place, door, address, printer) as tell:
            asyncio.run(run(tell))


@contextmanager
def _listening(place: Place) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((place.host, place.port))
        except OSError as error:
            raise ConfigError(
                f"cannot be used: {error.strerror}",
                path="--host" if place.port == 0 else "--port",
            ) from error
        yield listener


@contextmanager
def _telling(
    place: Place, door: Door, address: str, printer: Printer
) -> Iterator[Callable[[], None]]:
    """Give what tells where the console is, once it is there."""
    link = door.link(address)
    with _opening_file(link) if place.opens else _nothing() as page:

        def tell() -> None:
            if printer.as_json:
                printer.document({"address": address, **({} if place.opens else {"link": link})})
            elif page is None:
                printer.line(f"Open {link}")
            if page is not None:
                # Some browsers are waited for, and they wait for the server.
                Thread(target=webbrowser.open, args=[page.as_uri()], daemon=True).start()
            printer.note(f"serving at {address}, Ctrl-C ends it")

        yield tell


@contextmanager
def _opening_file(link: str) -> Iterator[Path]:
    """Give a page that leads to a link; the command line of a browser can be read by everybody."""
    handle, name = tempfile.mkstemp(prefix="vitehub-chat-", suffix=".html")  # of this user alone
    page = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">\n')
        yield page
    finally:
        page.unlink(missing_ok=True)


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


async def _serve(app: Any, listener: socket.socket, tell: Callable[[], None]) -> None:
    """Serve until a signal; a second one does not wait for open answers."""
    import uvicorn  # noqa: PLC0415 - the extra may be missing

    class Server(uvicorn.Server):
        """A server that tells when it can be asked, and whose signals end it alone."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                tell()

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            before = {number: signal.signal(number, self.stop) for number in _STOPS}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

        def stop(self, _number: int, _frame: FrameType | None) -> None:
            self.force_exit = self.should_exit
            self.should_exit = True

    config = uvicorn.Config(
        app,
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    await Server(config).serve(sockets=[listener])


def _read_token(path: Path) -> str:
    token = path.read_text(encoding="utf-8", errors="replace").strip()
    if TOKEN.fullmatch(token) is None:
        raise ConfigError(
            "must hold 32 random bytes or more: 64 hex digits or more, "
            "or 43 characters of base64url or more",
            path="--token-file",
            hint=f"make one with `{HOW_TO_MAKE_ONE}`",
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _as_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
