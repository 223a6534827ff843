"""What the driver of a channel sees: rows, the cache, and what the platform had before."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.channels.scene import Scene, SetScene
from vitehub_chat.channels.values import Author
from vitehub_chat.testing.clock import FakeClock
from vitehub_chat.testing.scripted_channel import ScriptedChannel, history_of, said

WINDOW_3 = {"source": "thread", "max_messages": 3}
TEN = {"max_messages": 10}
TWENTY = [f"m{number}" for number in range(1, 21)]
NOON = datetime(2025, 12, 31, 12, tzinfo=UTC)


def with_history(scene: Scene, *texts: str, thread: str = "t1") -> None:
    scene.platform.history[thread] = history_of(*texts, thread=thread)


async def ask(scene: Scene, text: str, **fields: Any) -> str:
    """Have somebody say something and return the answer, the last one of the driver."""
    assert await scene.tell(said(text, **fields)) == 200
    await scene.quiet()
    return str(scene.driver.calls[-1])


async def test_A01_without_a_window_the_current_message_is_alone(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(trigger_history=None)
    with_history(scene, "old")
    assert await ask(scene, "now") == "now[]"
    assert await ask(scene, "then") == "then[]"
    assert scene.platform.backfills == []


async def test_A02_a_thread_is_backfilled_once_by_the_bound_of_the_thread_history(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene(trigger_history=WINDOW_3, thread_history=TEN)
    with_history(scene, *TWENTY)
    assert await ask(scene, "now") == "now[m19,m20]"
    assert scene.platform.backfills == [("t1", 10)]
    assert await ask(scene, "then") == "then[now,now[m19,m20]]"
    assert scene.platform.backfills == [("t1", 10)]


async def test_A02_a_backfill_has_the_newest_messages_of_the_platform(set_scene: SetScene) -> None:
    scene = await set_scene(trigger_history=WINDOW_3, thread_history=TEN)
    with_history(scene, *TWENTY)
    await ask(scene, "now")
    assert await scene.texts() == [*TWENTY[10:], "now", "now[m19,m20]"]


async def test_A02_a_thread_is_not_backfilled_again_after_a_restart(set_scene: SetScene) -> None:
    first = await set_scene()
    with_history(first, "old")
    await ask(first, "now")
    second = await set_scene(channel=first.channel)
    assert await ask(second, "then") == "then[old,now,now[old]]"
    assert first.platform.backfills == [("t1", 100)]


async def test_a_conversation_that_was_cleared_is_not_fetched_again(set_scene: SetScene) -> None:
    first = await set_scene()
    with_history(first, "old")
    await ask(first, "now")
    await first.agent.conversation(first.key()).clear()
    second = await set_scene(channel=first.channel)
    assert await ask(second, "then") == "then[]"


async def test_a_conversation_whose_rows_expired_is_not_fetched_again(
    set_scene: SetScene, clock: FakeClock
) -> None:
    first = await set_scene(retention=3_600_000)
    with_history(first, "old")
    assert await ask(first, "now") == "now[old]"
    clock.advance(hours=2)
    second = await set_scene(channel=first.channel, retention=3_600_000)
    assert await ask(second, "then") == "then[]"
    assert len(first.platform.backfills) == 1


async def test_a_page_that_is_longer_than_asked_for_is_cut(set_any_scene: SetScene) -> None:
    class Generous(ScriptedChannel):
        async def backfill(self, target: Any, /, *, limit: int) -> Any:
            return await super().backfill(target, limit=limit + 5)

    window = {"source": "thread", "max_messages": 50}
    scene = await set_any_scene(
        channel=Generous(), trigger_history=window, thread_history={"max_messages": 3}
    )
    with_history(scene, "a", "b", "c", "d", "e")
    # Without a state the bound holds for all that is remembered, the current message included.
    seen = "now[c,d,e]" if scene.state is not None else "now[d,e]"
    assert await ask(scene, "now") == seen


async def test_A03_a_current_message_that_the_page_does_not_have_is_last(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene()
    with_history(scene, "a", "b")
    assert await ask(scene, "now") == "now[a,b]"


async def test_A03_the_live_message_takes_the_place_of_that_of_the_page(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene()
    scene.platform.history["t1"] = [said("a"), said("now", "older text")]
    assert await ask(scene, "now") == "now[a]"
    assert await scene.texts() == ["a", "now", "now[a]"]


async def test_what_the_page_has_behind_the_current_message_is_not_said_yet(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene()
    with_history(scene, "a", "b", "c")
    assert await ask(scene, "b") == "b[a]"
    assert await ask(scene, "c") == "c[a,b,b[a]]"
    assert await scene.texts() == ["a", "b", "b[a]", "c", "c[a,b,b[a]]"]


@pytest.mark.parametrize("error", [RuntimeError("down"), TimeoutError(), KeyError("page")])
async def test_A04_a_backfill_that_raises_is_logged_and_the_turn_goes_on(
    set_any_scene: SetScene, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "vitehub_chat.conversation")
    scene = await set_any_scene()
    scene.platform.fail("backfill", error)
    assert await ask(scene, "now") == "now[]"
    assert [record.getMessage() for record in caplog.records] == ["chat.backfill.failed"]
    assert "down" not in caplog.text
    await scene.posted("now[]")


async def test_A05_the_bot_is_assistant_and_everybody_else_is_user_with_a_name(
    set_any_scene: SetScene,
) -> None:
    seen: list[Any] = []

    def answer(call: Any) -> str:
        seen.extend((each.role, each.metadata.get("author"), each.text) for each in call.messages)
        return "fine"

    scene = await set_any_scene(driver=answer)
    other = Author(id="b9", name="Deploy", is_bot=True)
    scene.platform.history["t1"] = [
        said("hi", author="bot"),
        said("built", author=other),
        said("ok", author=Author(id="u1", name="Ann")),
    ]
    await scene.tell(said("now", author=other))
    await scene.posted("fine")
    assert seen == [
        ("assistant", "bot", "hi"),
        ("user", "Deploy", "built"),
        ("user", "Ann", "ok"),
        ("user", "Deploy", "now"),
    ]


async def test_a_channel_that_has_no_backfill_is_not_asked(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(channel=ScriptedChannel(features=frozenset({"edit"})))
    with_history(scene, "old")
    assert await ask(scene, "now") == "now[]"
    assert scene.platform.backfills == []


async def test_threads_and_channels_do_not_see_each_other(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    await ask(scene, "a")
    assert await ask(scene, "b", thread="t2") == "b[]"
    assert await ask(scene, "c", channel="c2") == "c[]"
    assert await ask(scene, "d", tenant="acme") == "d[]"
    assert await ask(scene, "e") == "e[a,a[]]"


async def test_a_turn_sees_the_answer_of_the_one_it_waited_for(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(stops=True)
    await scene.tell(said("a"))
    await scene.begun("a")
    await scene.tell(said("b"))
    await scene.tell(said("c"))
    scene.release("a", "b", "c")
    await scene.posted("a[]", "b[a,a[]]", "c[a,a[],b,b[a,a[]]]")


async def test_a_silence_in_the_page_ends_a_session(set_scene: SetScene) -> None:
    minute = timedelta(minutes=1)
    scene = await set_scene(sessions={"strategy": "idle-timeout", "idle_timeout_ms": 600_000})
    scene.platform.history["t1"] = [
        said("a", at=NOON - 60 * minute),
        said("b", at=NOON - 3 * minute),
        said("c", at=NOON - 2 * minute),
    ]
    assert await ask(scene, "now", at=NOON) == "now[b,c]"
    sessions = [row.session_id for row in await scene.rows()]
    assert len(set(sessions[1:])) == 1
    assert sessions[0] != sessions[1]


async def test_rows_and_sessions_belong_to_the_users_of_the_channel(set_scene: SetScene) -> None:
    scene = await set_scene()
    scene.platform.history["t1"] = [
        said("a", author="u2"),
        said("b", author="bot"),
        said("c", author=Author(id="b9", is_bot=True)),
    ]
    await ask(scene, "now")
    owners = [row.author for row in await scene.rows()]
    assert owners == ["scripted:u2", None, None, "scripted:u1", None]
    page = await scene.agent.conversations(user_key="scripted:u1").sessions()
    assert len(page.items) == 1


async def test_identity_names_the_users(set_scene: SetScene) -> None:
    def identity(context: Any) -> str:
        return f"person-{context['chat']['user']['id']}"

    scene = await set_scene(identity=identity)
    with_history(scene, "old")
    await ask(scene, "now", author="u7")
    assert [row.author for row in await scene.rows()] == ["person-u1", "person-u7", None]


async def test_an_identity_that_raises_names_nobody(
    set_scene: SetScene, caplog: pytest.LogCaptureFixture
) -> None:
    def identity(context: Any) -> str:
        raise LookupError(context["chat"]["user"]["id"])

    scene = await set_scene(identity=identity)
    assert await ask(scene, "now") == "now[]"
    assert [row.author for row in await scene.rows()] == [None, None]
    assert "chat.identity.failed" in caplog.text


async def test_an_edit_or_deletion_by_the_channel_itself_does_nothing(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene()
    await ask(scene, "a")
    await scene.tell(
        said("a", "x", author="bot", kind="edit"), said("a", author="bot", kind="delete")
    )
    assert await scene.texts() == ["a", "a[]"]


async def test_an_edit_changes_what_is_kept_and_starts_no_turn(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene()
    await ask(scene, "a")
    assert await scene.tell(said("a", "better", kind="edit"), said("x", kind="edit")) == 200
    await scene.quiet()
    assert len(scene.driver.calls) == 1
    assert await scene.texts() == ["better", "a[]"]
    assert await ask(scene, "b") == "b[better,a[]]"


async def test_a_deletion_changes_what_is_kept_and_starts_no_turn(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene()
    await ask(scene, "a")
    assert await scene.tell(said("a", kind="delete"), said("x", kind="delete")) == 200
    await scene.quiet()
    assert await ask(scene, "b") == "b[a[]]"
