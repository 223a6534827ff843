"""Forking: a child goes on with what its parent built, and leaves to it what it runs."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from vitehub_chat.model.forking import ForkSafeLock

SETUP = """
import asyncio, os, sys, threading
from vitehub_chat import chat, define_agent, open_agent_state, run_agent_trigger

def said(text, thread="t"):
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"messages": [message], "run": {"threadId": thread}}

def say(agent, text, thread="t"):
    return run_agent_trigger(agent, "chat.message", said(text, thread))

def wait_for(pid):
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, code
"""

WHILE_THREADS_WORK = """
agent = define_agent(name="a", driver="echo", capabilities=[chat()], state=STATE)
is_over = threading.Event()
# Python itself cannot go on with modules that another thread imports while it forks.
asyncio.run(say(agent, "first"))

async def work(number):
    count = 0
    while not is_over.is_set():
        await say(agent, f"{number}-{count}", f"t{number}")
        count += 1

threads = [threading.Thread(target=lambda n=n: asyncio.run(work(n))) for n in range(3)]
for thread in threads:
    thread.start()
for number in range(12):
    pid = os.fork()
    if not pid:
        async def one():
            async with asyncio.timeout(20):
                return await say(agent, f"child {number}", "t0")
        status = asyncio.run(one()).status
        os._exit(0 if status == "complete" else 3)
    wait_for(pid)
is_over.set()
for thread in threads:
    thread.join()
"""

UNDER_TURNS = """
begun, go_on = threading.Event(), threading.Event()

async def answer(call):
    begun.set()
    while call.text == "parent" and not go_on.is_set():
        await asyncio.sleep(0.001)
    return "re " + call.text

OPTIONS
agent = define_agent(name="a", driver=answer, capabilities=[chat(**options)])
results = []
thread = threading.Thread(target=lambda: results.append(asyncio.run(say(agent, "parent"))))
thread.start()
begun.wait()
pid = os.fork()
if not pid:
    async def one():
        async with asyncio.timeout(20):
            return await say(agent, "child")
    os._exit(0 if asyncio.run(one()).text == "re child" else 3)
wait_for(pid)
go_on.set()
thread.join()
assert results[0].text == "re parent", results
"""


def run_script(script: str) -> None:
    # Forking under threads is what is tried out here; Python warns of it from 3.12 on.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SETUP + script],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("state", ["None", "'memory:shared'"])
def test_a_child_that_is_forked_while_threads_work_is_not_stuck(state: str) -> None:
    run_script(WHILE_THREADS_WORK.replace("STATE", state))


@pytest.mark.parametrize(
    "options",
    [
        "{'concurrency': 'serial'}",
        "{'concurrency': 'queue'}",
        "{'concurrency': {'strategy': 'parallel', 'max_concurrent': 1}}",
    ],
)
def test_a_child_does_not_wait_for_turns_of_its_parent(options: str) -> None:
    run_script(UNDER_TURNS.replace("OPTIONS", f"options = {options}"))


def test_a_lock_is_forgotten_with_its_owner() -> None:
    from vitehub_chat.model import forking  # noqa: PLC0415 - what it keeps is private

    before = len(forking._locks)
    locks = [ForkSafeLock() for _ in range(10)]
    assert len(forking._locks) == before + 10
    del locks
    assert len(forking._locks) == before


def test_a_lock_excludes_other_threads() -> None:
    lock, order = ForkSafeLock(), list[str]()

    def other() -> None:
        with lock:
            order.append("other")

    with lock:
        thread = threading.Thread(target=other)
        thread.start()
        order.append("first")
    thread.join(20)
    assert order == ["first", "other"]


UNDER_NESTED_LOCKS = """
from vitehub_chat.model.forking import ForkSafeLock

inner, outer = ForkSafeLock(), ForkSafeLock()
is_over, has_outer = threading.Event(), threading.Event()

def work():
    while not is_over.is_set():
        with outer:
            has_outer.set()
            for _ in range(100):
                pass
            with inner:
                pass

thread = threading.Thread(target=work)
thread.start()
for number in range(50):
    has_outer.clear()
    has_outer.wait()
    pid = os.fork()
    if not pid:
        with outer, inner:
            os._exit(0)
    wait_for(pid)
is_over.set()
thread.join()
"""


def test_a_fork_and_a_thread_that_nests_locks_do_not_wait_for_each_other() -> None:
    run_script(UNDER_NESTED_LOCKS)
