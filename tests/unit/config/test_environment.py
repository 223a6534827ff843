"""What the environment says about the Agent State."""

from __future__ import annotations

import pytest

from vitehub_chat.config.agent_definition import StateChoice
from vitehub_chat.config.environment import StateSettings, state_settings

URL, TOKEN = "VITEHUB_AGENT_STATE_URL", "VITEHUB_AGENT_STATE_AUTH_TOKEN"
DEFINED = StateChoice("libsql://h", {"auth_token": "ours", "search": False})


def test_nothing_names_a_state() -> None:
    assert state_settings({}, None) == StateSettings()


def test_a_definition_alone_stays_as_it_is() -> None:
    assert state_settings({}, DEFINED) == StateSettings(
        choice=DEFINED,
        origins={"url": "definition", "auth_token": "definition", "search": "definition"},
    )


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blank_variables_are_unset(blank: str) -> None:
    assert state_settings({URL: blank, TOKEN: blank}, DEFINED) == state_settings({}, DEFINED)


def test_p16_the_variable_wins_over_the_url_of_a_definition() -> None:
    settings = state_settings({URL: "memory:"}, DEFINED)
    assert settings == StateSettings(
        choice=StateChoice("memory:", DEFINED.options),
        origins={"url": "environment", "auth_token": "definition", "search": "definition"},
    )


def test_the_variable_gives_a_state_where_there_is_none() -> None:
    assert state_settings({URL: " data/state.db\n"}, None) == StateSettings(
        choice=StateChoice("file:data/state.db"), origins={"url": "environment"}
    )


@pytest.mark.parametrize("option", ["auth_token", "auth_token_env"])
def test_the_variable_wins_over_the_token_and_its_variable(option: str) -> None:
    settings = state_settings({TOKEN: "theirs"}, StateChoice("libsql://h", {option: "ours"}))
    assert settings == StateSettings(
        choice=StateChoice("libsql://h", {"auth_token": "theirs"}),
        origins={"url": "definition", "auth_token": "environment"},
    )


def test_a_token_without_a_url_does_nothing() -> None:
    assert state_settings({TOKEN: "theirs"}, None) == StateSettings()


def test_the_definition_is_left_alone() -> None:
    state_settings({URL: "memory:", TOKEN: "theirs"}, DEFINED)
    assert DEFINED.options == {"auth_token": "ours", "search": False}


def test_no_repr_shows_a_token() -> None:
    settings = state_settings({URL: "libsql://h?authToken=theirs", TOKEN: "theirs"}, DEFINED)
    assert ("theirs" in repr(settings), "ours" in repr(settings)) == (False, False)
