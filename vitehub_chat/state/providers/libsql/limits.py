"""Limits: how long things may take, how many may run at once, and how large they may be."""

from __future__ import annotations

from typing import Final

import attrs

from vitehub_chat.state.sql.driver import Capabilities


@attrs.frozen(kw_only=True)
class Limits:
    """Limits of one driver; durations in seconds.

    Attributes:
        connect: How long a connection may take.
        request: How long a request may take, from connecting to the last byte of the answer.
        retry: How long after the first attempt another one is made at most.
        reads: How many reads are in flight at most, on each event loop.
        writes: How many batches share one request at most.
        write_bytes: How many bytes they have together at most; a larger one goes alone.
    """

    connect: float = 5.0
    request: float = 10.0
    retry: float = 5.0
    reads: int = 8
    writes: int = 64
    write_bytes: int = 256 * 1024


CAPABILITIES: Final = Capabilities(
    dialect="sqlite",
    is_durable=True,
    is_shared=True,
    has_server_clock=True,
    max_value_bytes=4_990_000,
)
"""What a libSQL server is: its rows have less than five million bytes."""

CAPABILITIES_OF_SOCKETS: Final = attrs.evolve(CAPABILITIES, max_value_bytes=1_900_000)
"""The same over a WebSocket: `libsql_client` takes answers of four million bytes, in JSON."""
