"""Options of an Agent State: both spellings, strict, and errors that say where but not what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.errors import ConfigError
from vitehub_chat.state.options import (
    MAX_RETENTION,
    StateOptions,
    parse_retention,
    to_camel,
)

SECRET = "eyJhbGciOiJFZERTQSJ9.secret"  # noqa: S105 - no real one

EVERY_OPTION: dict[str, Any] = {
    "auth_token": SECRET,
    "auth_token_env": "TURSO_TOKEN",
    "table_prefix": "my_chat_",
    "transcripts": {"retention": "30d"},
    "durability": "normal",
    "busy_timeout_ms": 1,
    "cleanup_interval_ms": 2,
    "migrate": False,
    "search": False,
}


def error_of(options: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        StateOptions.from_mapping(options)
    return caught.value


def test_without_options_the_defaults_hold() -> None:
    assert StateOptions.from_mapping({}) == StateOptions(
        auth_token=None,
        auth_token_env=None,
        table_prefix="vitehub_agent_state_",
        retention=None,
        durability="full",
        busy_timeout_ms=5000,
        cleanup_interval_ms=300_000,
        migrate=True,
        search=True,
    )


def test_every_option_is_read() -> None:
    assert StateOptions.from_mapping(EVERY_OPTION) == StateOptions(
        auth_token=SECRET,
        auth_token_env="TURSO_TOKEN",  # noqa: S106 - the name of a variable
        table_prefix="my_chat_",
        retention=timedelta(days=30),
        durability="normal",
        busy_timeout_ms=1,
        cleanup_interval_ms=2,
        migrate=False,
        search=False,
    )


def test_every_field_can_be_given() -> None:
    fields = {each.name for each in attrs.fields(StateOptions)}
    assert fields == {*EVERY_OPTION, "retention"} - {"transcripts"}


def test_camel_case_means_the_same() -> None:
    camel = {to_camel(name): value for name, value in EVERY_OPTION.items()}
    assert {"authToken", "busyTimeoutMs", "authTokenEnv"} <= set(camel)
    assert StateOptions.from_mapping(camel) == StateOptions.from_mapping(EVERY_OPTION)


@pytest.mark.parametrize("name", EVERY_OPTION)
def test_none_leaves_an_option_unset(name: str) -> None:
    assert StateOptions.from_mapping({name: None}) == StateOptions()


@pytest.mark.parametrize("values", [(1, 1), (1, None), (None, None)])
def test_both_spellings_at_once_are_refused(values: tuple[Any, Any]) -> None:
    error = error_of({"busy_timeout_ms": values[0], "busyTimeoutMs": values[1]})
    assert error.path == "state.busy_timeout_ms"
    assert "'busyTimeoutMs'" in str(error)


def test_an_unknown_name_is_answered_with_the_nearest_one() -> None:
    error = error_of({"busyTimeout": 5})
    assert (error.path, error.hint) == ("state.busyTimeout", "did you mean 'busy_timeout_ms'?")


def test_an_unknown_name_in_transcripts_has_its_path() -> None:
    error = error_of({"transcripts": {"retain": 5}})
    assert error.path == "state.transcripts.retain"


@pytest.mark.parametrize("options", [None, [("migrate", True)], "migrate", 1])
def test_options_are_a_mapping(options: Any) -> None:
    assert error_of(options).path == "state"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auth_token", ""),
        ("auth_token", 5),
        ("auth_token", b"token"),
        ("auth_token_env", ""),
        ("auth_token_env", "A=B"),
        ("table_prefix", ""),
        ("table_prefix", "a-b_"),
        ("table_prefix", "1_"),
        ("table_prefix", "é_"),
        ("table_prefix", "a_\n"),
        ("table_prefix", "SQLite_x"),
        ("table_prefix", "a" * 33),
        ("transcripts", "forever"),
        ("transcripts", ["retention"]),
        ("durability", "FULL"),
        ("durability", ["full"]),
        ("busy_timeout_ms", 0),
        ("busy_timeout_ms", "5"),
        ("busy_timeout_ms", 5.0),
        ("busy_timeout_ms", True),
        ("busy_timeout_ms", float("nan")),
        ("cleanup_interval_ms", -1),
        ("cleanup_interval_ms", 2**31),
        ("migrate", 1),
        ("search", "yes"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path_and_code(name: str, value: Any) -> None:
    error = error_of({name: value})
    assert (error.path, error.code) == (f"state.{name}", "invalid_option")


@pytest.mark.parametrize("name", EVERY_OPTION)
def test_no_error_and_no_repr_shows_a_secret_wherever_it_was_put(name: str) -> None:
    for value in (SECRET, [SECRET], {"retention": SECRET}):
        try:
            shown = repr(StateOptions.from_mapping({name: value}))
        except ConfigError as error:
            shown = f"{error} {error!r} {error.hint} {error.__cause__} {error.__context__}"
        assert SECRET not in shown


def test_a_token_may_be_given_by_a_callable() -> None:
    assert StateOptions.from_mapping({"auth_token": lambda: SECRET}).auth_token is not None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("forever", "forever"),
        ("1s", timedelta(seconds=1)),
        ("15m", timedelta(minutes=15)),
        ("12h", timedelta(hours=12)),
        ("030d", timedelta(days=30)),
        (1, timedelta(milliseconds=1)),
        ("100000d", MAX_RETENTION),
        (timedelta(days=1), timedelta(days=1)),
    ],
)
def test_a_retention_means_a_duration(value: Any, expected: Any) -> None:
    assert parse_retention(value, "state.transcripts.retention") == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        "never",
        "Forever",
        "0d",
        "-1d",
        "1.5d",
        "1 d",
        "1d\n",
        "1D",
        "d",
        "٣d",
        "100001d",
        "9" * 18 + "d",
        "9" * 5000 + "s",
        0,
        -1,
        10**30,
        True,
        1.0,
        float("inf"),
        timedelta(),
        ["forever"],
    ],
    ids=lambda value: repr(value)[:20],
)
def test_another_retention_is_refused_with_its_path(value: Any) -> None:
    error = error_of({"transcripts": {"retention": value}})
    assert (error.path, error.code) == ("state.transcripts.retention", "invalid_option")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from([*EVERY_OPTION, *map(to_camel, EVERY_OPTION)]) | st.text(), json_values
    )
)
def test_whatever_is_given_is_read_or_refused_with_a_config_error(options: Any) -> None:
    path: str | None = "state"
    try:
        StateOptions.from_mapping(options)
    except ConfigError as error:
        path = error.path
    assert (path or "").startswith("state")
