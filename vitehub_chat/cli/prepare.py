"""Prepare: what the next call of an agent's driver would see, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import click

from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.triggers import prepare_agent_trigger
from vitehub_chat.cli.given import input_option, read_given
from vitehub_chat.cli.options import (
    DEFAULT_THREAD,
    Address,
    address_options,
    json_option,
    load,
)
from vitehub_chat.cli.printer import MAX_SHOWN, Printer, printing
from vitehub_chat.cli.run import TRIGGER
from vitehub_chat.cli.text import safe_line, safe_text
from vitehub_chat.cli.unread import Unread, find_unread
from vitehub_chat.cli.views import entry_to_json, message_lines, prepared_to_json
from vitehub_chat.conversation.reasons import REASONS
from vitehub_chat.model.results import ContextBudget, PreparedInvocation, SelectionEntry

NEXT_MESSAGE = "(the next message)"
"""Stands for the current message where none is given."""

_HEADERS = ("seq", "role", "id", "kept", "reason", "why")
_SIZED_HEADERS = ("seq", "role", "id", "kept", "size", "reason", "why")


@click.command()
@click.argument("ref")
@input_option
@click.option("--prompt", metavar="TEXT", help="The current message, in place of an input.")
@address_options(f"[default: what the input says; without one {DEFAULT_THREAD}]")
@json_option
def prepare(
    *,
    ref: str,
    source: BinaryIO | None,
    prompt: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    as_json: bool,
) -> None:
    """Print what the next call would see, and why each other message is not there.

    A dry run: nothing is stored, and no model is called. The input is that of the trigger
    chat.message; the other options replace what it says about its conversation.
    """
    if source is None and prompt is None:
        prompt = NEXT_MESSAGE
    given = read_given(source, prompt, Address(tenant, channel, thread, session))
    with printing(as_json=as_json) as printer:
        agent = load(ref)
        prepared, unread = asyncio.run(_prepare(agent, given))
        if as_json:
            printer.document(_document(prepared, unread))
        else:
            _print(printer, agent, prepared, unread)


async def _prepare(agent: Agent, given: Mapping[str, Any]) -> tuple[PreparedInvocation, Unread]:
    async with agent:
        prepared = await prepare_agent_trigger(agent, TRIGGER, given)
        request = await agent.runtime().read(TRIGGER, given)
        return prepared, await find_unread(agent, request, prepared)


def _document(prepared: PreparedInvocation, unread: Unread) -> dict[str, Any]:
    document = prepared_to_json(prepared)
    document["selection"] = [
        {**entry_to_json(entry), "why": REASONS[entry.reason]} for entry in prepared.selection
    ]
    document["unread"] = [
        {**entry_to_json(entry), "why": REASONS[entry.reason]} for entry in unread.entries
    ]
    if unread.below_seq is not None:
        document["unread_below_seq"] = unread.below_seq
    return document


def _print(printer: Printer, agent: Agent, prepared: PreparedInvocation, unread: Unread) -> None:
    printer.line(f"agent    {safe_line(agent.name)}")
    if prepared.session_id is not None:
        printer.line(f"session  {safe_line(prepared.session_id)}")
    printer.line()
    if unread.below_seq is not None:
        printer.line(f"Stored rows below seq {unread.below_seq} are not listed.")
    entries = (*unread.entries, *prepared.selection)
    is_sized = prepared.context_budget is not None
    headers = _SIZED_HEADERS if is_sized else _HEADERS
    printer.table(headers, [_cells(entry, is_sized=is_sized) for entry in entries])
    count = len(prepared.messages)
    if prepared.system is not None:
        printer.line()
        printer.line("The system slot, beside what the driver says itself:")
        for line in safe_text(prepared.system).split("\n"):
            printer.line(f"    {line}".rstrip())
    printer.line()
    printer.line(f"The driver gets {count} {'message' if count == 1 else 'messages'}:")
    for number, message in enumerate(prepared.messages, 1):
        printer.line()
        printer.line(safe_line(f"{number}. {message.role}  {message.id or ''}").rstrip())
        for line in message_lines(message, MAX_SHOWN if printer.shortens else None):
            printer.line(line)
    if prepared.context_budget is not None:
        printer.line()
        for line in _budget_lines(prepared.context_budget):
            printer.line(line)


def _budget_lines(budget: ContextBudget) -> Iterator[str]:
    size = f"{budget.used} of {budget.limit} {budget.unit} ({budget.used_pct} %)"
    over = ", which does not fit" if budget.over else ""
    yield f"budget   {size}{over}, counted by {safe_line(budget.estimator)}"
    if not budget.resolved_window:
        yield "window   not known: set context.window_tokens"
    if budget.summary_through_seq is not None:
        yield f"summary  of the rows up to seq {budget.summary_through_seq}"
    if budget.trimmed:
        yield f"trimmed  {budget.trimmed} of the oldest, which a turn would try to condense first"


def _cells(entry: SelectionEntry, *, is_sized: bool) -> tuple[str, ...]:
    size = ("-" if entry.tokens is None else str(entry.tokens),) if is_sized else ()
    return (
        "-" if entry.seq is None else str(entry.seq),
        entry.role,
        entry.message_id or "-",
        "yes" if entry.kept else "no",
        *size,
        entry.reason,
        REASONS[entry.reason],
    )
