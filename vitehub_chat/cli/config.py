"""Config: what a definition means, and the schema of definitions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import click

from vitehub_chat import plugins
from vitehub_chat.agent.agent import Agent
from vitehub_chat.cli.options import json_option, load, show_help
from vitehub_chat.cli.printer import Printer, printing
from vitehub_chat.cli.settings import Setting, find_settings, state_of
from vitehub_chat.cli.text import json_line, safe_line
from vitehub_chat.config.schema import agent_json_schema
from vitehub_chat.errors import ConfigError, ConfigOverrideWarning
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.selection.tokens import BUILT_IN


@click.group(invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> int | None:
    """Check definitions, and describe them to editors."""
    return show_help(ctx)


@config.command()
@click.argument("ref")
@json_option
def check(*, ref: str, as_json: bool) -> None:
    """Print what a definition means, and where each value comes from.

    Values come from the definition, the environment, or are defaults. Nothing is opened or
    called, and secrets are not shown.
    """
    with printing(as_json=as_json) as printer:
        agent, ignored = _load(ref)
        _verify(agent)
        settings = find_settings(agent)
        if as_json:
            printer.document(
                {
                    "agent": agent.name,
                    "settings": [setting._asdict() for setting in settings],
                    "warnings": ignored,
                }
            )
        else:
            _print(printer, settings, ignored)


@config.command()
@json_option
def schema(*, as_json: bool) -> None:  # noqa: ARG001 - it is JSON in any case
    """Print the JSON Schema of definitions that are written as data."""
    with printing(as_json=True) as printer:
        printer.document(agent_json_schema())


def _load(ref: str) -> tuple[Agent, list[str]]:
    """Return the agent, and which of its options have no effect."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConfigOverrideWarning)
        agent = load(ref)
    ignored = [each for each in caught if issubclass(each.category, ConfigOverrideWarning)]
    for other in caught:
        if other not in ignored:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return agent, [str(each.message) for each in ignored]


def _verify(agent: Agent) -> None:
    """Refuse what would only fail at the first turn."""
    _verify_names(agent.policy)
    found = state_of(agent)
    has_state = found is None or found.choice is not None
    window = agent.policy.window
    if window is not None and window.source == "transcript" and not has_state:
        raise ConfigError(
            "'transcript' needs a state",
            path="trigger_history.source",
            hint="set `state` in the definition or VITEHUB_AGENT_STATE_URL",
        )


def _verify_names(policy: ChatPolicy) -> None:
    """Import what is named; nothing of it is called."""
    context, prune, memory = policy.context, policy.prune, policy.memory
    named = [
        (plugins.summarizers, context and context.summarizer, "context.summarizer"),
        (plugins.token_estimators, context and context.estimator, "context.estimator"),
        (plugins.token_estimators, prune and prune.estimator, "transcripts.prune.estimator"),
        (plugins.memory_sinks, memory and memory.sink, "memory.sink"),
    ]
    for registry, name, path in named:
        is_built_in = registry is plugins.token_estimators and name in BUILT_IN
        if isinstance(name, str) and not is_built_in:
            registry.get(name, path=path)


def _print(printer: Printer, settings: Sequence[Setting], ignored: Sequence[str]) -> None:
    rows = [(each.path, _show(each.value), each.origin) for each in settings]
    printer.table(("option", "value", "from"), rows)
    for text in ignored:
        printer.note(f"warning: {text}")


def _show(value: object) -> str:
    if value is None:
        return "-"
    return safe_line(value) if isinstance(value, str) else json_line(value)
