"""Given: the input of a turn, from a file or from one text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO, NoReturn

import click

from vitehub_chat.cli.options import DEFAULT_THREAD, Address
from vitehub_chat.errors import InputError

input_option = click.option(
    "--input", "source", type=click.File("rb"), help="A file with the input as JSON; - is stdin."
)


def read_given(source: BinaryIO | None, prompt: str | None, address: Address) -> dict[str, Any]:
    """Return the input of a turn: that of a file, or one text; exactly one of them is needed."""
    if source is not None and prompt is not None:
        raise click.UsageError("--input and --prompt exclude each other")
    if source is not None:
        given = _read_input(source.read())
        return address_input(given, address if _has_thread(given) else _in_some_thread(address))
    if prompt is None:
        raise click.UsageError("give --prompt TEXT or --input FILE")
    return prompt_input(prompt, address)


def address_input(given: Mapping[str, Any], address: Address) -> dict[str, Any]:
    """Return the input of a trigger with the parts of an address in place of its own."""
    result = dict(given)
    run = dict(result.get("run") or {})
    for name in ("tenant", "channel", "thread"):
        value = getattr(address, name)
        if value is not None:
            run.pop(f"{name}Id", None)
            run[f"{name}_id"] = value
    if run:
        result["run"] = run
    if address.session is not None:
        result["session"] = {"id": address.session}
    return result


def prompt_input(prompt: str, address: Address) -> dict[str, Any]:
    """Return the input of a trigger for one text."""
    message = {"role": "user", "parts": [{"type": "text", "text": prompt}]}
    return address_input({"messages": [message]}, _in_some_thread(address))


def _has_thread(given: Mapping[str, Any]) -> bool:
    run = given.get("run") or {}
    return any(run.get(name) is not None for name in ("thread_id", "threadId"))


def _in_some_thread(address: Address) -> Address:
    return address if address.thread is not None else address._replace(thread=DEFAULT_THREAD)


def _read_input(content: bytes) -> dict[str, Any]:
    try:
        given = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = "" if line is None else f", line {line}"
        raise InputError(f"is not JSON{where}", path="--input") from None
    if not isinstance(given, dict):
        raise InputError("must be a JSON object: the input of chat.message", path="--input")
    run = given.get("run")
    if run is not None and not isinstance(run, dict):
        raise InputError("must be a mapping", path="run")
    return given


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
