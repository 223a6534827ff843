"""Plugins: what other distributions offer under a name, found through entry points.

A registry holds the names of one entry-point group. Listing them imports nothing, getting one
imports that one, and a broken one stops only itself. What this package brings is in the same
registries, as import paths, and cannot be replaced by another distribution.

The environment variable `VITEHUB_CHAT_PLUGINS`, set and empty, hides all other distributions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, NoReturn, TypeGuard, TypeVar

from vitehub_chat.distributions import (
    OURS,
    PLUGINS_VARIABLE,
    Plugin,
    canonical,
    cause,
    fold,
    others_are_allowed,
    our_version,
    search,
)
from vitehub_chat.errors import ChatError, ConfigError, MissingDependencyError, nearest_name

T = TypeVar("T")

Factory = Callable[..., Any]
"""What a plugin is in every group so far: something that builds an object from options."""

API_ATTRIBUTE = "vitehub_chat_api"
API_VERSION = 1

_NAMES = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_IMPORT_PATH = re.compile(f"{_NAMES}:{_NAMES}")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Registry(Generic[T]):
    """The plugins of one entry-point group, and the built-in ones.

    A name with `+`, as a URL scheme may have, means the name with `.` in its place.

    Attributes:
        group: The entry-point group.
    """

    def __init__(
        self,
        group: str,
        check: Callable[[object], TypeGuard[T]],
        builtins: Mapping[str, str],
        *,
        hint: str | None = None,
    ) -> None:
        """Create a registry; nothing is imported or searched yet.

        Args:
            group: The entry-point group.
            check: Whether an object has the shape of this group.
            builtins: Import paths by name; no other distribution can take these names.
            hint: What else may have been meant by a name that is unknown, for its error.
        """
        self.group = group
        self._hint = hint
        self._check = check
        self._builtins = dict(builtins)
        self._local: ContextVar[Mapping[str, T]] = ContextVar(group, default=_NOTHING)

    def names(self) -> tuple[str, ...]:
        """Return every name that `get` knows in this context, sorted; imports nothing."""
        found = (plugin.name for plugin in search(self.group))
        return tuple(sorted({*self._builtins, *self._local.get(), *found}))

    def knows(self, name: str) -> bool:
        """Tell whether `get` finds a name; searches only for one that is not built-in."""
        name = canonical(name)
        return name in self._builtins or name in self._local.get() or name in self.names()

    def check(self, name: str, *, path: str | None = None) -> None:
        """Refuse what `get` knows nothing of, before it is needed; imports nothing that is known.

        Raises:
            ConfigError: As `get`, for a name that is unknown and for what is no import path.
        """
        if ":" in name:
            _check_import_path(name, path, self._hint)
        elif not self.knows(name):
            self.get(name, path=path)

    def entries(self) -> tuple[Plugin, ...]:
        """Return what is installed, built-in first, then by name; imports nothing.

        A name that two distributions offer, or that is built-in, is there once for each of them,
        with an error on those that `get` does not return.
        """
        version = our_version()
        ours = [Plugin(*item, OURS, version) for item in sorted(self._builtins.items())]
        found = sorted(self._others(), key=lambda plugin: plugin.name)
        counts = Counter(plugin.name for plugin in found)
        return (*ours, *(self._mark(plugin, found, counts) for plugin in found))

    def get(self, name: str, *, path: str | None = None) -> T:
        """Import what is behind a name, or behind an import path such as `package.module:attr`.

        Args:
            name: A name of this group; with a colon it is an import path and needs no entry.
            path: Where the name was given, for the error.

        Raises:
            ConfigError: The name is unknown or offered twice, or its plugin is broken.
            MissingDependencyError: It needs an extra that is not installed.
        """
        if ":" in name:
            value = _check_import_path(name, path, self._hint)
            return self._load(Plugin(name, value, ""), path)
        name = canonical(name)
        local = self._local.get()
        if name in local:
            return local[name]
        if name in self._builtins:
            return self._load(Plugin(name, self._builtins[name], OURS), path)
        found = [plugin for plugin in self._others() if plugin.name == name]
        if not found:
            raise self._unknown(name, path)
        if len(found) > 1:
            raise self._clash(name, found, path)
        return self._load(found[0], path)

    def doctor(self) -> tuple[Plugin, ...]:
        """Import everything that is installed and return it, with an error where it is broken."""
        return tuple(self._examine(plugin) for plugin in self.entries())

    @contextmanager
    def using(self, **objects: T) -> Iterator[None]:
        """Offer objects under their names, in this context alone and until it is left.

        They come before installed and built-in ones of the same name.

        Raises:
            ConfigError: An object has the wrong shape; nothing is registered.
        """
        for name, value in objects.items():
            version = getattr(value, API_ATTRIBUTE, API_VERSION)
            self._verify(value, version, Plugin(name, "", ""), name)
        names = {canonical(name): value for name, value in objects.items()}
        token = self._local.set({**self._local.get(), **names})
        try:
            yield
        finally:
            self._local.reset(token)

    def _others(self) -> Iterator[Plugin]:
        """Yield what is found, without our own entries for the built-in names."""
        for plugin in search(self.group):
            if plugin.name not in self._builtins or fold(plugin.distribution) != OURS:
                yield plugin

    def _mark(self, plugin: Plugin, found: list[Plugin], counts: Counter[str]) -> Plugin:
        if plugin.name in self._builtins:
            error = ConfigError(
                f"{self._describe(plugin)} cannot replace the built-in one",
                hint=f"use its import path {plugin.value!r}",
            )
            return plugin._replace(error=error)
        if counts[plugin.name] > 1:
            same = [other for other in found if other.name == plugin.name]
            return plugin._replace(error=self._clash(plugin.name, same, None))
        return plugin

    def _examine(self, plugin: Plugin) -> Plugin:
        if plugin.error is not None:
            return plugin
        try:
            self._load(plugin, None)
        except ChatError as error:
            return plugin._replace(error=error)
        return plugin

    def _load(self, plugin: Plugin, path: str | None) -> T:
        try:
            value = _import(plugin.value)
            version = getattr(value, API_ATTRIBUTE, API_VERSION)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
            _refuse(error, self._describe(plugin), path)
        return self._verify(value, version, plugin, path)

    def _verify(self, value: object, version: object, plugin: Plugin, path: str | None) -> T:
        """Return an object of this group, or raise when it has another shape or API version."""
        if not self._check(value):
            text = f"{self._describe(plugin)} has the wrong shape, a {type(value).__name__!r}"
            raise ConfigError(text, path=path, hint="it has to be a callable that takes options")
        if version != API_VERSION:
            text = (
                f"{self._describe(plugin)} has {API_ATTRIBUTE} {version!r:.20}, not {API_VERSION}"
            )
            raise ConfigError(text, path=path, hint="install releases of both that fit")
        return value

    def _describe(self, plugin: Plugin) -> str:
        if not plugin.distribution:
            return f"{plugin.name!r} for the group {self.group!r}"
        version = plugin.version or (our_version() if plugin.distribution == OURS else None)
        origin = plugin._replace(version=version).origin
        return (
            f"plugin {plugin.name!r} ({plugin.value!r}) of the group {self.group!r} from {origin}"
        )

    def _unknown(self, name: str, path: str | None) -> ConfigError:
        known = self.names()
        nearest = nearest_name(name, known)
        hint = f"installed: {', '.join(known) or 'none'}"
        if nearest:
            hint = f"did you mean {nearest!r}? {hint}"
        if self._hint:
            hint = f"{hint}; {self._hint}"
        if not others_are_allowed():
            hint = f"{hint}; plugins are turned off by {PLUGINS_VARIABLE}"
        return ConfigError(f"no {name!r} in the group {self.group!r}", path=path, hint=hint)

    def _clash(self, name: str, found: list[Plugin], path: str | None) -> ConfigError:
        offers = " and ".join(f"{plugin.origin} ({plugin.value!r})" for plugin in found)
        return ConfigError(
            f"{name!r} of the group {self.group!r} is offered more than once: by {offers}",
            path=path,
            hint=f"uninstall all but one, or use an import path such as {found[0].value!r}",
        )


def import_path(value: str, *, path: str | None = None) -> object:
    """Import the object behind an import path such as `package.module:attribute`.

    Args:
        value: The import path.
        path: Where it was given, for the error.

    Raises:
        ConfigError: It is no import path, or the import failed.
        MissingDependencyError: The module needs an extra that is not installed.
    """
    _check_import_path(value, path)
    try:
        return _import(value)
    except BaseException as error:  # noqa: BLE001 - a module may raise anything, SystemExit too
        _refuse(error, f"import path {value!r}", path)


def all_registries() -> tuple[Registry[Factory], ...]:
    """Return the registry of every group."""
    return (
        capabilities,
        state_providers,
        drivers,
        channels,
        summarizers,
        token_estimators,
        memory_sinks,
        formats,
    )


def _check_import_path(value: str, path: str | None, besides: str | None = None) -> str:
    """Return the import path, or refuse it without showing it: it may be a URL with a token."""
    if not _IMPORT_PATH.fullmatch(value):
        hint = "an import path looks like 'package.module:attribute'"
        raise ConfigError(
            "is neither a name nor an import path",
            path=path,
            hint=f"{hint}; {besides}" if besides else hint,
        )
    return value


def _import(value: str) -> object:
    module, _, attributes = value.partition("[")[0].strip().partition(":")
    found: object = import_module(module.strip())
    for attribute in filter(None, attributes.strip().split(".")):
        found = getattr(found, attribute)
    return found


def _refuse(error: BaseException, what: str, path: str | None) -> NoReturn:
    """Raise the error of a failed import; an interrupt and a missing extra stay what they are."""
    if isinstance(error, KeyboardInterrupt | MissingDependencyError):
        raise error
    text = f"{what} failed: {cause(error)}"
    raise ConfigError(text, path=path, hint="other names keep working") from error


def _is_factory(value: object) -> TypeGuard[Factory]:
    return callable(value)


capabilities: Registry[Factory] = Registry(
    "vitehub_agent.capabilities", _is_factory, {"chat": "vitehub_chat.capability:chat"}
)
"""Capability name to factory `(**options) -> Capability`."""

state_providers: Registry[Factory] = Registry(
    "vitehub_agent.state",
    _is_factory,
    {
        "file": "vitehub_chat.state.providers.sqlite:open_sqlite",
        "http": "vitehub_chat.state.providers.libsql:open_libsql",
        "https": "vitehub_chat.state.providers.libsql:open_libsql",
        "libsql": "vitehub_chat.state.providers.libsql:open_libsql",
        "memory": "vitehub_chat.state.providers.memory:open_memory",
        "postgres": "vitehub_chat.state.providers.postgres:open_postgres",
        "postgresql": "vitehub_chat.state.providers.postgres:open_postgres",
        "sqlite": "vitehub_chat.state.providers.sqlite:open_sqlite",
        "ws": "vitehub_chat.state.providers.libsql:open_libsql",
        "wss": "vitehub_chat.state.providers.libsql:open_libsql",
    },
)
"""URL scheme to factory `(url, **options) -> AgentState`."""

drivers: Registry[Factory] = Registry(
    "vitehub_agent.drivers",
    _is_factory,
    {
        "callable": "vitehub_chat.agent.drivers.callable:create",
        "echo": "vitehub_chat.agent.drivers.echo:create",
        "pydantic_ai": "vitehub_chat.agent.drivers.pydantic_ai:create",
    },
    hint="a model is given as {'model': 'openai:gpt-5'}",
)
"""Driver kind to factory `(config) -> Driver`."""

channels: Registry[Factory] = Registry("vitehub_agent.channels", _is_factory, {})
"""Channel kind to factory `(**options) -> Channel`."""

summarizers: Registry[Factory] = Registry(
    "vitehub_chat.summarizers",
    _is_factory,
    {
        "driver": "vitehub_chat.conversation.summarizers:create_driver",
        "extractive": "vitehub_chat.conversation.summarizers:create_extractive",
    },
)
"""Name to factory `(setting: SummarizerSetting) -> Summarizer`."""

token_estimators: Registry[Factory] = Registry(
    "vitehub_chat.token_estimators",
    _is_factory,
    {
        "chars4": "vitehub_chat.selection.tokens:create_chars4",
        "runes": "vitehub_chat.selection.tokens:create_runes",
        "segments": "vitehub_chat.selection.tokens:create_segments",
        "tiktoken": "vitehub_chat.integrations.tiktoken:create",
    },
)
"""Name to factory `() -> Estimator`."""

memory_sinks: Registry[Factory] = Registry(
    "vitehub_chat.memory_sinks",
    _is_factory,
    {"state": "vitehub_chat.conversation.memory.sinks:create_state"},
)
"""Name to factory `(setting: MemorySinkSetting) -> MemorySink`."""

formats: Registry[Factory] = Registry("vitehub_chat.formats", _is_factory, {})
"""Name to factory `() -> Profile`."""
