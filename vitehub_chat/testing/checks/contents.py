"""Contents: what is stored of a message comes back exactly."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from vitehub_chat.errors import InputError, StateError
from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.messages import Message
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing.checks.expecting import equal, holds
from vitehub_chat.testing.checks.material import append, new_key, row, stored
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("contents")

TEXTS: Final = (
    "",
    "\0",
    "a\0b",
    "\\u0000",
    "\x01\x1f\x7f",
    "é 漢字 שלום 😀 👩‍👩‍👧",
    "\u2028\ufeff\uffff\U0010ffff",
    "'; DROP TABLE rows; --",
    "{}%s:now?1",
    "line\r\nline\n",
)

METADATA: Final[JsonObject] = {
    "empty": {},
    "none": None,
    "flag": True,
    "count": 0,
    "large": 2**63,
    "half": 0.1,
    "negative": -1.5e-300,
    "list": [[], {}, "x", None],
    "é\0": {"deep": [{"deeper": "😀"}]},
}


@group
async def check_text_comes_back_exactly(open_state: OpenState, clock: FakeClock) -> None:
    """Return every character, NUL and the rarest ones too."""
    key = new_key()
    batch = [row(f"m{number}", text) for number, text in enumerate(TEXTS)]
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=batch)
        found = await stored(state, key)
        equal([each.message.text for each in found], list(TEXTS), "the texts")
        window = await state.transcripts.get(key, message_ids=["m1"])
        equal(window[0].message.text, "\0", "the text of one row")


@group
async def check_lone_surrogates_are_replaced(open_state: OpenState, clock: FakeClock) -> None:
    """Store half of a surrogate pair as U+FFFD."""
    key = new_key()
    async with open_state(clock) as state:
        request = SessionRequest(conversation=key)
        await state.transcripts.append(request, rows=[row("m1", "a\ud800b \ud83d\ude00")])
        found = await stored(state, key)
        equal([each.message.text for each in found], ["a\ufffdb 😀"], "the text")


@group
async def check_a_text_of_1_mb_comes_back(open_state: OpenState, clock: FakeClock) -> None:
    """Store a text of a megabyte."""
    key, text = new_key(), "0123456789abcde😀" * 65536
    async with open_state(clock) as state:
        request = SessionRequest(conversation=key)
        await state.transcripts.append(request, rows=[row("m1", text), row("m2")])
        found = await stored(state, key)
        holds([each.message.text for each in found] == [text, "hi"], "the text is another one")


@group
async def check_a_text_of_10_mb_comes_back_or_is_refused(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Store a text of ten megabytes, or refuse it and store nothing."""
    key, text = new_key(), "0123456789" * 2**20
    async with open_state(clock) as state:
        request = SessionRequest(conversation=key)
        expected = [text, "hi"]
        try:
            await state.transcripts.append(request, rows=[row("m1", text)])
        except (StateError, InputError):
            expected = ["hi"]
        await append(state, key, "m2")
        found = await stored(state, key)
        holds([each.message.text for each in found] == expected, "it is stored in part")


@group
async def check_everything_of_a_message_comes_back(open_state: OpenState, clock: FakeClock) -> None:
    """Return parts, metadata, times and what the driver said exactly as they were given."""
    key = new_key()
    parts = (
        {"type": "text", "text": ""},
        {"type": "data-weather", "data": {"b": 1, "a": [1, 2.5, None]}, "id": "d1"},
    )
    message = Message("m1", "assistant", parts, METADATA, datetime(1, 1, 1, tzinfo=UTC))
    given = NewRow(
        message=message,
        status="interrupted",
        author="portal:u1",
        thread_id="t9",
        is_shown=False,
        usage={"input_tokens": 3},
        native={"format": "x", "payload": [{"é": "\0"}]},
    )
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=[given])
        found = (await stored(state, key))[0]
        equal(found.message, message, "the message")
        equal(list(found.message.metadata), list(METADATA), "the order of the metadata")
        expected = (given.status, given.author, given.thread_id, given.is_shown)
        equal((found.status, found.author, found.thread_id, found.is_shown), expected, "the facts")
        equal((found.usage, found.native), (given.usage, given.native), "what the driver said")
        equal(found.recorded_at, clock.now(), "the time it was stored")


@group
async def check_times_keep_their_microseconds(open_state: OpenState, clock: FakeClock) -> None:
    """Keep a time to the microsecond, and none as none."""
    key = new_key()
    at = datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
    async with open_state(clock) as state:
        request = SessionRequest(conversation=key)
        batch = [row("m1", created_at=at), row("m2")]
        await state.transcripts.append(request, rows=batch)
        found = [each.message.created_at for each in await stored(state, key)]
        equal(found, [at, None], "when they were said")
