"""Run: one turn with an agent."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, BinaryIO

import click

from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.stream import AgentStream
from vitehub_chat.agent.triggers import stream_agent_trigger
from vitehub_chat.cli import failures
from vitehub_chat.cli.given import input_option, read_given
from vitehub_chat.cli.options import (
    DEFAULT_THREAD,
    Address,
    address_options,
    json_option,
    load,
)
from vitehub_chat.cli.printer import Printer, printing
from vitehub_chat.cli.text import json_line, safe_line, safe_text
from vitehub_chat.cli.views import result_to_json
from vitehub_chat.model.events import AgentEvent, TextDelta, ToolCall
from vitehub_chat.model.json_text import jsonable
from vitehub_chat.model.results import RunResult, RunStatus
from vitehub_chat.streams.events import event_to_json

TRIGGER = "chat.message"

_EXIT_CODES: Mapping[RunStatus, int] = {
    "complete": failures.DONE,
    "coalesced": failures.DONE,
    "filtered": failures.DONE,
    "interrupted": failures.FAILED,
    "error": failures.FAILED,
    "dropped": failures.BUSY,
}


@click.command()
@click.argument("ref")
@input_option
@click.option("--prompt", metavar="TEXT", help="What to say, in place of an input.")
@address_options(f"[default: what the input says; without one {DEFAULT_THREAD}]")
@click.option("--stream", is_flag=True, help="Print the answer while it grows; NDJSON with --json.")
@json_option
def run(
    *,
    ref: str,
    source: BinaryIO | None,
    prompt: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    stream: bool,
    as_json: bool,
) -> int:
    """Run one turn and print the answer.

    The input is that of the trigger chat.message; the other options replace what it says about its
    conversation. Ctrl-C stops the turn; what was said so far is recorded as interrupted.
    """
    given = read_given(source, prompt, Address(tenant, channel, thread, session))
    with printing(as_json=as_json) as printer:
        result = asyncio.run(_run(load(ref), given, printer, streams=stream))
        _print(printer, result, was_streamed=stream)
    return _EXIT_CODES[result.status]


async def _run(
    agent: Agent, given: Mapping[str, Any], printer: Printer, *, streams: bool
) -> RunResult:
    async with agent:
        stream = stream_agent_trigger(agent, TRIGGER, given, output="events")
        with _stopped_by_interrupt(stream):
            try:
                if streams:
                    await _follow(stream, printer)
            except BaseException:
                stream.stop()
                raise
            finally:
                result = await stream.result()
        return result


async def _follow(stream: AgentStream, printer: Printer) -> None:
    """Print events as they come, in a thread: a slow reader must not hold up the turn."""
    async for event in stream:
        text = _line_of(event) if printer.as_json else _text_of(event)
        if text:
            await asyncio.to_thread(printer.write, text)


@contextmanager
def _stopped_by_interrupt(stream: AgentStream) -> Iterator[None]:
    """Let Ctrl-C stop the turn instead of the process, once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop.call_soon_threadsafe(stream.stop)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _line_of(event: AgentEvent) -> str:
    return f"{json_line(jsonable(event_to_json(event)))}\n"


def _text_of(event: AgentEvent) -> str:
    if isinstance(event, TextDelta):
        return safe_text(event.text)
    return f"[{safe_line(event.name)}]\n" if isinstance(event, ToolCall) else ""


def _print(printer: Printer, result: RunResult, *, was_streamed: bool) -> None:
    if printer.as_json:
        document = result_to_json(result)
        if was_streamed:
            printer.record({"event": "Result", "result": document})
        else:
            printer.document(document)
        return
    printer.line("" if was_streamed else safe_text(result.text))
    if result.status != "complete":
        printer.note(f"status: {result.status}{f' ({result.reason})' if result.reason else ''}")
