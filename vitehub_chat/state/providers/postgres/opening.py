"""Opening: from a URL and options to the state in a PostgreSQL database."""

from __future__ import annotations

from typing import Any, Final

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.driver import PostgresDriver
from vitehub_chat.state.providers.postgres.target import parse_target
from vitehub_chat.state.sql.agent_state import SqlAgentState
from vitehub_chat.state.sql.retrying import Retrying

RETRYING: Final = Retrying(failures=3)
"""How often the state repeats what the driver gave up; that takes a while each time."""


def open_postgres(url: str, *, clock: Clock | None = None, **options: Any) -> SqlAgentState:
    """Return the Agent State in a PostgreSQL database, version 13 or newer.

    `async with` opens it. The URL is that of libpq, `postgresql://USER:PASSWORD@HOST/DATABASE`,
    with its parameters, such as those for TLS. A connection is given up after 5 seconds, unless
    the URL has another `connect_timeout`.

    Args:
        url: The URL.
        clock: The source of the time. None and the clock of the machine follow that of the
            server; any other one is taken as it is.
        options: The options of `StateOptions`. `auth_token` is the password, where the URL has
            none. `durability="normal"` does not wait for the disk of the server, `"full"` leaves
            it to the server's `synchronous_commit`. `busy_timeout_ms` is how long a statement
            waits for others, and how long what certainly was not done is tried again.

    Raises:
        ConfigError: The URL or an option is wrong.
    """
    checked = StateOptions.from_mapping(options)
    target = parse_target(url)
    if target.password is not None and (checked.auth_token or checked.auth_token_env):
        raise ConfigError(
            "is given beside a password in the URL; keep one",
            path="state.auth_token",
            code="invalid_option",
        )
    driver = PostgresDriver(target, checked)
    return SqlAgentState(driver, clock=clock, options=checked, retrying=RETRYING)
