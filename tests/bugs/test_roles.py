"""The order of roles that providers ask for."""

from __future__ import annotations

import pytest

from tests.bugs.support import WINDOW, agent_on, say
from vitehub_chat.state.stepped import SteppedAgentState


@pytest.mark.parametrize("profile", ["gemini", "anthropic", "bedrock", "strict", "mistral"])
async def test_L286_a_window_that_begins_with_an_answer_begins_with_a_user_on_the_wire(
    state: SteppedAgentState, profile: str
) -> None:
    agent = agent_on(state, trigger_history={**WINDOW, "max_messages": 3})
    for text in ("A", "B"):
        await say(agent, text)
    conversation = agent.conversation("t")
    payload = await conversation.format(profile)
    turns = payload.get("contents") or payload["messages"]
    assert [each["role"] for each in turns[:2]] == [
        "user",
        "model" if profile == "gemini" else "assistant",
    ]
    assert "re A" in str(turns[1])
    assert "(conversation continues)" in str(turns[0])


@pytest.mark.parametrize("profile", ["bedrock", "anthropic", "gemini", "strict"])
async def test_L258_answers_of_two_agents_are_one_turn_on_the_wire(
    state: SteppedAgentState, profile: str
) -> None:
    agent = agent_on(state, trigger_history=WINDOW)
    await agent.conversation("t").append(
        [
            {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hello"}]},
            {"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": "from one"}]},
            {"id": "a2", "role": "assistant", "parts": [{"type": "text", "text": "from two"}]},
        ]
    )
    payload = await agent.conversation("t").format(profile)
    turns = payload.get("contents") or payload["messages"]
    assert len(turns) == 2
    assert "from one" in str(turns[1])
    assert "from two" in str(turns[1])


@pytest.mark.parametrize("profile", ["bedrock", "anthropic", "gemini"])
async def test_L258_two_people_keep_their_names_in_one_turn(
    state: SteppedAgentState, profile: str
) -> None:
    agent = agent_on(state, trigger_history=WINDOW)
    said = [("u1", "ann", "hello"), ("u2", "bob", "hi")]
    await agent.conversation("t").append(
        [
            {
                "id": each,
                "role": "user",
                "parts": [{"type": "text", "text": text}],
                "metadata": {"author": author},
            }
            for each, author, text in said
        ]
    )
    payload = await agent.conversation("t").format(profile, speaker_prefix=True)
    (turn,) = payload.get("contents") or payload["messages"]
    assert "ann: hello" in str(turn)
    assert "bob: hi" in str(turn)
