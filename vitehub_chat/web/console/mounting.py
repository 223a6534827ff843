"""Mounting: the console in an application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from vitehub_chat.agent.agent import Agent
from vitehub_chat.errors import ConfigError, MissingDependencyError
from vitehub_chat.web.principals import Authenticate

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from vitehub_chat.web.console.routes import ConsoleRoutes

CONSOLE_PATH: Final = "/console"


def mount_console(
    app: Any,
    agent: Agent,
    path: str = CONSOLE_PATH,
    *,
    authenticate: Authenticate,
    allowed_hosts: Sequence[str],
) -> None:
    """Add the console of an agent to an application.

    It shows the conversations of everybody in the tenant of the principal, so let in only who may
    see them all. Its pages are at the path with a slash at its end.

    Args:
        app: A Starlette or FastAPI application.
        agent: The agent; it needs a state.
        path: Where the console is.
        authenticate: Takes the request and returns a `Principal`, or None for nobody. Runs for
            every page, file and answer.
        allowed_hosts: The names under which the console may be asked for, as in the header `Host`;
            one without a port holds for every port.

    Raises:
        ConfigError: An option is wrong.
        MissingDependencyError: Without the extra `web`.
    """
    if not callable(authenticate):
        raise ConfigError("must be a callable", path="authenticate", hint="there is no default")
    hosts = _check_hosts(allowed_hosts)
    try:
        from starlette.applications import Starlette  # noqa: PLC0415 - the extra may be missing
        from starlette.routing import Route  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError("mount_console()", extra="web") from error
    from vitehub_chat.web.console.guarding import Guard  # noqa: PLC0415 - needs Starlette
    from vitehub_chat.web.console.operating import OperatorAccess  # noqa: PLC0415
    from vitehub_chat.web.console.routes import ConsoleRoutes  # noqa: PLC0415

    base = _check_path(path)
    inside = Starlette()
    inside.router.redirect_slashes = False
    add_routes(inside, ConsoleRoutes(agent, OperatorAccess(agent, authenticate)), base)
    # One route for all below it, so that what the routes refuse themselves is guarded, too.
    guarded = Guard(inside, hosts)
    app.router.routes += [Route(base, guarded), Route(f"{base}/{{below:path}}", guarded)]


def add_routes(app: Starlette, routes: ConsoleRoutes, base: str) -> None:
    """Add the routes of a console to an application that guards them."""
    from starlette.routing import Route  # noqa: PLC0415 - the extra may be missing

    from vitehub_chat.web.routes import guard  # noqa: PLC0415 - needs Starlette

    for below, method, endpoint in routes:
        answer = guard(endpoint, _begin)
        app.router.routes.append(Route(f"{base}{below}", answer, methods=[method]))
    if base:
        app.router.routes.append(Route(base, guard(routes.redirect, _begin), methods=["GET"]))


async def _begin() -> None:
    """Begin: the state opens with the first look at it."""


def _check_path(path: object) -> str:
    base = path.rstrip("/") if isinstance(path, str) else ""
    if not base.startswith("/"):
        raise ConfigError("must begin with / and have a name", path="path")
    return base


def _check_hosts(names: object) -> Sequence[str]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise ConfigError("must be a sequence of names", path="allowed_hosts")
    for name in names:
        if not isinstance(name, str) or not name or "/" in name or "*" in name:
            raise ConfigError(
                "must be names as in the header Host",
                path="allowed_hosts",
                hint="such as 'ops.example.com' or 'localhost:8000'",
            )
    return names
