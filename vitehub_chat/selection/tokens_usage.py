"""Usage: sizes that lean on what a model reported for an earlier answer."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.model.rows import Row
from vitehub_chat.selection.tokens_counter import RUNES_PER_TOKEN, TokenCounter


@attrs.frozen(kw_only=True)
class Reported:
    """What an answer told about the size of the conversation.

    Attributes:
        index: Where the answer stands among the rows.
        tokens: How much everything up to it and itself took.
    """

    index: int
    tokens: int


def find_reported(
    rows: Sequence[Row], *, model: str | None, void_through: int = 0
) -> Reported | None:
    """Return what the newest answer of a model reported, or None if that counts for nothing.

    Args:
        rows: In order of `seq`.
        model: The model that is asked next; reports of another one do not count.
        void_through: Reports up to this `seq` are void: since then the conversation was rolled,
            cut or pruned, or its instructions or tools changed.
    """
    for index in range(len(rows) - 1, -1, -1):
        if rows[index].seq <= void_through:
            return None
        tokens = _reported_tokens(rows[index], model)
        if tokens:
            return Reported(index=index, tokens=tokens)
    return None


def estimate_rows(
    rows: Sequence[Row],
    counter: TokenCounter,
    *,
    model: str | None,
    void_through: int = 0,
    fixed: int = 0,
    overhead: int | None = None,
    runes_per_token: float = RUNES_PER_TOKEN,
) -> int:
    """Return the size of rows, from the newest report where there is one.

    What came after the report is estimated. Without one everything is, and `fixed` (instructions,
    tools, whatever is sent beside the rows) is added. Reports are tokens: in runes none counts.
    """
    reported = None
    if counter.unit == "tokens":
        reported = find_reported(rows, model=model, void_through=void_through)
    later = rows if reported is None else rows[reported.index + 1 :]
    return (fixed if reported is None else reported.tokens) + sum(
        counter.count_message(row.message, overhead=overhead, runes_per_token=runes_per_token)
        for row in later
    )


def _reported_tokens(row: Row, model: str | None) -> int | None:
    """Return input and output together, or None if the row tells not both, or of another model."""
    usage = row.usage
    if usage is None or row.message.role != "assistant" or row.status != "complete":
        return None
    if usage.get("model") != model:
        return None
    told = [usage.get("input_tokens"), usage.get("output_tokens")]
    known = [tokens for tokens in told if isinstance(tokens, int) and tokens >= 0]
    return sum(known) if len(known) == len(told) else None
