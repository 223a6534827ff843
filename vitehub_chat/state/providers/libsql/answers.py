"""Answers: what the server says about the parts of a request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from vitehub_chat.state.providers.libsql.failures import AttemptError, from_code, unavailable
from vitehub_chat.state.providers.libsql.values import Row, decode_row

Rows = list[Row]
Answer = list[Rows] | AttemptError
"""The rows of each statement of a batch, or why it was not written."""

_UNSPECIFIC: Final = ("SQLITE_UNKNOWN", "SQLITE_ERROR")
_MALFORMED: Final = (ValueError, KeyError, TypeError, IndexError, AttributeError)


def decode_body(body: bytes, count: int) -> list[Any]:
    """Return what an answer says about each of `count` parts.

    Raises:
        AttemptError: It is no answer of this protocol.
    """
    try:
        results = json.loads(body)["results"][:count]
        if len(results) == count:
            return list(results)
    except _MALFORMED as error:
        raise _unreadable(error) from None
    raise _unreadable(None)


def decode_cursor(body: bytes, count: int) -> tuple[str | None, dict[str, Any]]:
    """Return the stream that an answer row by row left open, and the same as a part of an answer.

    Args:
        body: The answer.
        count: How many steps were asked for; those that did not run have no entry.

    Raises:
        AttemptError: It is no answer of this protocol, or says that there is none.
    """
    try:
        head, *entries = map(json.loads, body.splitlines())
        result = _collect(entries, count)
        return head["baton"], {"type": "ok", "response": {"type": "batch", "result": result}}
    except _MALFORMED as error:
        raise _unreadable(error) from None


def _collect(entries: Iterable[Mapping[str, Any]], count: int) -> dict[str, Any]:
    answers: list[dict[str, Any] | None] = [None] * count
    errors: list[Any] = [None] * count
    rows: list[Any] = []
    index = None
    for entry in entries:
        kind = entry["type"]
        if kind == "row":
            rows.append(entry["row"])
        elif kind == "step_begin":
            rows = []
            answers[entry["step"]] = {"rows": rows}
        elif kind == "step_error":
            answers[entry["step"]], errors[entry["step"]] = None, entry["error"]
        elif kind == "error":
            raise _failure(entry["error"])
        elif kind == "replication_index":
            index = entry["replication_index"]
    return {"step_results": answers, "step_errors": errors, "replication_index": index}


def rows_of(result: Mapping[str, Any]) -> list[Rows]:
    """Return the rows of each statement of a part that is one statement or one transaction.

    Raises:
        AttemptError: A statement failed; nothing of the part was written.
    """
    try:
        response = _response(result)
        if response["type"] == "execute":
            return [_rows(response["result"])]
        steps = _Steps(response["result"])
        steps.check(0, len(steps) - 1)
        return [_rows(steps.answer(each)) for each in range(1, len(steps) - 2)]
    except _MALFORMED as error:
        raise _unreadable(error) from None


def rows_of_group(result: Mapping[str, Any], sizes: Sequence[int]) -> list[Answer]:
    """Return the answer for each batch of a group, given how many statements each has.

    Raises:
        AttemptError: Nothing of the group was written.
    """
    try:
        steps = _Steps(_response(result)["result"])
        steps.check(0, 1)
        steps.check_end()
        # Before each batch is a savepoint, behind it are two ways to leave it.
        firsts = accumulate(sizes[:-1], lambda first, size: first + size + 3, initial=2)
        return [
            _rows_of_batch(steps, first, size) for first, size in zip(firsts, sizes, strict=True)
        ]
    except _MALFORMED as error:
        raise _unreadable(error) from None


def replication_index_of(result: Mapping[str, Any]) -> int | None:
    """Return how far the log of the database was after a part, where the server says it."""
    try:
        return int(result["response"]["result"]["replication_index"])
    except (ValueError, KeyError, TypeError):
        return None


class _Steps:
    """What the steps of a part returned or raised."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self._answers: Sequence[Any] = result["step_results"]
        self._errors: Sequence[Any] = result["step_errors"]

    def __len__(self) -> int:
        return len(self._answers)

    def answer(self, step: int) -> Mapping[str, Any]:
        """Return what a step returned."""
        found: Mapping[str, Any] = self._answers[step]
        return found

    def check(self, first: int, end: int) -> None:
        """Raise the first error of steps, or that one of them did not run."""
        for step in range(first, end):
            error = self._errors[step]
            if error is not None:
                raise _not_begun(error) if step == 0 else _failure(error)
        if any(self._answers[step] is None for step in range(first, end)):
            raise _unreadable(None)

    def check_end(self) -> None:
        """Raise why nothing was committed: the error of that step, or what kept it from running."""
        errors = [error for error in self._errors[:-1] if error is not None]
        if self._answers[-2] is None and errors:
            raise _failure(errors[-1])
        self.check(len(self) - 2, len(self) - 1)


def _rows_of_batch(steps: _Steps, first: int, size: int) -> Answer:
    try:
        steps.check(first, first + size)
    except AttemptError as failure:
        return failure
    return [_rows(steps.answer(step)) for step in range(first, first + size)]


def _response(result: Mapping[str, Any]) -> Mapping[str, Any]:
    if result["type"] != "ok":
        raise _failure(result["error"])
    response: Mapping[str, Any] = result["response"]
    return response


def _rows(answer: Mapping[str, Any]) -> Rows:
    return [decode_row(cells) for cells in answer["rows"]]


def _failure(error: Mapping[str, Any]) -> AttemptError:
    return from_code(str(error.get("code") or ""), str(error.get("message") or ""))


def _not_begun(error: Mapping[str, Any]) -> AttemptError:
    failure = _failure(error)
    if error.get("code") in _UNSPECIFIC:
        # The part before this one has left a transaction behind, which ends with the stream.
        return unavailable("no transaction could begin", "always", failure.error.__cause__)
    return failure


def _unreadable(cause: BaseException | None) -> AttemptError:
    return unavailable("the answer of the server cannot be read", "idempotent", cause)
