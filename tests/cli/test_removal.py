"""Deleting, cutting, pruning and erasing by the command."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.helpers import STATE, Invoke, document, failure, store, texts_of
from vitehub_chat import define_agent, run_agent_trigger

HERE = ("--thread", "cli")
REMOVALS = [["delete"], ["truncate", "--from", "cli-1"], ["prune"]]


def texts(invoke: Invoke, support: str, thread: str = "cli") -> list[str]:
    return texts_of(document(invoke("history", support, "--thread", thread, "--json")))


def test_a_conversation_is_deleted_and_counted(support: str, invoke: Invoke) -> None:
    store("one", "two")
    store("other", thread="t2")
    done = document(invoke("delete", support, *HERE, "--yes", "--json"))
    assert (done["deleted"]["rows"], done["deleted"]["sessions"], done["notes"]) == (2, 1, 0)
    assert texts(invoke, support, "t2") == ["other"]
    assert invoke("delete", support, *HERE, "--yes").exit_code == 4


def test_one_session_of_a_conversation_is_deleted(support: str, invoke: Invoke) -> None:
    store("mine", session_id="s1")
    store("yours", thread="t2", session_id="s2")
    done = document(invoke("delete", support, "--session", "s1", "--yes", "--json"))
    assert done["deleted"]["rows"] == 1
    assert texts(invoke, support, "t2") == ["yours"]


def test_a_conversation_is_cut_off(support: str, invoke: Invoke) -> None:
    store("one", "two", "three")
    done = document(
        invoke("truncate", support, *HERE, "--from", "cli-2", "--after", "--yes", "--json")
    )
    assert (done["deleted"], done["live_edge_seq"], done["summary"]) == (1, 2, "kept")
    assert texts(invoke, support) == ["one", "two"]
    before = str(done["generation"] - 1)
    again = invoke(
        "truncate", support, *HERE, "--from", "cli-2", "--generation", before, "--yes", "--json"
    )
    assert (again.exit_code, failure(again)["code"]) == (5, "state_conflict")


def test_pruning_by_the_rules_of_the_agent(folder: Path, invoke: Invoke) -> None:
    (folder / "pruned.toml").write_text(
        'name = "support"\ndriver = "echo"\nstate = "file:state.db"\n[[capabilities]]\n'
        'use = "chat"\ntranscripts = { prune = { maxMessages = 2 } }\n'
    )
    store("one", "two", "three")
    plan = document(invoke("prune", "pruned.toml", *HERE, "--dry-run", "--json"))
    assert (plan["removed"], plan["kept"], plan["done"]) == (
        {"age": 0, "count": 1, "tokens": 0},
        2,
        False,
    )
    assert len(texts(invoke, "pruned.toml")) == 3
    assert document(invoke("prune", "pruned.toml", *HERE, "--yes", "--json"))["done"] is True
    assert texts(invoke, "pruned.toml") == ["two", "three"]


@pytest.mark.parametrize("command", REMOVALS)
def test_nothing_goes_unasked_without_a_terminal(
    support: str, invoke: Invoke, command: list[str]
) -> None:
    store("one")
    result = invoke(*command, support, *HERE, "--json")
    assert (result.exit_code, failure(result)["code"]) == (2, "usage")
    assert texts(invoke, support) == ["one"]


@pytest.mark.parametrize("command", REMOVALS)
def test_a_conversation_has_to_be_named(support: str, invoke: Invoke, command: list[str]) -> None:
    store("one")
    result = invoke(*command, support, "--yes", "--json")
    assert (result.exit_code, failure(result)["code"]) == (2, "usage")
    assert texts(invoke, support) == ["one"]


@pytest.mark.parametrize("command", [*REMOVALS, ["turns"], ["summary"], ["export"]])
def test_what_is_not_stored_is_4(support: str, invoke: Invoke, command: list[str]) -> None:
    store("one")
    yes = ["--yes"] if command in REMOVALS else []
    result = invoke(*command, support, "--thread", "t9", *yes, "--json")
    assert (result.exit_code, failure(result)["code"]) == (4, "not_found")


def test_a_person_is_erased_with_a_receipt(support: str, invoke: Invoke) -> None:
    store("of nobody")
    said_by("ada")
    receipt = document(
        invoke("erase", "--state", STATE, "--user", "ada", "--tenant", "acme", "--yes", "--json")
    )
    assert (receipt["erased"]["rows"], receipt["erased"]["sessions"]) == (2, 1)
    again = document(
        invoke("erase", support, "--user", "ada", "--tenant", "acme", "--yes", "--json")
    )
    assert set(again["erased"].values()) == {0}
    assert texts(invoke, support) == ["of nobody"]
    assert invoke("erase", support, "--user", "ada").exit_code == 2


def said_by(person: str) -> None:
    """Have a message of a person answered."""
    agent = define_agent(name="support", driver="echo", state=STATE, capabilities=[{"use": "chat"}])
    agent.runtime()

    async def take_turn() -> None:
        async with agent:
            message = {"id": "p1", "role": "user", "parts": [{"type": "text", "text": "mine"}]}
            run = {"tenant_id": "acme", "thread_id": "t5"}
            given = {"messages": [message], "run": run, "user_key": person}
            await run_agent_trigger(agent, "chat.message", given)

    asyncio.run(take_turn())
