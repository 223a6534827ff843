"""Addresses and tokens: what a URL and the options mean, and what they never show."""

from __future__ import annotations

import traceback
from typing import Any, cast

import pytest

from vitehub_chat.errors import ConfigError
from vitehub_chat.state.providers.libsql.address import Address, parse_address
from vitehub_chat.state.providers.libsql.tokens import TokenSource


@pytest.mark.parametrize(
    ("url", "base_url"),
    [
        ("libsql://db.example.com", "https://db.example.com"),
        ("LIBSQL://DB.example.com/", "https://db.example.com"),
        ("libsql://db.example.com?tls=1", "https://db.example.com"),
        ("libsql://127.0.0.1:8080?tls=0", "http://127.0.0.1:8080"),
        ("https://db.example.com/base/path/", "https://db.example.com/base/path"),
        ("https://db.example.com:8443/a%2Fb", "https://db.example.com:8443/a%2Fb"),
        ("https://db.example.com:443", "https://db.example.com"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("wss://db.example.com", "wss://db.example.com"),
        ("ws://127.0.0.1:8080", "ws://127.0.0.1:8080"),
    ],
)
def test_a_url_keeps_its_host_port_and_base_path(url: str, base_url: str) -> None:
    assert parse_address(url) == Address(base_url)


def test_the_token_of_a_url_leaves_it_and_is_not_shown() -> None:
    address = parse_address("libsql://db.example.com?authToken=s3cret")

    assert address.token == "s3cret"  # noqa: S105  made up
    assert address.base_url == "https://db.example.com"
    assert "s3cret" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "libsql:",
        "libsql://",
        "libsql:///s3cret",
        "libsql://user:s3cret@db.example.com",
        "libsql://s3cret@db.example.com",
        "libsql://db.example.com:s3cret",
        "libsql://db.example.com?tls=s3cret",
        "libsql://db.example.com/#s3cret",
        "libsql://db.example.com\n/s3cret",
        "libsql://[s3cret",
        "https://db.example.com?tls=0&authToken=s3cret",
        "http://db.example.com?tls=1&authToken=s3cret",
        "libsql://db.example.com?authtoken=s3cret",
        "ftp://s3cret",
    ],
)
def test_a_wrong_url_is_an_error_that_does_not_show_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address(url)

    assert caught.value.path == "state.url"
    assert "s3cret" not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


async def test_without_a_source_there_is_no_token() -> None:
    assert await TokenSource(None).get() is None


async def test_a_text_is_the_token() -> None:
    assert await TokenSource(" abc ").get() == "abc"


async def test_a_callable_is_called_once_until_what_it_gave_is_refused() -> None:
    given = iter(["first", "second", "third"])
    tokens = TokenSource(lambda: next(given))

    assert [await tokens.get(), await tokens.get()] == ["first", "first"]
    assert [await tokens.renew("first"), await tokens.renew("first")] == ["second", "second"]
    assert await tokens.get() == "second"


async def test_a_callable_may_be_asynchronous() -> None:
    async def give() -> str:
        return "abc"

    assert await TokenSource(give).get() == "abc"


async def test_a_variable_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = TokenSource(None, "LIBSQL_TEST_TOKEN")
    with pytest.raises(ConfigError) as caught:
        await tokens.get()
    monkeypatch.setenv("LIBSQL_TEST_TOKEN", "abc")

    assert caught.value.path == "state.auth_token_env"
    assert await tokens.get() == "abc"


async def test_a_text_has_no_other_token() -> None:
    tokens = TokenSource("s3cret")
    with pytest.raises(ConfigError) as caught:
        await tokens.renew(await tokens.get())

    assert caught.value.code == "unauthorized"


@pytest.mark.parametrize(
    "given", ["s3cret\r\nx: y", "s3cret with spaces", "s3crét", "", b"s3cret", ValueError("s3cret")]
)
async def test_a_callable_without_a_token_is_an_error_that_does_not_show_it(given: Any) -> None:
    def source() -> str:
        if isinstance(given, Exception):
            raise given
        return cast("str", given)

    with pytest.raises(ConfigError) as caught:
        await TokenSource(source).get()

    assert caught.value.path == "state.auth_token"
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_source_of_tokens_does_not_show_them() -> None:
    assert "s3cret" not in repr(TokenSource("s3cret"))
