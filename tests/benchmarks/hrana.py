"""The floor of a remote turn: its SQL alone, in one request of a client that does nothing else."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from tests.benchmarks.scenes import WINDOW
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.sql.named import load_statements

_SEQ_BITS = 32
_BATCH = 500
_CONVERSATION = 1 << 20
"""A number that no conversation of the state has."""

Statement = tuple[str, Mapping[str, Any]]


class HranaFloor:
    """Raw writes and reads of one conversation, in the tables of a state that has filled them."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        """Use the server at a URL."""
        self._http = http
        self._url = f"{url}/v2/pipeline"
        options = StateOptions()
        self._prefix = options.table_prefix
        self._sql = load_statements("sqlite", self._prefix)
        self._row: dict[str, Any] = {}
        self._session: dict[str, Any] = {}
        self._numbers = itertools.count(1)

    async def fill(self, rows: int) -> None:
        """Make a conversation with so many rows, all of them like the first that is stored."""
        await self.go_on()
        insert = f"INSERT INTO {self._prefix}conversations VALUES (:key, 'floor', 0, 0)"  # noqa: S608
        await self.batch((insert, {"key": _CONVERSATION}))
        for start in range(0, rows, _BATCH):
            numbers = range(start + 1, min(start + _BATCH, rows) + 1)
            await self.batch(*(self._insert(number) for number in numbers))

    async def go_on(self) -> None:
        """Find out what rows look like, and which number is the last."""
        (self._row,) = await self._named(f"SELECT * FROM {self._prefix}rows LIMIT 1")  # noqa: S608
        (self._session,) = await self._named(f"SELECT * FROM {self._prefix}sessions LIMIT 1")  # noqa: S608
        self._row |= {"conversation_key": _CONVERSATION, "session_key": _CONVERSATION}
        (last,) = await self._named(
            f"SELECT count(*) AS rows FROM {self._prefix}rows WHERE conversation_key = :key",  # noqa: S608
            {"key": _CONVERSATION},
        )
        self._numbers = itertools.count(last["rows"] + 1)

    async def append(self) -> None:
        """Store two messages at once."""
        first, second = (next(self._numbers) for _ in range(2))
        allocate = {"key": _CONVERSATION, "count": 2}
        await self.batch(
            (self._sql["conversations.allocate"], allocate),
            self._insert(first),
            self._insert(second),
            (self._sql["sessions.update"], self._session),
        )

    async def load(self) -> object:
        """Load the newest rows and decode their bodies."""
        values = {
            "session_key": _CONVERSATION,
            "least_shown": 1,
            "above": _CONVERSATION << _SEQ_BITS,
            "below": (_CONVERSATION + 1) << _SEQ_BITS,
            "limit": WINDOW,
            "now": 0,
        }
        found = await self._named(self._sql["rows.session_descending"], values)
        return [json.loads(row["body"]) for row in found]

    async def batch(self, *statements: Statement) -> None:
        """Run statements in one transaction."""
        texts = [("BEGIN IMMEDIATE", {}), *statements, ("COMMIT", {})]
        steps: list[dict[str, Any]] = [{"stmt": _encode(*each)} for each in texts]
        for number, step in enumerate(steps[1:]):
            step["condition"] = {"type": "ok", "step": number}
        result = await self._post({"type": "batch", "batch": {"steps": steps}})
        errors = [error for error in result["result"]["step_errors"] if error is not None]
        if errors:
            raise RuntimeError(errors[0]["message"])

    async def _named(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        result = await self._post({"type": "execute", "stmt": _encode(sql, values or {})})
        names = [column["name"] for column in result["result"]["cols"]]
        rows = result["result"]["rows"]
        return [dict(zip(names, map(_decode, row), strict=True)) for row in rows]

    def _insert(self, number: int) -> Statement:
        row_id = (_CONVERSATION << _SEQ_BITS) + number
        return self._sql["rows.insert"], {
            **self._row,
            "id": row_id,
            "message_id": f"floor-{number}",
        }

    async def _post(self, part: Mapping[str, Any]) -> Any:
        body = {"baton": None, "requests": [part, {"type": "close"}]}
        async with self._http.post(self._url, json=body) as response:
            answers = (await response.json())["results"]
        return answers[0]["response"]


def _encode(sql: str, values: Mapping[str, Any]) -> dict[str, Any]:
    arguments = [
        {"name": name, "value": _encode_value(value)}
        for name, value in values.items()
        if f":{name}" in sql
    ]
    return {"sql": sql, "named_args": arguments}


def _encode_value(value: object) -> dict[str, Any]:
    if value is None:
        return {"type": "null"}
    if isinstance(value, int):
        return {"type": "integer", "value": str(value)}
    return {"type": "text", "value": value}


def _decode(cell: Mapping[str, Any]) -> Any:
    return int(cell["value"]) if cell["type"] == "integer" else cell.get("value")
