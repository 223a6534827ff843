"""Properties of whole turns: spellings do not matter, and a dry run tells what the turn gets."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from vitehub_chat import (
    Agent,
    PreparedInvocation,
    chat,
    define_agent,
    open_agent_state,
    prepare_agent_trigger,
    run_agent_trigger,
)
from vitehub_chat.testing.clock import FakeClock

COUNTS = st.integers(1, 5)
SOURCES = st.sampled_from(["thread", "transcript"])
WINDOWS = st.fixed_dictionaries(
    {"source": SOURCES, "max_messages": COUNTS},
    optional={"max_age_ms": st.integers(0, 120_000)},
)
SESSIONS = st.one_of(
    st.booleans(),
    st.fixed_dictionaries(
        {
            "strategy": st.sampled_from(["idle-timeout", "hybrid"]),
            "idle_timeout_ms": st.integers(1, 90_000),
        },
        optional={"metadata_key": st.just("conv_key")},
    ),
)
OPTIONS = st.fixed_dictionaries(
    {"sessions": SESSIONS, "dedupe_ttl_ms": st.integers(1, 60_000)},
    optional={
        "trigger_history": st.just("none") | WINDOWS,
        "concurrency": st.sampled_from(["serial", "queue"]),
    },
)
IDS = st.sampled_from(["m1", "m2", "m3", "m4", None])
METADATA = st.sampled_from(
    [{}, {"sessionId": "s"}, {"conv_key": "z"}, {"chat": {"skipped_count": 2}}]
)


def with_text(facts: dict[str, Any]) -> dict[str, Any]:
    parts = [{"type": "text", "text": "hi"}]
    return {**{name: fact for name, fact in facts.items() if fact is not None}, "parts": parts}


MESSAGES = st.fixed_dictionaries(
    {
        "id": IDS,
        "role": st.just("user"),
        "metadata": METADATA,
        "created_at": st.none() | st.integers(1_767_225_600_000, 1_767_225_900_000),
    }
).map(with_text)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "action": st.sampled_from(["continue", "new", "switch"]),
        "id": st.sampled_from(["s", "z", ""]),
    },
)
INPUTS = st.fixed_dictionaries(
    {
        "messages": st.lists(MESSAGES, min_size=1, max_size=5),
        "run": st.fixed_dictionaries({"thread_id": st.sampled_from(["t", "t2"])}),
    },
    optional={
        "session": CHOICES,
        "trigger_history": st.just("none") | WINDOWS,
        "timeout_ms": st.integers(1, 10**6),
        "user_key": st.just("ann"),
        "chat_id": st.just("c1"),
    },
)
STEPS = st.lists(st.tuples(INPUTS, st.integers(0, 120)), min_size=1, max_size=6)
FREE = frozenset({"metadata"})
"""What is the application's own: its names have one spelling."""


def in_camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            to_camel(name): item if name in FREE else in_camel_case(item)
            for name, item in value.items()
        }
    return [in_camel_case(item) for item in value] if isinstance(value, list) else value


def agent_of(options: dict[str, Any], state: Any) -> Agent:
    return define_agent(name="a", driver="echo", capabilities=[chat(options)], state=state)


@settings(max_examples=60)
@given(OPTIONS, INPUTS)
def test_both_spellings_prepare_the_same(options: dict[str, Any], given: dict[str, Any]) -> None:
    async def prepared(options: dict[str, Any], given: dict[str, Any]) -> PreparedInvocation:
        async with open_agent_state("memory:", clock=FakeClock()) as state:
            return await prepare_agent_trigger(agent_of(options, state), "chat.message", given)

    snake = asyncio.run(prepared(options, given))
    assert asyncio.run(prepared(in_camel_case(options), in_camel_case(given))) == snake


@settings(max_examples=60)
@given(OPTIONS, STEPS)
def test_a_dry_run_tells_what_the_turn_gets(
    options: dict[str, Any], steps: list[tuple[dict[str, Any], int]]
) -> None:
    async def go() -> None:
        clock = FakeClock()
        async with open_agent_state("memory:", clock=clock) as state:
            agent = agent_of(options, state)
            for given, seconds in steps:
                prepared = await prepare_agent_trigger(agent, "chat.message", given)
                result = await run_agent_trigger(agent, "chat.message", given)
                if result.prepared is not None:
                    assert result.prepared == prepared
                    assert result.session_id == prepared.session_id
                clock.advance(seconds=seconds)

    asyncio.run(go())
