"""Fit source: what of a prepared call may be condensed or left out, and what may not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property

import attrs

from vitehub_chat.conversation.driving import CallFacts
from vitehub_chat.conversation.sizing import Sizer
from vitehub_chat.model.json_text import jsonable
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import has_visible_text
from vitehub_chat.model.parts import TextPart
from vitehub_chat.model.results import PreparedInvocation
from vitehub_chat.model.rolling import Rolling
from vitehub_chat.model.rows import Row
from vitehub_chat.model.selections import Selection
from vitehub_chat.selection.tokens_usage import find_reported
from vitehub_chat.selection.views import Piece, Reported, View, barred_from
from vitehub_chat.state.values import WindowRows


@attrs.frozen(kw_only=True, slots=False)
class FitSource:
    """The messages of one call, as the window selected and the capabilities prepared them.

    Attributes:
        selected: What the window selected.
        prepared: What the capabilities made of it.
        window: The stored rows that were read; empty where none are.
        recorded: The numbers of the rows that this turn recorded.
        current_id: The id under which the current message is stored, or None.
    """

    selected: PreparedInvocation
    prepared: PreparedInvocation
    window: WindowRows = attrs.field(factory=WindowRows)
    recorded: tuple[int, ...] = ()
    current_id: str | None = None

    @property
    def selection(self) -> Selection:
        """What became of every message."""
        found = self.selected.selection
        return found if isinstance(found, Selection) else Selection((), ())

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where in the selection a message stands, by its id."""
        kept = zip(self.selection.kept(), self.selected.messages, strict=False)
        return {message.id or "": index for index, message in kept}

    def ids_of(self, messages: Sequence[Message]) -> list[str | None]:
        """Return the ids under which messages are stored; a client may have sent none."""
        current = self.current
        return [
            message.id if message is not current else self.current_id or message.id
            for message in messages
        ]

    def may_go(self, message: Message) -> bool:
        """Tell whether the window selected a message, and it is none of the system."""
        place = self.places.get(message.id or "")
        is_selected = place is not None and self.selection.reasons[place] == "window"
        return is_selected and message.role != "system"

    def seq_of(self, message: Message) -> int | None:
        """Return the number of a message that is a stored row, or None."""
        place = self.places.get(message.id or "")
        return None if place is None else self.selection.seq_of(place)

    @property
    def current(self) -> Message:
        """The message that is answered."""
        return self.prepared.messages[-1]


@attrs.frozen(kw_only=True)
class _Sorted:
    """The messages of a call: which may go, and which are sent in any case."""

    before: tuple[Message, ...]
    verbatim: tuple[Piece, ...]
    behind: tuple[Message, ...]
    system_seqs: tuple[int, ...]


def view_of(source: FitSource, facts: CallFacts, sizer: Sizer, *, rolling: Rolling | None) -> View:
    """Return what the call would send, with all its sizes."""
    found = _sort(source, sizer, rolling)
    is_wrapped = sizer.policy.wrap_current and _has_text(source.current)
    correction = Decimal(1)
    if rolling is not None and sizer.counter.unit == "tokens":
        correction = Decimal(str(rolling.correction))
    return View(
        rolling=rolling,
        verbatim=found.verbatim,
        behind=found.behind,
        fixed=_fixed_size(facts, sizer) + sizer.messages(found.before),
        behind_size=sizer.messages(found.behind),
        summary_size=0 if rolling is None else sizer.text(rolling.summary),
        texts=sizer.fixed_texts(wraps=is_wrapped),
        correction=correction,
        system_seqs=found.system_seqs,
        reported=_reported(source, facts, sizer, rolling, found.verbatim),
    )


def basis_of(ids: Sequence[str | None], facts: CallFacts, rolling: Rolling | None) -> str:
    """Return a digest of all that a model is given: a report counts only for the same again.

    It changes with every roll, truncate and prune, and with instructions, tools and model.
    """
    tools = [[tool.name, tool.description, jsonable(tool.parameters)] for tool in facts.tools]
    state = None if rolling is None else [rolling.session_key, rolling.generation, rolling.version]
    told = [facts.model, facts.own_instructions, facts.instructions, tools, state]
    text = json.dumps([told, list(ids)], separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _sort(source: FitSource, sizer: Sizer, rolling: Rolling | None) -> _Sorted:
    anchor = 1 if rolling is None else rolling.anchor
    barred = _barred(source)
    messages = source.prepared.messages
    verbatim: list[tuple[int, Piece]] = []
    system_seqs: list[int] = []
    for index, message in enumerate(messages[:-1]):
        seq = source.seq_of(message)
        if message.role == "system":
            system_seqs.extend([] if seq is None else [seq])
        elif source.may_go(message) and (seq is None or seq >= anchor):
            is_barred = barred_from(barred, seq)
            size = sizer.message(message)
            piece = Piece(message=message, size=size, seq=seq, is_barred=is_barred)
            verbatim.append((index, piece))
    taken = {index for index, _ in verbatim}
    end = max(taken, default=len(messages) - 2) + 1
    return _Sorted(
        before=tuple(m for i, m in enumerate(messages[:end]) if i not in taken),
        verbatim=tuple(piece for _, piece in verbatim),
        behind=tuple(messages[end:]),
        system_seqs=tuple(system_seqs),
    )


def _barred(source: FitSource) -> list[int]:
    """Return the numbers across which nothing is condensed, as they would be lost."""
    rows = (*source.window.shown, *source.window.not_shown)
    growing = [row.seq for row in rows if row.status == "pending"]
    return [*growing, *source.recorded]


def _fixed_size(facts: CallFacts, sizer: Sizer) -> int:
    texts = (facts.own_instructions or "", facts.instructions or "")
    return sum(map(sizer.text, texts)) + sizer.tools(facts.tools)


def _reported(
    source: FitSource,
    facts: CallFacts,
    sizer: Sizer,
    rolling: Rolling | None,
    verbatim: Sequence[Piece],
) -> Reported | None:
    """Return what the newest answer told, if the model would be given the same again."""
    if sizer.counter.unit != "tokens" or facts.model is None:
        return None
    by_seq: Mapping[int | None, Row] = {row.seq: row for row in source.window.shown}
    rows = [by_seq[piece.seq] for piece in verbatim if piece.seq in by_seq]
    found = find_reported(rows, model=facts.model)
    if found is None:
        return None
    row = rows[found.index]
    ids = [message.id for message in source.prepared.messages]
    if row.usage is None or row.message.id not in ids:
        return None
    before = source.ids_of(source.prepared.messages[: ids.index(row.message.id)])
    if row.usage.get("basis") != basis_of(before, facts, rolling):
        return None
    index = next(at for at, piece in enumerate(verbatim) if piece.seq == row.seq)
    return Reported(tokens=found.tokens, index=index)


def _has_text(message: Message) -> bool:
    return message.role == "user" and any(
        isinstance(part, TextPart) and has_visible_text(part.text) for part in message.parts
    )
