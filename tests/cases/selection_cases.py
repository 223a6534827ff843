"""Cases of selection: what the driver would get, through `prepare_agent_trigger`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import pytest

from vitehub_chat import chat, define_agent, errors, prepare_agent_trigger


async def run(case: Mapping[str, Any], state: str | None) -> None:
    """Check one case; with a state the conversation gets a name, and nothing else differs."""
    options, given = _with_infinity(case["options"]), _with_infinity(case["input"])
    if state is not None:
        given = {"run": {"threadId": "t"}, **given}
    if "error" in case:
        expected = getattr(errors, case["error"])
        with pytest.raises(expected) as caught:
            await _prepared_ids(options, given, state)
        assert type(caught.value) is expected
    else:
        assert await _prepared_ids(options, given, state) == case["expect"]["messages"]


async def _prepared_ids(options: Any, given: Any, state: str | None) -> list[str | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.ConfigOverrideWarning)
        capability = chat(options)
    async with define_agent(name="a", capabilities=[capability], state=state) as agent:
        prepared = await prepare_agent_trigger(agent, "chat.message", given)
    return [message.id for message in prepared.messages]


def _with_infinity(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_infinity(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_infinity(item) for item in value]
    return math.inf if value == "Infinity" else value
