"""Passwords and tokens of URLs: in no error, no repr, no log and no output."""

from __future__ import annotations

import asyncio
import logging
import traceback

import pytest
from click.testing import CliRunner

from tests.providers.sqld_server import free_port
from vitehub_chat import chat, define_agent, open_agent_state
from vitehub_chat.cli.app import cli
from vitehub_chat.errors import ChatError
from vitehub_chat.state.contract import AgentState

SECRETS = ("hunter2", "t0ken")
PORT = "{port}"
URLS = [
    "postgresql://ann:hunter2@127.0.0.1:{port}/db?application_name=t0ken",
    "postgresql://ann:hunter2@127.0.0.1:{port}/db?authToken=t0ken",
    "postgres://ann:hunter2@[bad/db",
    "http://127.0.0.1:{port}/?authToken=t0ken",
    "http://ann:hunter2@127.0.0.1:{port}/base",
    "libsql://127.0.0.1:{port}?tls=0&authToken=t0ken",
    "libsql://ann:hunter2@127.0.0.1:{port}?tls=0&authToken=t0ken&nonsense=t0ken",
    "ws://127.0.0.1:{port}?authToken=t0ken",
    "mysql://ann:hunter2@127.0.0.1/db?authToken=t0ken",
    "file:/nowhere/state.db?authToken=t0ken",
    "sqlite://ann:hunter2@host/state.db",
]


def texts_of(error: BaseException) -> list[str]:
    """Return everything that is shown of an error: with causes, arguments and frames."""
    shown = ["".join(traceback.format_exception(error))]
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
        shown += [str(error), repr(error), repr(error.args)]
    return shown


@pytest.mark.parametrize("url", URLS)
def test_L241_no_secret_of_a_url_is_in_an_error_a_repr_or_a_log(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = url.replace(PORT, str(free_port()))
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []

    async def enter(state: AgentState) -> None:
        async with state:
            pass

    def open_it() -> None:
        state = open_agent_state(url, busy_timeout_ms=1)
        shown.extend([repr(state), repr(vars(state))])
        asyncio.run(enter(state))

    def define_it() -> None:
        agent = define_agent(name="helper", driver="echo", capabilities=[chat()], state=url)
        shown.append(repr(agent))

    for step in (define_it, open_it):
        try:
            step()
        except ChatError as error:
            shown += texts_of(error)
    shown.append(caplog.text)
    lines = [line for text in shown for line in text.splitlines()]
    assert len(lines) > 3
    assert [line for line in lines if any(secret in line for secret in SECRETS)] == []


@pytest.mark.parametrize("url", [url for url in URLS if PORT not in url])
@pytest.mark.parametrize("command", ["sessions", "history", "export"])
def test_L241_no_secret_of_a_url_is_in_what_the_command_writes(url: str, command: str) -> None:
    result = CliRunner().invoke(cli, [command, "--state", url, "--agent", "helper"])
    assert result.exit_code != 0
    assert [secret for secret in SECRETS if secret in result.output] == []
    assert result.output
