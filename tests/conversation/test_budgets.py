"""What the newest page says of the budget of the turn that ended last."""

from __future__ import annotations

import attrs

from vitehub_chat import Agent, chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.tables import DocumentQuery, Transaction


def agent_on(state: object) -> Agent:
    capability = chat(
        trigger_history={"source": "transcript", "max_messages": 20},
        context={"window_tokens": 50_000},
    )
    return define_agent(name="a", driver="echo", capabilities=[capability], state=state)


async def say(agent: Agent, text: str) -> RunResult:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    return await run_agent_trigger(
        agent, "chat.message", {"messages": [message], "run": {"thread_id": "t"}}
    )


async def test_the_newest_page_has_the_budget_of_the_turn_that_ended_last() -> None:
    async with open_agent_state("memory:") as state:
        agent = agent_on(state)
        conversation = agent.conversation("t")
        assert (await conversation.history()).context_budget is None
        await say(agent, "one")
        result = await say(agent, "two")
        newest = await conversation.history(limit=2)
        assert result.context_budget is not None
        assert newest.context_budget == result.context_budget
        older = await conversation.history(cursor=newest.older_cursor)
        around = await conversation.history(around="two")
        assert (older.context_budget, around.context_budget) == (None, None)


async def test_a_plan_that_cannot_be_read_hides_no_history() -> None:
    async with open_agent_state("memory:") as state:
        assert isinstance(state, SteppedAgentState)
        agent = agent_on(state)
        await say(agent, "one")
        conversation = agent.conversation("t")

        def damage(tx: Transaction) -> int:
            query = DocumentQuery(home=conversation.key.encode(), kind="plan", limit=10, now=0)
            found = tx.documents.numbered(query)
            for each in found:
                tx.documents.put(attrs.evolve(each, body="{"))
            return len(found)

        assert await state.run_write(damage) == 1
        page = await conversation.history()
        assert ([row.message.id for row in page.items][:1], page.context_budget) == (["one"], None)
