"""Stored conversations as the request fields of a provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import attrs
import pytest

from vitehub_chat import Conversation, ConversationKey, open_agent_state, plugins
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.formatting.profiles import PROFILES, Profile
from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.model.policies import ChatPolicy, HistoryWindow, PrunePolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

KEY = ConversationKey(None, "helper", None, "t")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def state(clock: FakeClock) -> AsyncIterator[AgentState]:
    async with open_agent_state("memory:", clock=clock) as opened:
        yield opened


def said(text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": text, "role": role, "parts": [{"type": "text", "text": text}], **more}


async def test_all_messages_that_a_model_may_see_come_in_order(state: AgentState) -> None:
    conversation = Conversation(state, KEY)
    await conversation.append([said("be kind", "system"), said("hello"), said("hi", "assistant")])
    await conversation.append([{"id": "blank", "role": "assistant", "parts": []}])
    expected = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
    ]
    assert (await conversation.format("openai_chat"))["messages"] == expected
    fields = await conversation.format("anthropic", system="You answer.", current=said("and now?"))
    assert fields["system"] == "You answer.\n\nbe kind"
    assert [each["role"] for each in fields["messages"]] == ["user", "assistant", "user"]
    assert len((await conversation.history()).items) == 4


async def test_the_window_and_the_age_of_the_agent_hold(
    state: AgentState, clock: FakeClock
) -> None:
    window = HistoryWindow(source="transcript", max_messages=2)
    policy = ChatPolicy(window=window, prune=PrunePolicy(max_age=timedelta(hours=1)))
    conversation = Conversation(state, KEY, policy=policy)
    old, young = clock.now(), clock.now() + timedelta(hours=2)
    times = {"m1": old, "m2": old, "m3": young}
    await conversation.append([said(name, createdAt=at.isoformat()) for name, at in times.items()])
    fields = await conversation.format("openai_chat")
    assert [each["content"] for each in fields["messages"]] == ["m2", "m3"]
    clock.advance(hours=2)
    fields = await conversation.format("openai_chat")
    assert [each["content"] for each in fields["messages"]] == ["m3"]


@pytest.mark.parametrize("placement", ["system", "user"])
async def test_the_rolled_summary_stands_for_what_it_covers(
    state: AgentState, placement: Any
) -> None:
    policy = ChatPolicy(context=ContextPolicy(summary_placement=placement))
    conversation = Conversation(state, KEY, policy=policy)
    await conversation.append([said("m1"), said("m2"), said("m3")])
    since = await state.summaries.get_rolling(KEY, session_id=None)
    assert since is not None
    await state.summaries.commit_roll(
        KEY,
        session_id=None,
        since=since,
        summary="they said much",
        anchor=3,
        system_seqs=(),
        model=None,
        checkpoints_kept=1,
    )
    fields = await conversation.format("openai_chat")
    first, second = fields["messages"]
    assert (first["role"], "they said much" in first["content"]) == (placement, True)
    assert second == {"role": "user", "content": "m3"}


async def test_a_session_comes_without_the_others(state: AgentState) -> None:
    for name in ("s1", "s2"):
        await Conversation(state, KEY, session_id=name).append([said(f"of {name}")])
    fields = await Conversation(state, KEY, session_id="s2").format("openai_chat")
    assert fields["messages"] == [{"role": "user", "content": "of s2"}]
    fields = await Conversation(state, KEY).format("openai_chat")
    assert len(fields["messages"]) == 2


async def test_profiles_of_others_are_found_by_name(state: AgentState) -> None:
    conversation = Conversation(state, KEY)
    await conversation.append([said("m1")])

    def build() -> Profile:
        return attrs.evolve(PROFILES["openai_chat"], name="own")

    with plugins.formats.using(own=build, broken=dict):
        assert await conversation.format("own") == await conversation.format("openai_chat")
        with pytest.raises(ConfigError, match="builds no profile"):
            await conversation.format("broken")
        with pytest.raises(ConfigError) as caught:
            await conversation.format("opanai_chat")
    assert caught.value.path == "profile"
    assert all(name in str(caught.value) for name in (*PROFILES, "own", "broken"))


async def test_an_unknown_option_is_named_with_the_nearest(state: AgentState) -> None:
    wrong: Any = {"speaker_prefixes": True}
    with pytest.raises(ConfigError, match="speaker_prefix") as caught:
        await Conversation(state, KEY).format("openai_chat", **wrong)
    assert caught.value.path == "speaker_prefixes"


async def test_an_empty_conversation_has_nothing_to_send(state: AgentState) -> None:
    with pytest.raises(InputError) as caught:
        await Conversation(state, KEY).format("openai_chat")
    assert caught.value.code == "no_user_message"
