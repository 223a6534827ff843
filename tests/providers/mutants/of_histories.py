"""Mutants that go wrong where histories are cut, pruned, cleared, erased or cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from tests.providers.mutants.mutant import Mutant
from vitehub_chat.errors import StateError
from vitehub_chat.model import json_text
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import Row
from vitehub_chat.state import codec
from vitehub_chat.state.memory.entries import MemoryEntries
from vitehub_chat.state.memory.rows import MemoryRows
from vitehub_chat.state.records import RowRecord, SessionRecord
from vitehub_chat.state.steps import (
    admission,
    collecting,
    finishing,
    indexing,
    listing,
    making_room,
    pruning,
    reading,
    recording,
    removing,
    replacing,
    resolving,
    running,
    truncating,
    visible,
)
from vitehub_chat.state.steps.erasing import Person
from vitehub_chat.state.steps.visible import VisibleRows
from vitehub_chat.state.tables import Lanes, Transaction
from vitehub_chat.state.values import RowBatch


def always(answer: object) -> Callable[[Any], Any]:
    """Return what puts the same answer in the place of every one."""

    def replace(_right: Any) -> Any:
        def mutated(*_arguments: object, **_more: object) -> object:
            return answer

        return mutated

    return replace


def parts_units(_unit_at: Any) -> Any:
    def mutated(rows: VisibleRows, seq: int) -> tuple[list[RowRecord], int, int]:
        records = [row for each in rows.slices(seq - 1) for row in each]
        return records, 0, min(1, len(records))

    return mutated


def deletes_instead(_put_aside: Any) -> Any:
    def mutated(tx: Transaction, _home: str, rows: Sequence[RowRecord], *_rest: object) -> None:
        tx.rows.remove(rows)

    return mutated


def keeps_the_generation(take_out: Callable[..., Any]) -> Any:
    def mutated(*arguments: object, **_more: object) -> Any:
        return take_out(*arguments)

    return mutated


def fails_with_the_rule(_prune_gently: Any) -> Any:
    def mutated(tx: Transaction, home: str, request: Any, _retention: object, now: int) -> Any:
        return pruning.prune(tx, ConversationKey.decode(home), request, now)

    return mutated


def tells_no_more_pages(collect: Callable[..., collecting.Collected]) -> Any:
    def mutated(*arguments: Any) -> collecting.Collected:
        return attrs.evolve(collect(*arguments), next=None)

    return mutated


def deletes_what_arrived_here(_delete: Any) -> Any:
    def mutated(self: MemoryEntries, conversation: str, _conversation_key: int, /) -> int:
        return self._delete_all(self._unrecorded.keys(conversation))

    return mutated


def deletes_what_was_recorded(_delete: Any) -> Any:
    def mutated(self: MemoryEntries, _conversation: str, key: int, _lanes: Lanes, /) -> int:
        return self._delete_all(self._recorded.keys(key))

    return mutated


def leaves_names_as_they_are(_fit_id: Any) -> Any:
    def mutated(name: str) -> str:
        return name

    return mutated


def raises_in_lists(_decode_readable: Any) -> Any:
    def mutated(tx: Transaction, records: Sequence[RowRecord], now: int, *_rest: Any) -> Any:
        rows: list[Row] = [visible.decode(tx, record, now) for record in records]
        return RowBatch(rows=tuple(rows))

    return mutated


def forgets_what_it_skips(decode_readable: Callable[..., Any]) -> Any:
    def mutated(*arguments: Any) -> Any:
        return attrs.evolve(decode_readable(*arguments), unreadable=())

    return mutated


def skips_directly(decode: Callable[..., Row]) -> Any:
    def mutated(tx: Transaction, record: RowRecord, now: int, *rest: Any) -> Row:
        try:
            return decode(tx, record, now, *rest)
        except StateError:
            return decode(tx, attrs.evolve(record, body='{"v":1,"parts":[]}', extra=None), now)

    return mutated


def keeps_what_is_old(_drop_old: Any) -> Any:
    def mutated(rows: list[RowRecord], _age: object) -> list[RowRecord]:
        return rows

    return mutated


def moves_the_activity(info_of: Callable[[SessionRecord], Any]) -> Any:
    def mutated(session: SessionRecord) -> Any:
        moved = session if session.title is None else attrs.evolve(session, last_message_at=1)
        return info_of(moved)

    return mutated


def checks_nothing(_check: Any) -> Any:
    def mutated(*_arguments: object, **_more: object) -> None:
        return None

    return mutated


def cuts_nothing_first(_record_replacing: Any) -> Any:
    def mutated(
        tx: Transaction,
        ticket_id: str,
        rows: Any,
        request: Any,
        window: Any,
        _replaces: str,
        writing: recording.Writing,
    ) -> Any:
        return recording.record_turn(tx, ticket_id, rows, request, window, writing)

    return mutated


MUTANTS = (
    Mutant(
        name="appends behind what is to be replaced",
        target=making_room,
        attribute="record_replacing",
        replace=cuts_nothing_first,
        caught_by="making_room.an_edited_message_takes_the_place_of_all_from_it_on",
    ),
    Mutant(
        name="replaces beside a turn",
        target=making_room,
        attribute="check_at_rest",
        replace=always(None),
        caught_by="making_room.nothing_is_replaced_while_a_turn_waits_or_runs",
    ),
    Mutant(
        name="does not look where a message is that is replaced",
        target=admission,
        attribute="check_replaceable",
        replace=always(None),
        caught_by="making_room.what_is_not_there_is_not_replaced",
    ),
    Mutant(
        name="cuts between a call and its result",
        target=truncating,
        attribute="unit_at",
        replace=parts_units,
        caught_by="truncating.a_cut_inside_a_unit_takes_all_of_it",
    ),
    Mutant(
        name="looks for no call before the cut",
        target=removing,
        attribute="find_unbound",
        replace=always(None),
        caught_by="truncating.a_call_far_before_its_result_goes_with_it",
    ),
    Mutant(
        name="cuts without a new generation",
        target=truncating,
        attribute="take_out",
        replace=keeps_the_generation,
        caught_by="truncating.everything_from_a_message_on_goes",
    ),
    Mutant(
        name="forgets that it cut already",
        target=truncating,
        attribute="_answer_of",
        replace=always(None),
        caught_by="truncating.the_same_key_gets_the_same_answer",
    ),
    Mutant(
        name="cuts under a turn",
        target=truncating,
        attribute="check_at_rest",
        replace=checks_nothing,
        caught_by="truncating.nothing_is_cut_while_a_turn_waits_or_runs",
    ),
    Mutant(
        name="keeps the claims of what was cut",
        target=removing,
        attribute="_release_claims",
        replace=checks_nothing,
        caught_by="truncating.messages_that_were_cut_may_be_sent_again",
    ),
    Mutant(
        name="deletes what forever keeps",
        target=removing,
        attribute="put_aside",
        replace=deletes_instead,
        caught_by="truncating.forever_keeps_what_was_cut",
    ),
    Mutant(
        name="replaces an answer that grows",
        target=replacing,
        attribute="is_growing",
        replace=always(answer=False),
        caught_by="removing.an_answer_that_grows_is_left_alone",
    ),
    Mutant(
        name="deletes one row of a unit",
        target=removing,
        attribute="unit_at",
        replace=parts_units,
        caught_by="removing.the_unit_of_a_message_goes_with_it",
    ),
    Mutant(
        name="deletes what it should hide",
        target=pruning,
        attribute="put_aside",
        replace=deletes_instead,
        caught_by="removing.hidden_rows_are_out_of_everything",
    ),
    Mutant(
        name="counts rows that were pruned",
        target=pruning,
        attribute="forget_rows",
        replace=checks_nothing,
        caught_by="removing.pruning_takes_what_the_rule_chooses",
    ),
    Mutant(
        name="fails a turn with the rule of pruning",
        target=finishing,
        attribute="prune_gently",
        replace=fails_with_the_rule,
        caught_by="removing.the_end_of_a_turn_prunes",
    ),
    Mutant(
        name="puts what is too old in the middle",
        target=reading,
        attribute="drop_old",
        replace=keeps_what_is_old,
        caught_by="pages.what_is_too_old_has_nothing_around_it",
    ),
    Mutant(
        name="reads what is too old",
        target=visible,
        attribute="_is_old",
        replace=always(answer=False),
        caught_by="removing.reads_leave_out_what_is_too_old",
    ),
    Mutant(
        name="shows a line and a half of each turn",
        target=indexing,
        attribute="PREVIEW_LENGTH",
        replace=lambda _: 120,
        caught_by="turn_index.one_light_row_per_user_message",
    ),
    Mutant(
        name="takes a waiting turn for none",
        target=running,
        attribute="is_expired",
        replace=always(answer=True),
        caught_by="turn_index.a_turn_is_under_way_while_it_waits_or_runs",
    ),
    Mutant(
        name="sees no turns of other threads",
        target=MemoryEntries,
        attribute="open_of_session",
        replace=always(()),
        caught_by="clearing.a_turn_of_another_thread_hinders_clearing",
    ),
    Mutant(
        name="keeps claims of other threads",
        target=MemoryEntries,
        attribute="delete_conversation",
        replace=deletes_what_arrived_here,
        caught_by="clearing.claims_of_other_threads_go_with_the_session",
    ),
    Mutant(
        name="keeps what waits for a cleared session",
        target=MemoryEntries,
        attribute="delete_session",
        replace=deletes_what_was_recorded,
        caught_by="clearing.clearing_a_session_forgets_what_waits_for_it",
    ),
    Mutant(
        name="counts an answer that grows",
        target=reading,
        attribute="_count_growing",
        replace=always(0),
        caught_by="windows.an_answer_that_grows_takes_nobodys_place",
    ),
    Mutant(
        name="makes names that are no ids",
        target=resolving,
        attribute="fit_id",
        replace=leaves_names_as_they_are,
        caught_by="sessions.a_made_name_is_an_id",
    ),
    Mutant(
        name="moves the activity when it renames",
        target=listing,
        attribute="info_of",
        replace=moves_the_activity,
        caught_by="sessions.renaming_moves_nothing",
    ),
    Mutant(
        name="forgets what a person wrote elsewhere",
        target=MemoryRows,
        attribute="by_author",
        replace=always(()),
        caught_by="looking_after.a_person_is_erased_everywhere",
    ),
    Mutant(
        name="erases people of the same name",
        target=Person,
        attribute="is_here",
        replace=always(answer=True),
        caught_by="looking_after.a_person_is_erased_everywhere",
    ),
    Mutant(
        name="exports the first rows alone",
        target=collecting,
        attribute="collect",
        replace=tells_no_more_pages,
        caught_by="looking_after.what_is_exported_is_what_is_erased",
    ),
    Mutant(
        name="raises for a whole list",
        target=visible,
        attribute="decode_readable",
        replace=raises_in_lists,
        caught_by="damaged.a_row_that_cannot_be_read_is_told_and_left_out",
    ),
    Mutant(
        name="does not tell what it left out",
        target=visible,
        attribute="decode_readable",
        replace=forgets_what_it_skips,
        caught_by="damaged.every_fact_of_a_row_may_be_damaged",
    ),
    Mutant(
        name="reads a damaged row as an empty one",
        target=reading,
        attribute="decode",
        replace=skips_directly,
        caught_by="damaged.a_row_that_cannot_be_read_is_told_and_left_out",
    ),
    Mutant(
        name="stores what is too deep to be read",
        target=json_text,
        attribute="_is_deeper",
        replace=always(answer=False),
        caught_by="damaged.what_could_not_be_read_again_is_refused",
    ),
    Mutant(
        name="stores people that are no text",
        target=recording,
        attribute="check_text",
        replace=checks_nothing,
        caught_by="damaged.people_are_named_by_text",
    ),
    Mutant(
        name="takes any text for an end",
        target=codec,
        attribute="_UNREADABLE",
        replace=lambda _: (),
        caught_by="damaged.an_end_that_cannot_be_read_is_told",
    ),
)
