"""Rows: what the server answers, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from psycopg.pq.abc import PGresult

from vitehub_chat.state.providers.postgres.texts import restore
from vitehub_chat.state.sql.driver import Columns, Value

_Decode = Callable[[bytes], Value]


def _text(data: bytes) -> str:
    return restore(data.decode())


def _bytes(data: bytes) -> bytes:
    return bytes.fromhex(data[2:].decode())


_DECODES: Final[Mapping[int, _Decode]] = {
    16: lambda data: data == b"t",  # boolean
    17: _bytes,  # bytea, as the server has written it since version 9
    20: int,  # bigint
    21: int,  # smallint
    23: int,  # integer
    701: float,  # double precision
}


def rows_of(result: PGresult) -> Sequence[Columns]:
    """Return the rows of a result; none for a statement that returns none."""
    decodes = [_DECODES.get(result.ftype(column), _text) for column in range(result.nfields)]
    columns = list(enumerate(decodes))
    get = result.get_value
    return [
        [None if (data := get(row, column)) is None else decode(data) for column, decode in columns]
        for row in range(result.ntuples)
    ]
