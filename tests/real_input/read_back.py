"""A process that reads conversations back: keys as JSON lines in, exports as JSON lines out."""

from __future__ import annotations

import asyncio
import json
import sys

from vitehub_chat import open_agent_state
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.model.keys import ConversationKey


async def main(url: str) -> None:
    """Print one line per conversation: the lines of its export."""
    async with open_agent_state(url) as state:
        for line in sys.stdin:
            conversation = Conversation(state, ConversationKey(*json.loads(line)))
            print(json.dumps([json.loads(each) async for each in conversation.export()]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
