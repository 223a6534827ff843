"""The rules that hold whatever happened to the processes of a soak, read from what is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import attrs

from tests.faults.homes import Home
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState

ANSWERED = {"complete", "coalesced"}


@attrs.frozen
class Stored:
    """A stored message; an answer has the text of its question."""

    message_id: str
    role: str
    status: str
    text: str
    session_id: str | None


@attrs.frozen
class Accepted:
    """An acceptance of a message, by its place in the order of arrival."""

    position: int
    ticket_id: str
    message_id: str
    run_ticket_id: str | None
    is_ended: bool


@attrs.frozen
class Thread:
    """What is stored of a thread, rows by number and acceptances by arrival.

    Acceptances are only those that were recorded.
    """

    rows: Sequence[Stored]
    accepted: Sequence[Accepted]
    turns: Mapping[str, str]

    @property
    def questions(self) -> list[Stored]:
        """The messages that were sent."""
        return [row for row in self.rows if row.role == "user"]

    @property
    def answers(self) -> list[Stored]:
        """The answers that came to their end."""
        return [row for row in self.rows if row.role == "assistant" and row.status == "complete"]

    def arrival(self, message_id: str) -> int:
        """Return the place of the acceptance under which a message was recorded first."""
        return min(each.position for each in self.accepted if each.message_id == message_id)


async def read_thread(home: Home, state: AgentState, name: str) -> Thread:
    """Read all that is stored of a thread."""
    key = ConversationKey(None, "station", None, name)
    rows = [
        Stored(
            row.message.id or "",
            row.message.role,
            row.status,
            row.message.text.removeprefix("re "),
            row.session_id,
        )
        async for batch in state.transcripts.export(key)
        for row in batch.rows
    ]
    found = home.ask(
        "SELECT position, ticket_id, claim_id, run_ticket_id, state FROM $entries"
        " WHERE session_key IS NOT NULL ORDER BY position"
    )
    accepted = [
        Accepted(int(position), ticket, claim, run, state == "ended")
        for position, ticket, claim, run, state in found
        if claim.split()[0] == name
    ]
    turns = {str(row): str(turn) for row, turn in home.ask("SELECT message_id, turn_id FROM $rows")}
    return Thread(rows, accepted, turns)


def check_each_is_answered_once(
    thread: Thread, sent: set[str], answered: Mapping[str, str]
) -> None:
    """Check that every message is stored once, and answered once in its own thread.

    `answered` names the message whose answer each of them got.
    """
    assert Counter(row.text for row in thread.questions) == Counter(sent)
    answers = Counter(row.text for row in thread.answers)
    assert answers == Counter(answers.keys())
    assert answers.keys() <= sent
    assert {answered[text] for text in sent} == answers.keys()


def check_sessions(thread: Thread) -> None:
    """Check that every message and every answer is in the session that was wanted."""
    got = [(row.text, row.session_id) for row in thread.rows]
    assert got == [(text, session_of(text)) for text, _ in got]


def check_order(thread: Thread) -> None:
    """Check that what shares a lock was answered by arrival, and each session recorded so.

    A run has the place of the oldest of its messages.
    """
    ended = [each for each in thread.accepted if each.is_ended]
    leads = {each.message_id: each.ticket_id for each in ended if _leads(each)}
    places: dict[str | None, int] = {}
    for each in ended:
        places.setdefault(each.run_ticket_id, each.position)
    answers = [places[leads[row.text]] for row in thread.answers]
    assert answers == sorted(answers)
    for session_id in {row.session_id for row in thread.questions}:
        ours = [row.message_id for row in thread.questions if row.session_id == session_id]
        assert ours == sorted(ours, key=thread.arrival)


def check_one_writer(thread: Thread) -> None:
    """Check that between the first and the last write of a turn no other turn wrote.

    Left out are messages that were recorded again after their run had died: they stay in the place
    of the dead run.
    """
    times = Counter(each.message_id for each in thread.accepted)
    rows = [row for row in thread.rows if times[row.message_id] < 2]
    turns = [turn for turn, _ in groupby(thread.turns[row.message_id] for row in rows)]
    assert repeated(turns) == []


def session_of(text: str) -> str:
    """Return the session that a message wants."""
    return " ".join(text.split()[:2])


def repeated(names: Iterable[str]) -> list[str]:
    """Return what comes more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def _leads(accepted: Accepted) -> bool:
    return accepted.run_ticket_id == accepted.ticket_id
