"""Which file a URL means."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitehub_chat.errors import ConfigError
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.location import parse_location


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:/data/state.db", "/data/state.db"),
        ("file:///data/state.db", "/data/state.db"),
        ("file://localhost/data/state.db", "/data/state.db"),
        ("sqlite:/data/state.db", "/data/state.db"),
        ("sqlite:////data/state.db", "/data/state.db"),
        ("FILE:/data/state.db", "/data/state.db"),
        ("/data/state.db", "/data/state.db"),
        ("file:/data/a%20b%3F%23%C3%A9.db", "/data/a b?#é.db"),
        ("/data/a%20b?#é.db", "/data/a%20b?#é.db"),
        ("file:/data/a+b.db?mode=rwc", "/data/a+b.db"),
    ],
)
def test_a_url_is_decoded_and_a_bare_path_is_not(url: str, path: str) -> None:
    assert parse_location(url).path == Path(path)


@pytest.mark.parametrize("url", ["file:state.db", "sqlite:///state.db", "state.db"])
def test_a_relative_path_is_left_relative_for_who_may_look_up_the_working_directory(
    url: str,
) -> None:
    assert parse_location(url).path == Path("state.db")


@pytest.mark.parametrize(
    "url",
    [":memory:", "file::memory:", "sqlite::memory:", "file:x?mode=memory", "sqlite:?mode=memory"],
)
def test_a_store_in_memory_is_not_durable(url: str) -> None:
    assert open_sqlite(url).features == {"group_commit", "search"}


def test_a_file_is_durable_and_shared() -> None:
    assert open_sqlite("file:/data/x.db").features == {
        "durable",
        "group_commit",
        "search",
        "shared",
    }


@pytest.mark.parametrize(
    "url",
    [
        "file:",
        "",
        "file:///x.db?cache=shared",
        "file:/x.db?mode=ro",
        "file://host/x.db",
        "sqlite://x.db",
        "file:/x.db#part",
        "file:/x%00.db",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        parse_location(url)


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="busy_timeout_ms"):
        open_sqlite("file:/data/x.db", busy_timeout=5)
