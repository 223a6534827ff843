"""Window: which messages of a session the next call sees."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise

import attrs

from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import is_only_tool_results
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.model.results import SelectionReason


@attrs.frozen(kw_only=True)
class WindowCut:
    """What is kept, in order, and why each message of the session is kept or cut."""

    kept: Sequence[int]
    reasons: dict[int, SelectionReason]


def skipped_count(current: Message) -> int:
    """Return how many messages before the current one a queue has skipped, as it says; else 0."""
    chat = current.metadata.get("chat") if current.metadata else None
    if not isinstance(chat, Mapping):
        return 0
    for key in ("skippedCount", "skipped_count"):
        value = chat.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
    return 0


def select_window(
    messages: Sequence[Message],
    members: Sequence[int],
    window: HistoryWindow | None,
    retained: Collection[int] = (),
) -> WindowCut:
    """Choose among the members of a session, the last of which is the current message.

    The age cut comes before the count cut; retained messages join what they leave. Leading tool
    results whose call was cut go, without a replacement. The current message is always kept.
    """
    current = members[-1]
    reasons: dict[int, SelectionReason] = {}
    begin = _begin(messages, members, window, reasons)
    kept = [index for index in members[:begin] if index in retained] if retained else []
    reasons.update(dict.fromkeys(kept, "retained"))
    kept.extend(members[begin:])
    reasons.update(dict.fromkeys(members[begin:-1], "window"))
    reasons[current] = "current"
    return _without_orphans(messages, kept, reasons)


def cut_by_age(messages: Sequence[Message], members: Sequence[int], max_age: timedelta) -> int:
    """Return where the messages begin that are at most `max_age` older than the last one.

    The first message that is strictly older cuts itself and all before it, even younger ones. A
    message without a time is the oldest one kept. A last message without a time stands alone.
    """
    last = len(members) - 1
    latest = messages[members[last]].created_at
    if latest is None:
        return last
    for position in range(last - 1, -1, -1):
        time = messages[members[position]].created_at
        if time is None:
            return position
        if latest - time > max_age:
            return position + 1
    return 0


def _begin(
    messages: Sequence[Message],
    members: Sequence[int],
    window: HistoryWindow | None,
    reasons: dict[int, SelectionReason],
) -> int:
    if window is None:
        reasons.update(dict.fromkeys(members[:-1], "no_window"))
        return len(members) - 1
    by_age = 0 if window.max_age is None else cut_by_age(messages, members, window.max_age)
    by_count = max(len(members) - window.max_messages, by_age)
    reasons.update(dict.fromkeys(members[:by_age], "too_old"))
    reasons.update(dict.fromkeys(members[by_age:by_count], "over_count"))
    return by_count


def _without_orphans(
    messages: Sequence[Message], kept: list[int], reasons: dict[int, SelectionReason]
) -> WindowCut:
    first = 0
    for index, _ in pairwise(kept):
        if not is_only_tool_results(messages[index]):
            break
        reasons[index] = "orphan_tool_result"
        first += 1
    return WindowCut(kept=kept[first:], reasons=reasons)
