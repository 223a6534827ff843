"""Check an installed wheel: run by a Python that has the wheel and nothing of the checkout.

`wheel_smoke.py core` expects the wheel without extras, `wheel_smoke.py cli` the `cli` extra.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import vitehub_chat

COMMAND = Path(sys.executable).with_name("vitehub-chat")
MISSING_EXTRA = 7


async def take_turn(state: str) -> None:
    """Run one turn of an echoing agent."""
    agent = vitehub_chat.define_agent(
        name="smoke", driver="echo", capabilities=[vitehub_chat.chat()], state=state
    )
    message = {"role": "user", "parts": [{"type": "text", "text": "hello"}]}
    run = {"channelId": "smoke", "threadId": "1"}
    async with agent:
        result = await vitehub_chat.run_agent_trigger(
            agent, "chat.message", {"messages": [message], "run": run}
        )
    expect(result.status == "complete" and "hello" in (result.text or ""), f"a turn on {state}")


def check_core(folder: Path) -> None:
    """Turns work without extras, and the command says which extra it needs."""
    asyncio.run(take_turn("memory:"))
    asyncio.run(take_turn(f"file:{folder / 'state.db'}"))
    done = run_command("plugins", "doctor")
    expect(done.returncode == MISSING_EXTRA, f"exit code {MISSING_EXTRA}, not {done.returncode}")
    expect("vitehub-chat[cli]" in done.stderr, "the install line on stderr")


def check_cli() -> None:
    """Every built-in plugin can be imported."""
    done = run_command("plugins", "doctor")
    expect(done.returncode == 0, f"plugins doctor to exit with 0\n{done.stdout}{done.stderr}")


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command and keep what it prints."""
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def expect(fact: bool, what: str) -> None:  # noqa: FBT001  reads as a sentence
    """Stop with what was expected."""
    if not fact:
        sys.exit(f"wheel smoke test: expected {what}")


if __name__ == "__main__":
    if sys.argv[1] == "core":
        with tempfile.TemporaryDirectory() as folder:
            check_core(Path(folder))
    else:
        check_cli()
