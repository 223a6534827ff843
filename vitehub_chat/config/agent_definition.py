"""Agent definition: the fields of an agent, checked; plugins are named, not yet found."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import attrs

from vitehub_chat.config.definition_model import (
    CallableDriverModel,
    DefinitionModel,
    ModelDriverModel,
    StateModel,
)
from vitehub_chat.config.lowering import describe, read_options, refuse
from vitehub_chat.config.spelling import type_name
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.keys import check_id

MODEL_DRIVER = "pydantic_ai"
_ONLY_WITH_USE = ("agent", "settings")
"""The kind of driver that `{"model": ...}` means."""

CALLABLE_DRIVER = "callable"
"""The kind of driver that a callable means."""

_SCHEMES = frozenset(
    {"memory", "file", "sqlite", "libsql", "http", "https", "postgresql", "postgres"}
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def _show_scheme(url: str) -> str:
    return f"'{url.partition(':')[0]}:...'"


@attrs.frozen
class PluginChoice:
    """A plugin by name, with the options that its factory gets.

    Attributes:
        use: The name in its entry-point group.
        options: The options as they were written; never printed, they may hold secrets.
    """

    use: str
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)


@attrs.frozen
class StateChoice:
    """An Agent State by URL, with the options for opening it.

    Attributes:
        url: The URL; a bare path has become a `file:` URL. Never printed, it may hold a token.
        options: Snake_case names to values as they were written; never printed.
    """

    url: str = attrs.field(repr=_show_scheme)
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)


@attrs.frozen(kw_only=True)
class AgentFields:
    """The fields of an agent definition, checked.

    Attributes:
        name: The name of the agent.
        driver: A choice, a driver object, or None where none was given.
        capabilities: Choices and capability objects, in order.
        channels: Choices and channel objects, in order.
        state: A choice, an Agent State, or None.
        meta: Further facts.
    """

    name: str
    driver: PluginChoice | Any | None = None
    capabilities: tuple[PluginChoice | Any, ...] = ()
    channels: tuple[PluginChoice | Any, ...] = ()
    state: StateChoice | Any | None = None
    meta: Mapping[str, Any] = attrs.field(factory=dict)


def read_agent_definition(fields: Mapping[str, object], /) -> AgentFields:
    """Check the fields of an agent definition; nothing is imported or opened.

    Raises:
        ConfigError: The first thing that is wrong, with its path.
    """
    given = read_options(DefinitionModel, fields)
    capabilities = _read_list(given.capabilities, "capabilities", "triggers")
    _refuse_second_chat(capabilities)
    return AgentFields(
        name=_read_name(given.name),
        driver=None if given.driver is None else _read_driver(given.driver),
        capabilities=capabilities,
        channels=_read_list(given.channels, "channels", "parse"),
        state=None if given.state is None else _read_state(given.state),
        meta=given.meta or {},
    )


def state_url(text: str, /) -> str:
    """Return the URL of a state: a bare path becomes a `file:` URL, anything else stays.

    Raises:
        ConfigError: It is the name of a scheme alone, which nobody means as the name of a file.
    """
    if text.lower() in _SCHEMES:
        raise ConfigError(
            f"{text!r} is a scheme without its colon",
            path="state",
            hint=f"write {text + ':'!r}, or {'./' + text!r} for a file of that name",
        )
    return text if _SCHEME.match(text) else f"file:{quote(text, safe='/:')}"


def model_name(text: str, /) -> str:
    """Return a model name with a colon behind its provider, also where a slash stood there."""
    provider, slash, model = text.partition("/")
    return f"{provider}:{model}" if slash and ":" not in provider else text


def _read_name(name: str) -> str:
    try:
        return check_id(name, "name")
    except InputError as exc:
        raise ConfigError(exc.message, path="name", hint=exc.hint) from None


def _read_driver(value: object) -> PluginChoice | Any:
    if isinstance(value, str) and value:
        return PluginChoice(value)
    if isinstance(value, Mapping):
        return _read_driver_mapping(value)
    if callable(getattr(value, "stream", None)) and not isinstance(value, type):
        return value
    if callable(value):
        return PluginChoice(CALLABLE_DRIVER, {"run": value})
    raise refuse(value, describe(DefinitionModel, "driver"), path="driver", hint=_hint_for(value))


def _hint_for(value: object) -> str | None:
    """Return how a driver is made of an object of a runtime that was given in its place."""
    if type(value).__module__.partition(".")[0] != "pydantic_ai":
        return None
    return f"give {{'model': a model}} or {{'use': {MODEL_DRIVER!r}, 'agent': an agent}}"


def _read_driver_mapping(value: Mapping[Any, object]) -> PluginChoice:
    if "use" in value:
        return _read_use(value, "driver")
    if "run" in value:
        run = read_options(CallableDriverModel, value, path="driver").run
        return PluginChoice(CALLABLE_DRIVER, {"run": run})
    for name in _ONLY_WITH_USE:
        if name in value:
            raise ConfigError(
                "needs the driver to be named",
                path=f"driver.{name}",
                hint=f"add 'use': {MODEL_DRIVER!r}",
            )
    given = read_options(ModelDriverModel, value, path="driver")
    model = model_name(given.model) if isinstance(given.model, str) else given.model
    instructions = {} if given.instructions is None else {"instructions": given.instructions}
    return PluginChoice(MODEL_DRIVER, {"model": model, **instructions})


def _read_list(value: object, path: str, duck: str) -> tuple[PluginChoice | Any, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise refuse(value, "a list", path=path)
    return tuple(_read_item(item, f"{path}[{index}]", duck) for index, item in enumerate(value))


def _read_item(value: object, path: str, duck: str) -> PluginChoice | Any:
    if isinstance(value, str) and value:
        return PluginChoice(value)
    if isinstance(value, Mapping):
        return _read_use(value, path)
    if hasattr(value, duck) and not isinstance(value, type):
        return value
    allowed = f"a name, a mapping with 'use' or an object with `{duck}`"
    made_by = getattr(value, "__name__", None) if callable(value) else None
    raise refuse(
        value, allowed, path=path, hint=None if made_by is None else f"call it: {made_by}(...)"
    )


def _read_use(value: Mapping[Any, object], path: str) -> PluginChoice:
    for name in value:
        if not isinstance(name, str):
            problem = f"names are text, not {type_name(name)}"
            raise ConfigError(problem, path=path)
    use = value.get("use")
    if use is None:
        raise ConfigError("is required: the name of a plugin", path=f"{path}.use")
    if not (isinstance(use, str) and use):
        raise refuse(use, "the name of a plugin", path=f"{path}.use")
    return PluginChoice(use, {name: item for name, item in value.items() if name != "use"})


def _refuse_second_chat(capabilities: tuple[PluginChoice | Any, ...]) -> None:
    chats = [
        index
        for index, item in enumerate(capabilities)
        if (item.use if isinstance(item, PluginChoice) else getattr(item, "name", None)) == "chat"
    ]
    if len(chats) > 1:
        raise ConfigError(
            "is a second chat(); an agent has one",
            path=f"capabilities[{chats[1]}]",
            hint="put its options into the first one",
        )


def _read_state(value: object) -> StateChoice | Any:
    if isinstance(value, str | os.PathLike):
        return _read_state_mapping({"url": os.fspath(value)})
    if isinstance(value, Mapping):
        return _read_state_mapping(value)
    if hasattr(value, "aclose") and hasattr(value, "__aenter__") and not isinstance(value, type):
        return value
    raise refuse(value, describe(DefinitionModel, "state"), path="state")


def _read_state_mapping(value: Mapping[Any, object]) -> StateChoice:
    given = read_options(StateModel, value, path="state")
    if given.auth_token is not None and given.auth_token_env is not None:
        raise ConfigError(
            "cannot be given beside state.auth_token",
            path="state.auth_token_env",
            hint="leave one of them out",
        )
    options = given.model_dump(include=given.model_fields_set - {"url"}, exclude_none=True)
    return StateChoice(state_url(given.url), options)
