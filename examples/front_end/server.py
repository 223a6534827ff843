"""The server of the chat box: an agent behind routes. `uvicorn server:app` serves it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from starlette.requests import Request

from vitehub_chat import DriverCall, chat, define_agent
from vitehub_chat.model.events import TextDelta, ToolCall
from vitehub_chat.model.parts import ToolResultPart
from vitehub_chat.web import Principal, chat_app, per_user_sessions


async def answer(call: DriverCall) -> AsyncIterator[TextDelta | ToolCall]:
    """Answer without a model, so that the example runs anywhere.

    A question about the place is answered with a tool that runs in the browser.
    """
    current = call.messages[-1]
    if current.role == "assistant":
        outputs = [part.output for part in current.parts if isinstance(part, ToolResultPart)]
        yield TextDelta("0", f"You are in {outputs[-1]}.")
    elif "where" in call.text.lower():
        yield ToolCall("place", "locate", {})
    elif "slowly" in call.text.lower():
        for number in range(600):
            yield TextDelta("0", f"{number} ")
            await asyncio.sleep(0.1)
    else:
        yield TextDelta("0", f"You said: {call.text}")


def authenticate(request: Request) -> Principal | None:
    """Tell who calls; put your own authentication here."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    return Principal("acme", token) if token else None


agent = define_agent(
    name="front_end",
    driver=answer,
    capabilities=[chat(trigger_history={"source": "transcript", "max_messages": 20})],
    state=os.environ.get("VITEHUB_AGENT_STATE_URL", "memory:"),
)
app = chat_app(agent, authenticate=authenticate, resolve_session=per_user_sessions)
