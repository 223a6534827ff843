"""Values: what is kept under keys, how long, and who may have changed it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.checks.contents import METADATA, TEXTS
from vitehub_chat.testing.checks.expecting import equal, holds, no, refused, yes
from vitehub_chat.testing.checks.keys import NAMES
from vitehub_chat.testing.checks.material import FOREVER, append, new_key, stored_ids
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("values")

SHORT: Final = timedelta(milliseconds=100)


@group
async def check_a_value_is_gone_exactly_in_time(open_state: OpenState, clock: FakeClock) -> None:
    """Return a value until its time is over, and none at that moment."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        await values.set("k", value="v", ttl=SHORT, scope=scope)
        clock.advance(milliseconds=99, microseconds=999)
        equal(await values.get("k", scope=scope), "v", "the value just before")
        clock.advance(microseconds=1)
        equal(await values.get("k", scope=scope), None, "the value at that moment")
        no(await values.delete("k", scope=scope), "was there anything to delete")


@group
async def check_setting_again_sets_the_expiry_anew(open_state: OpenState, clock: FakeClock) -> None:
    """Keep a value for good that was set again without a time, and for the time set last."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        for key in ("for good", "for longer"):
            await values.set(key, value=1, ttl=SHORT, scope=scope)
        await values.set("for good", value=2, scope=scope)
        clock.advance(milliseconds=90)
        await values.set("for longer", value=2, ttl=SHORT, scope=scope)
        clock.advance(milliseconds=90)
        equal(await values.get("for longer", scope=scope), 2, "the value that was set for longer")
        clock.advance(days=36500)
        equal(await values.get("for good", scope=scope), 2, "the value without a time")
        equal(await values.get("for longer", scope=scope), None, "the value whose time is over")


@group
async def check_an_absent_value_is_set_once(open_state: OpenState, clock: FakeClock) -> None:
    """Let one of fifty at once set an absent value, and one again once it has expired."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        for _ in range(2):
            tries = (
                values.set_if_absent("k", value=number, ttl=SHORT, scope=scope)
                for number in range(50)
            )
            won = await asyncio.gather(*tries)
            equal(won.count(True), 1, "how many have set it")
            equal(await values.get("k", scope=scope), won.index(True), "the value")
            clock.advance(milliseconds=100)
        await values.set("null", value=None, scope=scope)
        no(await values.set_if_absent("null", value=1, scope=scope), "is null no value")


