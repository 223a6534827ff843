"""The Pydantic AI driver: a model answers, with tools. Needs the extra `models`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vitehub_chat.config.agent_definition import model_name
from vitehub_chat.errors import ConfigError, MissingDependencyError

if TYPE_CHECKING:
    from types import ModuleType

    from vitehub_chat.agent.drivers.pydantic_ai_driver import PydanticAIDriver

OPTIONS = ("agent", "instructions", "model", "settings")
"""The names that a configuration may have."""


def create(config: Mapping[str, Any]) -> PydanticAIDriver:
    """Build a driver; a named model is looked up at the first call, so no key is needed before.

    Args:
        config: `model`: provider and model such as `openai:gpt-5.1-mini` or `openai/gpt-5.1-mini`,
            or a model object of Pydantic AI. `instructions`: a text. `settings`: settings of the
            model such as `temperature`. `agent`: an agent of Pydantic AI, in place of a model or
            with one that replaces its own.

    Raises:
        ConfigError: An unknown name, a wrong value, or neither model nor agent.
        MissingDependencyError: The extra `models` is not installed.
    """
    for name in config:
        if name not in OPTIONS:
            raise ConfigError.unknown_name(str(name), OPTIONS, path=f"driver.{name}")
    runtime, driver = _runtime()
    given = {name: config.get(name) for name in OPTIONS}
    if given["model"] is None and given["agent"] is None:
        raise ConfigError("is required", path="driver.model", hint="or give driver.agent")
    _check(given, "model", (str, runtime.models.Model), "the name of a model or a model object")
    _check(given, "agent", runtime.agent.AbstractAgent, "an agent of Pydantic AI")
    _check(given, "instructions", str, "a text")
    _check(given, "settings", Mapping, "a mapping")
    model = given["model"]
    settings = driver.Settings(
        model=model_name(model) if isinstance(model, str) else model,
        instructions=given["instructions"],
        model_settings=given["settings"],
        agent=given["agent"],
    )
    made: PydanticAIDriver = driver.PydanticAIDriver(settings)
    return made


def _runtime() -> tuple[ModuleType, ModuleType]:
    try:
        import pydantic_ai.models  # noqa: PLC0415 - the extra may be missing

        from vitehub_chat.agent.drivers import pydantic_ai_driver  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pydantic_ai":
            raise
        raise MissingDependencyError("the driver 'pydantic_ai'", extra="models") from error
    return pydantic_ai, pydantic_ai_driver


def _check(given: Mapping[str, Any], name: str, kind: Any, allowed: str) -> None:
    value = given[name]
    if value is None or (isinstance(value, kind) and value != ""):
        return
    raise ConfigError(f"must be {allowed}, not {type(value).__name__!r}", path=f"driver.{name}")
