"""Repeats: a message that comes again is answered from the record, wherever it comes again."""

from __future__ import annotations

import attrs
import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.scene import shorts


async def test_C15_an_id_runs_again_when_its_claim_is_over_and_its_row_is_not_doubled(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("serial", dedupe_ttl_ms=40)
    await scene.first.release("A")
    await scene.second.release("A")
    assert await shorts(scene.first.send("A")) == ["complete A[]"]
    await scene.advance(0.039)
    assert await shorts(scene.second.send("A")) == ["complete A[]"]
    assert await scene.calls() == ["A[]"]
    await scene.advance(0.011)
    assert await shorts(scene.second.send("A")) == ["complete A[]"]
    assert await scene.calls() == ["A[]", "A[]"]
    assert await scene.texts() == ["A", "A[]", "A[]"]
    await scene.check_nothing_is_left()


async def test_C19_a_repeat_after_the_end_gets_the_recorded_answer(set_scene: SetScene) -> None:
    scene = await set_scene("serial", sessions=True)
    await scene.first.release("A")
    first = await scene.first.send("A", session={"id": "s"})
    again = await scene.second.send("other text", key="A", session={"id": "s"})
    assert first.is_driven
    assert again == attrs.evolve(first, is_driven=False)
    assert await scene.calls() == ["A[]"]
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize("strategy", ["serial", "queue", "parallel", "drop", "reject"])
async def test_C20_a_repeat_while_its_turn_runs_waits_for_the_same_end(
    set_scene: SetScene, strategy: str
) -> None:
    scene = await set_scene(strategy)
    a = await scene.first.start("A")
    again = scene.second.send("A")
    # A turn that runs has taken its seat as well, so two of them if the agent is the same.
    await scene.second.ask("seats", count=len({scene.first, scene.second}) % 2 + 1)
    other = await scene.second.start("X", key="A", thread="t2")
    await scene.second.release("X")
    assert await shorts(other) == ["complete X[]"]
    await scene.first.release("A")
    assert await shorts(a, again) == ["complete A[]", "complete A[]"]
    assert attrs.evolve(await a, is_driven=False) == await again
    assert sorted(await scene.calls()) == ["A[]", "X[]"]
    assert await scene.texts() == ["A", "A[]"]
    assert await scene.texts("t2") == ["X", "X[]"]
    await scene.check_nothing_is_left("t", "t2")


async def test_a_repeat_of_a_waiting_message_gets_its_end(set_scene: SetScene) -> None:
    scene = await set_scene("queue")
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.first, "B")
    again = scene.second.send("B")
    await scene.first.release("A", "B")
    assert await shorts(a, b, again) == ["complete A[]", "complete B[]", "complete B[]"]
    assert await scene.calls() == ["A[]", "B[]"]
    await scene.check_nothing_is_left()


async def test_a_recorded_error_is_returned_to_a_repeat_and_not_raised(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("serial")
    await scene.first.release("fail A")
    assert await shorts(scene.first.send("fail A")) == ["Boom fail A"]
    again = await scene.second.send("fail A")
    assert (again.status, again.text, again.is_driven) == ("error", "", False)
    assert await scene.calls() == ["fail A[]"]
    await scene.check_nothing_is_left()


async def test_messages_without_id_are_no_repeats(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    for site in (scene.first, scene.second):
        await site.release("A")
        assert await shorts(site.send("A", key="")) == ["complete A[]"]
    assert await scene.texts() == ["A", "A[]", "A", "A[]"]
    await scene.check_nothing_is_left()


async def test_a_message_that_only_its_run_names_is_stored_once_however_often_it_runs(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("serial", dedupe_ttl_ms=40)
    for site in scene.sites:
        await site.release("A")
    for site in (scene.first, scene.second):
        sent = site.send("A", key="", run_message_id="p1")
        assert await shorts(sent) == ["complete A[]"]
        again = site.send("A", key="", run_message_id="p1")
        assert await shorts(again) == ["complete A[]"]
        await scene.advance(1)
    assert await scene.calls() == ["A[]", "A[]"]
    assert await scene.texts() == ["A", "A[]", "A[]"]
    assert (await scene.rows())[0].message.id == "p1"
    await scene.check_nothing_is_left()


async def test_an_assistant_message_without_news_is_a_repeat_from_every_thread_of_its_session(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("serial", sessions={"strategy": "manual"})
    await scene.first.release("A")
    first = await scene.first.send("A", session={"id": "s"}, thread="t1")
    assert first.message_id is not None
    answer = {
        "id": first.message_id,
        "role": "assistant",
        "parts": [
            {"type": "text", "text": "A[]"},
        ],
    }
    again = await scene.second.send(
        "",
        key="again",
        thread="t2",
        session={"id": "s"},
        messages=[
            answer,
        ],
    )
    assert again == attrs.evolve(first, is_driven=False)
    assert await scene.calls() == ["A[]"]
    await scene.check_nothing_is_left("t1", "t2")