@group
async def check_a_value_is_changed_only_from_what_is_expected(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Compare as JSON: names in any order, and true, 1, 1.0 and "1" are different values."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        no(await values.compare_and_set("k", expected=None, value=1, scope=scope), "is none null")
        await values.set("k", value={"a": 1, "b": [True, None]}, scope=scope)
        for other in ({"a": True, "b": [True, None]}, {"a": 1.0, "b": [True, None]}, {"a": 1}):
            changed = await values.compare_and_set("k", expected=other, value=0, scope=scope)
            no(changed, f"is it {other}")
            no(await values.compare_and_delete("k", expected=other, scope=scope), f"is it {other}")
        same = {"b": [True, None], "a": 1}
        yes(await values.compare_and_set("k", expected=same, value=2, scope=scope), "is it equal")
        equal(await values.get("k", scope=scope), 2, "the value")
        yes(await values.compare_and_delete("k", expected=2, scope=scope), "is it equal")
        equal(await values.get("k", scope=scope), None, "the deleted value")


@group
async def check_no_change_of_a_value_is_lost(open_state: OpenState, clock: FakeClock) -> None:
    """Count to twenty together: each raises the value from what it has read."""
    async with open_state(clock) as state:
        scope = new_key()
        await state.values.set("k", value=0, scope=scope)
        await asyncio.gather(*(_raise(state, scope) for _ in range(20)))
        equal(await state.values.get("k", scope=scope), 20, "the count")


@group
async def check_a_list_keeps_its_newest_items(open_state: OpenState, clock: FakeClock) -> None:
    """Keep the newest items in order, as many as asked for, and tell how many there are."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        for item in range(1, 6):
            count = await values.append_to_list("k", items=[item], max_length=3, scope=scope)
            equal(count, min(item, 3), "how many there are")
        equal(await values.get_list("k", scope=scope), [3, 4, 5], "the items")
        equal(await values.append_to_list("k", items=[], scope=scope), 3, "the count")
        await values.append_to_list("k", items=[6, 7, 8, 9], max_length=2, scope=scope)
        equal(await values.get_list("k", scope=scope), [8, 9], "the items of a batch")
        await values.append_to_list("k", items=[10], scope=scope)
        equal(await values.get("k", scope=scope), [8, 9, 10], "the list as a value")


@group
async def check_an_append_sets_the_expiry_of_the_whole_list(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Count the time of a list from its last append; one without a time keeps it for good."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        await values.append_to_list("k", items=["a"], ttl=SHORT, scope=scope)
        clock.advance(milliseconds=90)
        await values.append_to_list("k", items=["b"], ttl=SHORT, scope=scope)
        clock.advance(milliseconds=60)
        equal(await values.get_list("k", scope=scope), ["a", "b"], "the items")
        clock.advance(milliseconds=40)
        equal(await values.get_list("k", scope=scope), [], "the items when its time is over")
        await values.append_to_list("k", items=["c"], ttl=SHORT, scope=scope)
        await values.append_to_list("k", items=["d"], scope=scope)
        clock.advance(days=36500)
        equal(await values.get_list("k", scope=scope), ["c", "d"], "the items that are permanent")


@group
async def check_popping_takes_the_oldest_item(open_state: OpenState, clock: FakeClock) -> None:
    """Take items in order, keep the expiry, and leave no empty list behind."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        await values.append_to_list("k", items=["a", "b", "c"], ttl=SHORT, scope=scope)
        equal(await values.pop_from_list("k", scope=scope), "a", "the first item")
        clock.advance(milliseconds=99)
        equal(await values.pop_from_list("k", scope=scope), "b", "the second item")
        clock.advance(milliseconds=1)
        equal(await values.pop_from_list("k", scope=scope), None, "the item that has expired")
        await values.append_to_list("k", items=["d"], scope=scope)
        equal(await values.pop_from_list("k", scope=scope), "d", "the last item")
        yes(await values.set_if_absent("k", value=1, scope=scope), "is the empty list gone")


@group
async def check_no_item_of_a_list_is_lost_or_doubled(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Append and take items of one list from many tasks."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        appends = (values.append_to_list("k", items=[n], scope=scope) for n in range(20))
        await asyncio.gather(*appends)
        taken = await asyncio.gather(*(values.pop_from_list("k", scope=scope) for _ in range(20)))
        equal(sorted(taken), list(range(20)), "the items that were taken")
        equal(await values.get_list("k", scope=scope), [], "the items that are left")


@group
async def check_a_value_that_is_no_list_is_left_alone(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse to append to a value that is no list, naming its key."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        await values.set("no list", value={"a": 1}, scope=scope)
        calls: tuple[Callable[[], Awaitable[Any]], ...] = (
            partial(values.append_to_list, "no list", items=[1], scope=scope),
            partial(values.get_list, "no list", scope=scope),
            partial(values.pop_from_list, "no list", scope=scope),
        )
        for call in calls:
            error = await refused(InputError, call(), "a list operation on a mapping")
            holds("no list" in str(error), "the error does not name the key")
        equal(await values.get("no list", scope=scope), {"a": 1}, "the value")


@group
async def check_an_unknown_key_has_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Answer for keys that nobody set as if they were empty."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        equal(await values.get("k", scope=scope), None, "the value")
        equal(await values.get_list("k", scope=scope), [], "the items")
        equal(await values.pop_from_list("k", scope=scope), None, "the item")
        no(await values.delete("k", scope=scope), "was anything deleted")
        no(await values.compare_and_delete("k", expected=None, scope=scope), "was anything deleted")


@group
async def check_a_value_comes_back_exactly(open_state: OpenState, clock: FakeClock) -> None:
    """Return every character and number; half of a surrogate pair is U+FFFD."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        large = "0123456789abcde😀" * 65536
        samples: tuple[Json, ...] = (*TEXTS, METADATA, [], {}, 0, False, 1.5, [[None]], large)
        for sample in samples:
            await values.set("k", value=sample, scope=scope)
            found = await values.get("k", scope=scope)
            holds(found == sample and type(found) is type(sample), "a value is another one")
        await values.set("k", value=["a\ud800b"], scope=scope)
        equal(await values.get("k", scope=scope), ["a\ufffdb"], "the text with half of a pair")


@group
async def check_what_is_no_json_is_not_kept(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse values that are not JSON, naming the key, and keep what was there."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        await values.set("the key", value=["there"], scope=scope)
        for bad in (object(), float("nan"), {"a": {1, 2}}, b"bytes"):
            calls: tuple[Callable[[], Awaitable[Any]], ...] = (
                partial(values.set, "the key", value=bad, scope=scope),
                partial(values.set_if_absent, "new", value=bad, scope=scope),
                partial(values.compare_and_set, "new", expected=None, value=bad, scope=scope),
                partial(values.append_to_list, "the key", items=[bad], scope=scope),
            )
            for call in calls:
                error = await refused(InputError, call(), "a value that is not JSON")
                holds("the key" in str(error) or "new" in str(error), "the key is not named")
        equal(await values.get("the key", scope=scope), ["there"], "the value")
        equal(await values.get("new", scope=scope), None, "the new value")


@group
async def check_keys_of_any_name_stay_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Compare keys exactly: no pattern, no folding, no trimming, no prefix."""
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        names = [name for name in NAMES if name]
        for number, name in enumerate(names):
            await values.set(name, value=number, scope=scope)
        found = [await values.get(name, scope=scope) for name in names]
        equal(found, list(range(len(names))), "the values")
        yes(await values.delete("a", scope=scope), "was it there")
        left = [await values.get(name, scope=scope) is not None for name in names]
        equal(left.count(False), 1, "how many are gone")


@group
async def check_scopes_stay_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Keep equal keys of two scopes apart, also of scopes whose parts join alike, and of none."""
    key = new_key()
    tenant = key.tenant or ""
    scopes = [
        None,
        ConversationKey(tenant, None, None, None),
        ConversationKey(tenant, "", None, None),
        ConversationKey(tenant, "a", "b", None),
        ConversationKey(tenant, "a", None, "b"),
        ConversationKey(tenant, "ab", None, None),
        ConversationKey(f"{tenant}a", "b", None, None),
        key,
    ]
    async with open_state(clock) as state:
        name = f"k of {tenant}"
        for number, scope in enumerate(scopes):
            await state.values.set(name, value=number, scope=scope)
        found = [await state.values.get(name, scope=scope) for scope in scopes]
        equal(found, list(range(len(scopes))), "the values")


@group
async def check_wrong_arguments_are_refused(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse keys that are no ids, times that are over at once, and lists without room."""
    wrong: Any = 5
    async with open_state(clock) as state:
        values, scope = state.values, new_key()
        for key in ("", "x" * 513, "a\0b", "a\nb", "a\ud800b", wrong):
            await refused(InputError, values.get(key, scope=scope), "a wrong key")
            await refused(InputError, values.set(key, value=1, scope=scope), "a wrong key")
        for ttl in (timedelta(0), timedelta(milliseconds=-1), timedelta.max, wrong):
            call = values.set("k", value=1, ttl=ttl, scope=scope)
            await refused(InputError, call, f"the time {ttl}")
            call_of_list = values.append_to_list("k", items=[1], ttl=ttl, scope=scope)
            await refused(InputError, call_of_list, f"the time {ttl}")
        for length in (0, -1, True):
            call_of_list = values.append_to_list("k", items=[1], max_length=length, scope=scope)
            await refused(InputError, call_of_list, f"the length {length}")
        equal(await values.get("k", scope=scope), None, "the value")


@group
async def check_clearing_a_conversation_deletes_its_values(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Delete the values whose scope is a cleared conversation, with rows or without, and count."""
    keys = [new_key(), new_key()]
    async with open_state(clock) as state:
        await append(state, keys[0], "m1")
        for key in keys:
            for name in ("a", "b"):
                await state.values.set(name, value=1, scope=key)
            await state.values.set(
                "a", value=1, scope=ConversationKey(key.tenant, None, None, None)
            )
            counts = await state.sessions.clear(key)
            equal(counts["values"], 2, "the count of values")
            equal(await state.values.get("a", scope=key), None, "the value")
            equal(sum((await state.sessions.clear(key)).values()), 0, "the counts of a repetition")
            others = ConversationKey(key.tenant, None, None, None)
            equal(await state.values.get("a", scope=others), 1, "the value of the tenant")


@group.needs("options", "one_store")
async def check_forever_rescues_no_value(open_state: OpenState, clock: FakeClock) -> None:
    """Keep expired rows under `forever` and no expired value beside them, whatever its name."""
    key, hour = new_key(), timedelta(hours=1)
    name = "transcripts:rows:forever"
    options = {"transcripts": {"retention": "1h"}, "cleanup_interval_ms": 2**31 - 1}
    async with open_state(clock, **options) as state:
        await append(state, key, "m1")
        await state.values.set(name, value="cached", ttl=hour, scope=key)
        await state.values.append_to_list("transcripts", items=[1], ttl=hour, scope=key)
        clock.advance(hours=1)
        async with open_state(clock, **FOREVER) as keeper:
            equal(await stored_ids(keeper, key), ["m1"], "the rows")
            equal(await keeper.values.get(name, scope=key), None, "the value")
            equal(await keeper.values.get_list("transcripts", scope=key), [], "the list")
            await keeper.values.set(name, value="again", ttl=hour, scope=key)
            clock.advance(hours=1)
            equal(await keeper.values.get(name, scope=key), None, "the value set under forever")


@group.needs("durable")
async def check_values_are_there_after_opening_again(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Return values and lists with their expiry when the store is opened again."""
    scope = new_key()
    async with open_state(clock) as state:
        await state.values.set("k", value="v", ttl=SHORT, scope=scope)
        await state.values.append_to_list("l", items=[1], scope=scope)
    async with open_state(clock) as state:
        equal(await state.values.get("k", scope=scope), "v", "the value")
        await state.values.append_to_list("l", items=[2], scope=scope)
        equal(await state.values.get_list("l", scope=scope), [1, 2], "the items")
        clock.advance(milliseconds=100)
        equal(await state.values.get("k", scope=scope), None, "the value when its time is over")


@group.needs("one_store")
async def check_who_shares_a_store_shares_its_values(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Let one of two objects set an absent value, and each see what the other one changed."""
    scope = new_key()
    async with open_state(clock) as first, open_state(clock) as second:
        tries = (
            state.values.set_if_absent("k", value=number, scope=scope)
            for number, state in enumerate((first, second) * 5)
        )
        won = await asyncio.gather(*tries)
        equal(won.count(True), 1, "how many have set it")
        for number, (writer, reader) in enumerate(((first, second), (second, first)) * 3):
            await writer.values.set("k", value=number, scope=scope)
            equal(await reader.values.get("k", scope=scope), number, "what the other one reads")
            await writer.values.append_to_list("l", items=[number], scope=scope)
        equal(await first.values.get_list("l", scope=scope), list(range(6)), "the items")


async def _raise(state: AgentState, scope: ConversationKey) -> None:
    is_raised = False
    while not is_raised:
        found = await state.values.get("k", scope=scope)
        is_raised = await state.values.compare_and_set(
            "k", expected=found, value=found + 1, scope=scope
        )
