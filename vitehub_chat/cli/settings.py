"""Settings: every value that a definition comes to, and where it is from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

import attrs

from vitehub_chat.agent.agent import Agent
from vitehub_chat.capability import Chat
from vitehub_chat.config.agent_definition import PluginChoice, StateChoice
from vitehub_chat.config.chat_model import ChatModel
from vitehub_chat.config.context_model import ContextModel, MemoryModel
from vitehub_chat.config.context_options import ContextOptions, find_context
from vitehub_chat.config.environment import StateSettings, state_settings
from vitehub_chat.config.lowering import read_options
from vitehub_chat.config.option_model import OptionModel
from vitehub_chat.config.prune_options import PruneOptions
from vitehub_chat.config.transcripts_model import PruneModel
from vitehub_chat.model.memory_policy import MemoryPolicy
from vitehub_chat.model.policies import UNSET, ChatPolicy, ConcurrencyPolicy
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.redaction import HIDDEN, redact_url

Origin = Literal["default", "definition", "environment", "file"]

_SHOWN_DRIVER_OPTIONS = ("model",)
_GIVEN = "(given)"
"""In place of what may be a secret."""

_SECRETS = frozenset({"auth_token"})


class Setting(NamedTuple):
    """One value.

    Attributes:
        path: The option, in its snake_case spelling.
        value: What it comes to, as JSON; None is unset.
        origin: Where it is from.
    """

    path: str
    value: Any
    origin: Origin


def find_settings(agent: Agent) -> list[Setting]:
    """Return every value of an agent, with secrets and the options of other plugins hidden."""
    return [
        Setting("name", agent.name, "definition"),
        *_driver_settings(agent),
        *_state_settings(agent),
        *_plugin_settings(agent),
        *_chat_settings(agent),
    ]


def state_of(agent: Agent) -> StateSettings | None:
    """Return which state will be opened, or None if the definition has a state object."""
    if agent.state is None or isinstance(agent.state, StateChoice):
        return state_settings(os.environ, agent.state)
    return None


def _driver_settings(agent: Agent) -> Iterator[Setting]:
    driver = agent.driver
    if driver is None:
        yield Setting("driver", None, "default")
        return
    if not isinstance(driver, PluginChoice):
        yield Setting("driver", _name_of(driver), "definition")
        return
    yield Setting("driver", driver.use, "definition")
    for name, value in driver.options.items():
        shown = _plain(value) if name in _SHOWN_DRIVER_OPTIONS else _GIVEN
        yield Setting(f"driver.{name}", shown, "definition")


def _state_settings(agent: Agent) -> Iterator[Setting]:
    found = state_of(agent)
    if found is None:
        yield Setting("state", _name_of(agent.state), "definition")
        return
    if found.choice is None:
        yield Setting("state", None, "default")
        return
    options = {**attrs.asdict(StateOptions()), **found.choice.options}
    options["retention"] = options.pop("transcripts", {}).get("retention")
    options = {"url": redact_url(found.choice.url), **options}
    for name, value in options.items():
        path = {"retention": "transcripts"}.get(name, name)
        shown = HIDDEN if name in _SECRETS and value is not None else _plain(value)
        suffix = ".retention" if name == "retention" else ""
        yield Setting(f"state.{path}{suffix}", shown, found.origins.get(path, "default"))


def _plugin_settings(agent: Agent) -> Iterator[Setting]:
    names = [capability.name for capability in agent.capabilities]
    yield Setting("capabilities", names, "definition" if names else "default")
    channels = [_name_of(channel) for channel in agent.channels]
    yield Setting("channels", channels, "definition" if channels else "default")
    meta = {str(name): _GIVEN for name in agent.meta}
    yield Setting("meta", meta, "definition" if meta else "default")


def _chat_settings(agent: Agent) -> Iterator[Setting]:
    found = next((each for each in agent.capabilities if isinstance(each, Chat)), None)
    if found is None:
        return
    model = read_options(ChatModel, found.options)
    given = set(_given(model))
    origin: Origin
    for path, value in policy_values(found.policy).items():
        origin = "definition" if path in given else "default"
        yield Setting(f"chat.{path}", _plain(value), origin)
    yield from _prune_settings(found, given)
    for name, shown in _memory_values(found.policy.memory):
        origin = "definition" if name in given else "default"
        yield Setting(f"chat.{name}", shown, origin)
    yield from _context_settings(found, model)


def _prune_settings(found: Chat, given: set[str]) -> Iterator[Setting]:
    """Yield whether rows are pruned, and the options of that if they are."""
    policy, path = found.policy.prune, "transcripts.prune"
    asked = found.options.get("transcripts")
    options = asked.get("prune") if isinstance(asked, Mapping) else None
    source: Origin = "file" if isinstance(options, PruneOptions) else "definition"
    yield Setting(f"chat.{path}", policy is not None, source if path in given else "default")
    if policy is None:
        return
    for field in PruneModel.model_fields:
        value: Any = getattr(policy, field.removesuffix("_hours"))
        if isinstance(value, timedelta):
            value = value / timedelta(hours=1)
        origin: Origin = source if f"{path}.{field}" in given else "default"
        yield Setting(f"chat.{path}.{field}", _plain(value), origin)


def _memory_values(policy: MemoryPolicy | None) -> Iterator[tuple[str, Any]]:
    """Yield whether messages are archived, and the options of that if they are."""
    yield "memory", policy is not None
    if policy is None:
        return
    for field in MemoryModel.model_fields:
        value = getattr(policy, field.removesuffix("_ms"))
        shown = str(value) if isinstance(value, Path | tzinfo) else _plain(value)
        yield f"memory.{field}", shown


def _context_settings(found: Chat, model: ChatModel) -> Iterator[Setting]:
    """Yield whether history is condensed, and the options of that if it is."""
    policy, given = found.policy.context, "context" in model.model_fields_set
    yield Setting("chat.context", policy is not None, "definition" if given else "default")
    if policy is None or not isinstance(model.context, ContextModel):
        return
    is_file = isinstance(found.options.get("context"), ContextOptions)
    settings = find_context(model.context, os.environ, is_file=is_file)
    for field in ContextModel.model_fields:
        value = getattr(policy, field.removesuffix("_ms"))
        shown = float(value) if isinstance(value, Decimal) else _plain(value)
        yield Setting(f"chat.context.{field}", shown, settings.origins.get(field, "default"))


def policy_values(policy: ChatPolicy) -> dict[str, Any]:
    """Return what a policy comes to, by option; those of what is off are left out."""
    window, sessions, reply = policy.window, policy.sessions, policy.reply
    values: dict[str, Any] = {"trigger_history": "none" if window is None else "on"}
    if window is not None:
        values["trigger_history.source"] = window.source
        values["trigger_history.max_messages"] = window.max_messages
        values["trigger_history.max_age_ms"] = window.max_age
    values["sessions"] = sessions is not None
    if sessions is not None:
        values["sessions.strategy"] = sessions.strategy
        values["sessions.idle_timeout_ms"] = sessions.idle_timeout
        values["sessions.metadata_key"] = sessions.metadata_key
    return {
        **values,
        **{f"concurrency.{name}": value for name, value in _concurrency(policy.concurrency)},
        "lock_scope": policy.lock_scope or "thread",
        "dedupe_ttl_ms": policy.dedupe_ttl,
        "thread_history.max_messages": policy.thread_history.max_messages,
        "thread_history.ttl_ms": policy.thread_history.ttl,
        "identity": policy.identity,
        "filter": policy.filter,
        "search_tools": policy.search_tools,
        "timeout_ms": policy.timeout,
        "stream": reply.stream,
        "streaming_update_interval_ms": reply.update_interval,
        "delivery": reply.delivery,
        "loading.text": reply.loading,
        "fallback_streaming_placeholder_text": reply.placeholder,
        "error_fallback_text": reply.error_text,
        "transcripts.retention": policy.retention,
    }


def _concurrency(policy: ConcurrencyPolicy) -> Iterable[tuple[str, Any]]:
    """Yield the options that the strategy uses."""
    yield "strategy", policy.strategy
    if policy.waits:
        yield "max_queue_size", policy.max_queue_size
        yield "on_queue_full", policy.on_queue_full
        yield "queue_entry_ttl_ms", policy.queue_entry_ttl
    if policy.strategy == "debounce":
        yield "debounce_ms", policy.debounce
    if policy.strategy == "parallel":
        yield "max_concurrent", policy.max_concurrent
    if policy.waits or policy.strategy == "parallel":
        yield "wait_timeout_ms", policy.wait_timeout
    yield "max_lock_lifetime_ms", policy.max_lock_lifetime


def _given(model: OptionModel, path: str = "") -> Iterator[str]:
    """Yield the paths of the options that were given."""
    for field in model.model_fields_set:
        value = getattr(model, field)
        yield f"{path}{field}"
        if isinstance(value, OptionModel):
            yield from _given(value, f"{path}{field}.")


def _plain(value: Any) -> Any:
    """Return a value as JSON: milliseconds for a duration, the name of what only code can hold."""
    if value is UNSET:
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _name_of(value)


def _name_of(value: object) -> str:
    """Return the name of a function, or of the class of an object."""
    named = getattr(value, "__qualname__", None)
    return f"{named}()" if isinstance(named, str) else type(value).__qualname__
