"""Pipelines: requests as the protocol has them.

A request is a pipeline of parts, ending with one that closes its stream. A transaction is a part
with steps: each runs if the one before it did, and what stopped it is rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

READING: Final = b"BEGIN"
WRITING: Final = b"BEGIN IMMEDIATE"
"""What begins a transaction."""

_CLOSE: Final = b'{"type":"close"}'
_PLAIN: Final = b'{"sql":"%b","named_args":[]}'


def encode_body(parts: Iterable[bytes]) -> bytes:
    """Return the body of a request that runs parts on a new stream and closes it."""
    return b'{"baton":null,"requests":[%b]}' % b",".join((*parts, _CLOSE))


def encode_single(statement: bytes, position: int | None = None) -> bytes:
    """Return the part that runs one statement on its own.

    Args:
        statement: The statement, encoded.
        position: How far the log of a replica has to be, or None.
    """
    if position is not None:
        statement = b'{"replication_index":"%d",%b' % (position, statement[1:])
    return b'{"type":"execute","stmt":%b}' % statement


def encode_reads(statements: Sequence[bytes], position: int | None = None) -> bytes:
    """Return the part that runs statements on one view, or just one on its own."""
    if len(statements) == 1:
        return encode_single(statements[0], position)
    steps = _Steps()
    _add_transaction(steps, READING, statements)
    return steps.encode(position)


def encode_cursor(begin: bytes, statements: Sequence[bytes], position: int | None = None) -> bytes:
    """Return the body of a request that answers statements in a transaction row by row."""
    steps = _Steps()
    _add_transaction(steps, begin, statements)
    return b'{"baton":null,"batch":%b}' % steps.encode_batch(position)


def encode_close(baton: str) -> bytes:
    """Return the body of a request that only closes a stream."""
    return b'{"baton":%b,"requests":[%b]}' % (json.dumps(baton).encode(), _CLOSE)


def encode_write(statements: Sequence[bytes]) -> bytes:
    """Return the part that runs statements in a transaction that writes."""
    steps = _Steps()
    _add_transaction(steps, WRITING, statements)
    return steps.encode()


def encode_group(batches: Sequence[Sequence[bytes]]) -> bytes:
    """Return the part that runs batches in one transaction, each with a savepoint of its own.

    A batch that fails is undone alone. What undoes more than that, or prevents it, stops the rest:
    then the transaction is rolled back.
    """
    steps = _Steps()
    previous = _ok(steps.add(WRITING))
    for statements in batches:
        begun = steps.add(b"SAVEPOINT batch", previous)
        done = _add_chain(steps, begun, statements)
        undone = steps.add(b"ROLLBACK TO batch", _all(_ok(begun), _not(_ok(done))))
        previous = _ok(steps.add(b"RELEASE batch", _any(_ok(done), _ok(undone))))
    _add_end(steps, previous)
    return steps.encode()


class _Steps:
    """The steps of a part, by number."""

    def __init__(self) -> None:
        self._steps: list[bytes] = []

    def add(self, sql: bytes, condition: bytes | None = None) -> int:
        """Add a statement without parameters and return its number."""
        return self.add_encoded(_PLAIN % sql, condition)

    def add_encoded(self, statement: bytes, condition: bytes | None = None) -> int:
        """Add a statement and return its number."""
        step = b'{"stmt":%b}' if condition is None else b'{"stmt":%%b,"condition":%b}' % condition
        self._steps.append(step % statement)
        return len(self._steps) - 1

    def encode(self, position: int | None = None) -> bytes:
        """Return the part."""
        return b'{"type":"batch","batch":%b}' % self.encode_batch(position)

    def encode_batch(self, position: int | None) -> bytes:
        """Return what the part runs."""
        wanted = b"" if position is None else b'"replication_index":"%d",' % position
        return b'{%b"steps":[%b]}' % (wanted, b",".join(self._steps))


def _add_transaction(steps: _Steps, begin: bytes, statements: Sequence[bytes]) -> None:
    _add_end(steps, _ok(_add_chain(steps, steps.add(begin), statements)))


def _add_chain(steps: _Steps, begun: int, statements: Sequence[bytes]) -> int:
    """Add statements that run as long as none of them fails, and return the last number."""
    last = begun
    for statement in statements:
        last = steps.add_encoded(statement, _ok(last))
    return last


def _add_end(steps: _Steps, condition: bytes) -> None:
    committed = steps.add(b"COMMIT", condition)
    steps.add(b"ROLLBACK", _all(_ok(0), _not(_ok(committed))))


def _ok(step: int) -> bytes:
    return b'{"type":"ok","step":%d}' % step


def _not(condition: bytes) -> bytes:
    return b'{"type":"not","cond":%b}' % condition


def _all(*conditions: bytes) -> bytes:
    return b'{"type":"and","conds":[%b]}' % b",".join(conditions)


def _any(*conditions: bytes) -> bytes:
    return b'{"type":"or","conds":[%b]}' % b",".join(conditions)
