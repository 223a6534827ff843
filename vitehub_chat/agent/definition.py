"""Definition: from what people declare to an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from vitehub_chat import plugins
from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.capability import CapabilityLike
from vitehub_chat.config.agent_definition import PluginChoice, read_agent_definition
from vitehub_chat.errors import ConfigError

_NEEDED = ("name", "triggers", "tools", "prepare", "finish")


def define_agent(definition: Mapping[str, Any] | None = None, /, **fields: Any) -> Agent:
    """Return the agent of a definition, given as keywords or as one mapping.

    Capabilities, drivers, channels and a state that are given by name or URL are found through
    entry points. The state is opened and the driver built at first use, not here.

    Args:
        definition: All fields as one mapping, such as the content of a TOML file.
        fields: `name`, `driver`, `capabilities`, `channels`, `state`, `meta`.

    Raises:
        ConfigError: A field is wrong; the error has its path.
    """
    if definition is not None and fields:
        raise ConfigError(
            "give the definition as one mapping or as keywords, not both", path=next(iter(fields))
        )
    given = read_agent_definition(fields if definition is None else definition)
    capabilities = tuple(
        _capability_of(item, f"capabilities[{index}]")
        for index, item in enumerate(given.capabilities)
    )
    _refuse_twins(capabilities)
    if isinstance(given.driver, PluginChoice):
        _check_driver(given.driver.use)
    return Agent(
        name=given.name,
        driver=given.driver,
        capabilities=capabilities,
        channels=tuple(
            _channel_of(item, f"channels[{index}]") for index, item in enumerate(given.channels)
        ),
        state=given.state,
        meta=given.meta,
    )


def _capability_of(item: Any, path: str) -> CapabilityLike:
    if isinstance(item, PluginChoice):
        factory = plugins.capabilities.get(item.use, path=path)
        item = _build(factory, item.options, path)
    missing = [name for name in _NEEDED if not hasattr(item, name)]
    if missing:
        raise ConfigError(
            f"{type(item).__name__} is no capability: it lacks {', '.join(missing)}",
            path=path,
            hint="subclass vitehub_chat.Capability",
        )
    return cast(CapabilityLike, item)


def _channel_of(item: Any, path: str) -> Any:
    if not isinstance(item, PluginChoice):
        return item
    return _build(plugins.channels.get(item.use, path=path), item.options, path)


def _build(factory: Any, options: Mapping[str, Any], path: str) -> Any:
    """Call the factory of a plugin; what is wrong with its options says where they stand."""
    try:
        return factory(**options)
    except ConfigError as error:
        inner = f".{error.path}" if error.path else ""
        raise ConfigError(
            error.message, path=f"{path}{inner}", code=error.code, hint=error.hint
        ) from error
    except TypeError as error:
        raise ConfigError(f"the options do not fit: {error}", path=path) from error


def _refuse_twins(capabilities: tuple[CapabilityLike, ...]) -> None:
    seen: set[str] = set()
    for index, capability in enumerate(capabilities):
        if capability.name in seen:
            raise ConfigError(
                f"is a second {capability.name!r}; names of capabilities are unique in an agent",
                path=f"capabilities[{index}]",
            )
        seen.add(capability.name)


def _check_driver(kind: str) -> None:
    """Refuse an unknown kind early; the driver itself is built when it is needed."""
    plugins.drivers.check(kind, path="driver")
