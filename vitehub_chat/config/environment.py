"""Environment: what the variables of the process say about the Agent State."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from vitehub_chat.config.agent_definition import StateChoice, state_url

STATE_URL_VARIABLE = "VITEHUB_AGENT_STATE_URL"
AUTH_TOKEN_VARIABLE = "VITEHUB_AGENT_STATE_AUTH_TOKEN"  # noqa: S105  the name of a variable

Origin = Literal["environment", "definition"]


@attrs.frozen(kw_only=True)
class StateSettings:
    """The Agent State to open, and where its settings came from.

    Attributes:
        choice: The URL and the options to open it with, or None if nothing names a state.
        origins: Where the URL (`url`) and each option came from.
    """

    choice: StateChoice | None = None
    origins: Mapping[str, Origin] = attrs.field(factory=dict)


def state_settings(
    environ: Mapping[str, str], definition_state: StateChoice | None, /
) -> StateSettings:
    """Return the Agent State to open; the environment comes before the definition.

    `VITEHUB_AGENT_STATE_URL` replaces the URL, or gives one where the definition has no state;
    `VITEHUB_AGENT_STATE_AUTH_TOKEN` replaces the token or its variable. Blank ones are unset, and a
    token without a URL does nothing. The other options of the definition stay.
    """
    url = environ.get(STATE_URL_VARIABLE, "").strip()
    token = environ.get(AUTH_TOKEN_VARIABLE, "").strip()
    if definition_state is None and not url:
        return StateSettings()
    options: dict[str, Any] = {} if definition_state is None else dict(definition_state.options)
    origins: dict[str, Origin] = dict.fromkeys(["url", *options], "definition")
    if token:
        for replaced in ("auth_token", "auth_token_env"):
            options.pop(replaced, None)
            origins.pop(replaced, None)
        options["auth_token"], origins["auth_token"] = token, "environment"
    if url:
        origins["url"] = "environment"
    chosen = state_url(url) if url or definition_state is None else definition_state.url
    return StateSettings(choice=StateChoice(chosen, options), origins=origins)
