"""Opening: which provider a URL means, and what an error about it shows."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from vitehub_chat import plugins
from vitehub_chat.errors import ConfigError
from vitehub_chat.state.opening import open_agent_state, state_scheme
from vitehub_chat.state.providers.memory import MemoryAgentState
from vitehub_chat.testing.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from vitehub_chat.state.contract import AgentState

SECRET = "hunter2"  # noqa: S105 - no real one


async def open_and_close(state: AgentState) -> None:
    async with state:
        pass


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("memory:", "memory"),
        ("MeMoRy:shop", "memory"),
        ("sqlite:x.db", "sqlite"),
        ("FILE:x.db", "file"),
        ("x.db", "file"),
        ("./a:b.db", "file"),
        ("/var/lib/x.db", "file"),
        (".vitehub/agent-state.db", "file"),
        ("C:\\data\\x.db", "file"),
        ("c:/data/x.db", "file"),
        (":memory:", "file"),
        ("libsql://db", "libsql"),
        ("acme+chat://db", "acme+chat"),
    ],
)
def test_the_scheme_names_the_provider_and_a_path_is_a_file(url: str, scheme: str) -> None:
    assert state_scheme(url) == scheme


@pytest.mark.parametrize("url", ["", "  ", None, b"memory:", 5])
def test_a_url_is_a_text(url: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        open_agent_state(url)
    assert caught.value.path == "state.url"


async def test_it_is_its_own_context_manager() -> None:
    async with open_agent_state("memory:", clock=FakeClock()) as state:
        assert isinstance(state, MemoryAgentState)
        assert "durable" not in state.features


async def test_a_path_opens_a_durable_file(tmp_path: Path) -> None:
    async with open_agent_state(f"{tmp_path}/new folder/state.db") as state:
        assert "durable" in state.features


def test_an_unknown_scheme_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        open_agent_state("mongo://db")
    assert caught.value.path == "state.url"
    assert "'mongo'" in str(caught.value)
    known = str(caught.value).partition("installed: ")[2]
    assert {"file", "memory", "postgres", "postgresql", "sqlite"} <= set(re.findall(r"\w+", known))


def test_the_provider_gets_url_clock_and_options_as_given() -> None:
    clock = FakeClock()
    seen: list[tuple[object, ...]] = []

    def open_acme(url: str, **options: object) -> str:
        seen.append((url, options))
        return "state"

    with plugins.state_providers.using(**{"acme.chat": open_acme}):
        opened: object = open_agent_state("ACME+chat://db/a%20b", clock=clock, authToken=SECRET)
    assert opened == "state"
    assert seen == [("ACME+chat://db/a%20b", {"clock": clock, "authToken": SECRET})]


@pytest.mark.parametrize(
    "url",
    [
        f"mongo://ann:{SECRET}@db/x?token={SECRET}",
        f"mongo:{SECRET}",
        f"memory://ann:{SECRET}@db",
        f"memory:shop?authToken={SECRET}",
        f"file://ann:{SECRET}@db/x.db",
        f"file:x.db?authToken={SECRET}",
        f"sqlite:x.db?mode={SECRET}",
        f"file:x.db#{SECRET}",
        f"file:\0{SECRET}",
        f"x.db\0{SECRET}",
    ],
)
def test_no_error_shows_what_a_url_carries(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_agent_state(url)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("url", ["memory:", "sqlite::memory:"])
def test_a_wrong_option_is_refused_before_anything_is_opened(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_agent_state(url, auth_token=["secret"])
    assert caught.value.path == "state.auth_token"
    with pytest.raises(ConfigError) as caught:
        open_agent_state(url, table_prefix="a-b_")
    assert caught.value.path == "state.table_prefix"


@pytest.mark.parametrize("url", ["FILE:x.db", "sqlite:x.db", "x.db"])
def test_a_file_on_a_serverless_host_is_refused_when_it_opens_and_not_before(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VERCEL", "1")
    state = open_agent_state(url)
    with pytest.raises(ConfigError, match=r"Vercel.*VITEHUB_AGENT_STATE_URL"):
        asyncio.run(open_and_close(state))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.delenv("VERCEL")
    asyncio.run(open_and_close(state))
    assert [each.name for each in tmp_path.iterdir()] == ["x.db"]


async def test_a_state_in_memory_on_a_serverless_host_warns_when_it_opens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NETLIFY", "true")
    state = open_agent_state("memory:")
    with pytest.warns(RuntimeWarning, match="Netlify"):
        await state.__aenter__()
