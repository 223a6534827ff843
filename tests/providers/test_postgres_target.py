"""Which server a URL means, and that no error shows what it carries."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from vitehub_chat.errors import ConfigError, MissingDependencyError
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.providers import postgres
from vitehub_chat.state.providers.postgres import open_postgres
from vitehub_chat.state.providers.postgres.target import parse_target
from vitehub_chat.state.sql.agent_state import SqlAgentState
from vitehub_chat.state.sql.server_clock import ServerClock
from vitehub_chat.testing.clock import FakeClock

SECRET = "hunter2"  # noqa: S105  no real one


def given(url: str) -> dict[str, Any]:
    """Return the parameters that a URL gives, without those that every URL gets."""
    parameters = parse_target(url).parameters
    defaults = parse_target("postgresql://").parameters
    return {name: value for name, value in parameters.items() if defaults.get(name) != value}


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "POSTGRESQL", "Postgres"])
def test_both_schemes_are_one_in_any_letter_case(scheme: str) -> None:
    state: object = open_agent_state(f"{scheme}://ann@db/chat")
    assert isinstance(state, SqlAgentState)
    assert state._driver.capabilities.dialect == "postgres"
    assert given(f"{scheme}://ann@db/chat") == {"user": "ann", "host": "db", "dbname": "chat"}


def test_a_url_is_decoded_and_its_parameters_pass_through() -> None:
    url = "postgresql://a%40b:p%2F%40@db:5433/ch%20at?sslmode=verify-full&sslrootcert=/ca.pem"
    assert given(f"{url}&connect_timeout=2&application_name=x") == {
        "user": "a@b",
        "password": "p/@",
        "host": "db",
        "port": "5433",
        "dbname": "ch at",
        "sslmode": "verify-full",
        "sslrootcert": "/ca.pem",
        "connect_timeout": "2",
        "application_name": "x",
    }


def test_several_hosts_and_a_socket_are_as_in_libpq() -> None:
    url = "postgresql://one:1,two:2/chat?target_session_attrs=read-write"
    assert given(url)["host"] == "one,two"
    assert given(url)["port"] == "1,2"
    assert given("postgresql:///chat?host=/run/postgresql")["host"] == "/run/postgresql"


def test_connecting_is_given_up_after_five_seconds_unless_the_url_says_otherwise() -> None:
    assert parse_target("postgresql://db").parameters["connect_timeout"] == 5
    assert parse_target("postgresql://db?connect_timeout=1").parameters["connect_timeout"] == "1"


def test_a_parameter_that_libpq_does_not_know_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"'ssl_mode'.*'sslmode'") as caught:
        parse_target("postgresql://db/chat?ssl_mode=require")
    assert caught.value.path == "state.url"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql:{SECRET}",
        f"postgresql://ann:{SECRET}/x@db/chat",
        f"postgresql://ann:{SECRET}@x@db/chat",
        f"postgresql://ann:{SECRET}",
        f"postgresql://ann:{SECRET}/chat",
        f"postgresql://ann:x?{SECRET}@db/chat",
        f"postgresql://ann:%{SECRET}@db/chat",
        f"postgresql://db/chat?{SECRET}",
        f"postgresql://db/chat?token={SECRET}",
        f"postgresql://db/chat?sslmode=require&password%={SECRET}",
        f"postgresql://[{SECRET}/chat",
    ],
)
def test_no_error_shows_what_a_url_carries(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_agent_state(url)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__


def test_nothing_of_a_url_is_in_a_repr() -> None:
    target = parse_target(f"postgresql://ann:{SECRET}@db/chat")
    assert SECRET not in repr(target)
    assert target.hide_secrets(f"said {SECRET}!") == "said ***!"
    assert parse_target("postgresql://db").hide_secrets("said") == "said"


def test_a_password_and_a_token_are_one_too_many() -> None:
    with pytest.raises(ConfigError) as caught:
        open_postgres(f"postgresql://ann:{SECRET}@db/chat", auth_token="another")  # noqa: S106
    assert caught.value.path == "state.auth_token"
    assert SECRET not in str(caught.value)


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="busy_timeout_ms"):
        open_postgres("postgresql://db", busy_timeout=5)


def test_it_is_durable_shared_and_follows_the_clock_of_the_server() -> None:
    assert open_postgres("postgresql://db").features == {
        "durable",
        "search",
        "shared",
        "server_time",
    }
    for clock in (None, SystemClock()):
        assert isinstance(open_postgres("postgresql://db", clock=clock).clock, ServerClock)


def test_another_clock_is_taken_as_it_is() -> None:
    clock = FakeClock()
    assert open_postgres("postgresql://db", clock=clock).clock is clock


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError) as caught:
        _ = postgres.open_postgres
    assert caught.value.extra == "postgres"
