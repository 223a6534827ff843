"""Sessions: which messages of an array belong to the session of the current one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from vitehub_chat.model.clock import to_epoch_ms
from vitehub_chat.model.keys import fit_id
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.model.requests import SessionChoice
from vitehub_chat.model.results import SelectionReason
from vitehub_chat.selection.session_ids import own_id, wanted_id


@attrs.frozen(kw_only=True)
class Array:
    """The messages that a call supplied, and what is known of them.

    Attributes:
        messages: In order, the current one last.
        places: Indices of the messages to look at, without repeats; the last one is the current.
        coalesced: Indices of messages that are run together with the current one.
        new_from: Index of the message that came with `new`, or None.
    """

    messages: Sequence[Message]
    places: Sequence[int]
    coalesced: frozenset[int] = frozenset()
    new_from: int | None = None


@attrs.frozen(kw_only=True)
class SessionCut:
    """The part of an array that is one session.

    Attributes:
        members: Indices of its messages, in order, the current one last.
        cut: Why the others are not in it, by index.
        by_ids: Indices that ids alone put in it, silence aside; None where the call begins it.
        has_gap: Whether silence cut off a beginning.
    """

    members: Sequence[int]
    cut: dict[int, SelectionReason]
    by_ids: Sequence[int] | None = None
    has_gap: bool = False


def find_places(messages: Sequence[Message]) -> Sequence[int]:
    """Return the indices of messages without repeats.

    Messages with one id are one message: its last version, at the place of the first. The current
    message stays last, and earlier ones with its id go.
    """
    ids = [message.id for message in messages]
    if len(set(ids)) == len(ids):
        return range(len(ids))
    place_of: dict[str, int] = {}
    places: list[int] = []
    for index, message_id in enumerate(ids):
        if message_id is None:
            places.append(index)
        elif message_id in place_of:
            places[place_of[message_id]] = index
        else:
            place_of[message_id] = len(places)
            places.append(index)
    current = len(ids) - 1
    if places[-1] != current:
        places.remove(current)
        places.append(current)
    return places


def cut_session(array: Array, policy: SessionPolicy | None, choice: SessionChoice) -> SessionCut:
    """Return the session of the current message, by ids and silence alone.

    A session that a call begins holds the current message alone, or in a run of several messages
    all from the one that came with `new` on. A gap equal to the timeout is no gap.
    """
    if policy is None:
        return SessionCut(members=array.places, cut={})
    if choice.action == "new" or array.new_from is not None:
        begins = array.places[-1] if array.new_from is None else array.new_from
        return _from_place(array, begins)
    members, cut = _partition(array, policy, choice)
    begin = 0
    if policy.strategy != "manual" and policy.idle_timeout is not None:
        begin = _after_newest_gap(array.messages, members, policy.idle_timeout)
        cut.update(dict.fromkeys(members[:begin], "before_session"))
    return SessionCut(members=members[begin:], cut=cut, by_ids=members, has_gap=begin > 0)


def cut_stored_session(
    array: Array,
    cut: SessionCut,
    *,
    first_message_id: str | None,
    started_at: datetime,
    has_beginning: bool,
) -> SessionCut:
    """Return the part of an array that is in a stored session, from what `cut_session` returned.

    That is the partition by ids, then what comes from the session's first message on, found by its
    id, else what is not dated before its time. Without `has_beginning` the partition alone.
    """
    members = cut.by_ids
    if members is None:
        return cut
    begin = 0
    if has_beginning:
        begin = _find_beginning(array.messages, members, first_message_id, started_at)
    reasons = dict(cut.cut)
    cut_by_silence = len(members) - len(cut.members)
    for index in members[begin:cut_by_silence]:
        del reasons[index]
    reasons.update(dict.fromkeys(members[:begin], "before_session"))
    return SessionCut(members=members[begin:], cut=reasons, by_ids=members)


def name_session(
    array: Array, cut: SessionCut, policy: SessionPolicy | None, choice: SessionChoice
) -> str | None:
    """Return the id of the session where nothing is stored.

    It holds only while the caller loads the beginning of the session.
    """
    if policy is None:
        return choice.id
    first = array.messages[cut.members[0]]
    begins = first.id
    if begins is None and first.created_at is not None:
        begins = str(to_epoch_ms(first.created_at))
    suffix = "" if begins is None else f":{begins}"
    if choice.action == "new":
        is_known = choice.id is not None and any(
            own_id(array.messages[index].metadata, policy.metadata_key) == choice.id
            for index in array.places[:-1]
        )
        if choice.id is None:
            return fit_id(f"new{suffix}")
        return fit_id(f"{choice.id}:new{suffix}") if is_known else choice.id
    wanted = wanted_id(choice, array.messages[-1], policy)
    if policy.strategy == "manual" or (wanted is not None and not cut.has_gap):
        return wanted
    return fit_id(f"idle{suffix}" if wanted is None else f"{wanted}:idle{suffix}")


def _from_place(array: Array, begins: int) -> SessionCut:
    at = list(array.places).index(begins)
    earlier = array.places[:at]
    return SessionCut(members=array.places[at:], cut=dict.fromkeys(earlier, "before_session"))


def _partition(
    array: Array, policy: SessionPolicy, choice: SessionChoice
) -> tuple[Sequence[int], dict[int, SelectionReason]]:
    messages, places, coalesced = array.messages, array.places, array.coalesced
    wanted = wanted_id(choice, messages[-1], policy)
    if wanted is None and policy.strategy == "idle-timeout":
        return places, {}
    key = policy.metadata_key
    members: list[int] = []
    cut: dict[int, SelectionReason] = {}
    for index in places:
        if own_id(messages[index].metadata, key) == wanted or index in coalesced:
            members.append(index)
        else:
            cut[index] = "other_session"
    current = places[-1]
    if current in cut:
        del cut[current]
        members.append(current)
    return members, cut


def _after_newest_gap(
    messages: Sequence[Message], members: Sequence[int], timeout: timedelta
) -> int:
    """Return where the session begins, walking back so that old messages cost nothing."""
    later: datetime | None = None
    begin = len(members)
    for position in range(len(members) - 1, -1, -1):
        time = messages[members[position]].created_at
        if time is None:
            continue
        if later is not None and later - time > timeout:
            return begin
        later, begin = time, position
    return 0


def _find_beginning(
    messages: Sequence[Message],
    members: Sequence[int],
    first_message_id: str | None,
    started_at: datetime,
) -> int:
    """Return the position of a stored session's first message; the current one is in any case."""
    last = len(members) - 1
    if first_message_id is not None:
        for position, index in enumerate(members):
            if messages[index].id == first_message_id:
                return position
    return min(_first_not_before(messages, members, started_at), last)


def _first_not_before(messages: Sequence[Message], members: Sequence[int], time: datetime) -> int:
    """Return the position behind the last message that is dated before a time."""
    for position in range(len(members) - 1, -1, -1):
        created_at = messages[members[position]].created_at
        if created_at is not None and created_at < time:
            return position + 1
    return 0
