"""The client: requests to one server, with its token and the version that it speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from vitehub_chat.state.providers.libsql.address import Address
from vitehub_chat.state.providers.libsql.answers import (
    Answer,
    decode_body,
    replication_index_of,
    rows_of,
    rows_of_group,
)
from vitehub_chat.state.providers.libsql.failures import AttemptError, from_status, is_about_stream
from vitehub_chat.state.providers.libsql.jobs import Batch
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.providers.libsql.network import post
from vitehub_chat.state.providers.libsql.pipelines import (
    encode_body,
    encode_group,
    encode_single,
    encode_write,
)
from vitehub_chat.state.providers.libsql.sessions import Session, leave, session_for
from vitehub_chat.state.providers.libsql.statements import encode_statement
from vitehub_chat.state.providers.libsql.tokens import TokenSource

VERSIONS: Final = ("v3", "v2")

_MISSING: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
_SELECT_ONE: Final = encode_single(encode_statement("SELECT 1", {}))
_WRITE_NOTHING: Final = encode_write([])


class HranaClient:
    """Sends requests to one server, for one driver."""

    def __init__(self, address: Address, tokens: TokenSource, limits: Limits) -> None:
        """Make a client; nothing is sent yet."""
        self._address = address
        self._tokens = tokens
        self.limits = limits
        self._version: str | None = None

    async def send(self, parts: Sequence[bytes], *, seconds: float | None = None) -> list[Any]:
        """Send parts as one request and return what the answer says about each.

        Args:
            parts: Encoded parts.
            seconds: How long it may take, None is the limit.

        Raises:
            AttemptError: There is no answer for them.
            ConfigError: The source of the token gives none.
        """
        session = await session_for(self._address.origin, self, self.limits)
        body = encode_body(parts)
        token = await self._tokens.get()
        status, answer = await self._post(session, body, token, seconds)
        if status == HTTPStatus.UNAUTHORIZED:
            async with session.renewing:
                token = await self._tokens.renew(token)
            status, answer = await self._post(session, body, token, seconds)
        if status != HTTPStatus.OK:
            raise from_status(status, _text(answer))
        return decode_body(answer, len(parts))

    async def read(self, part: bytes) -> Any:
        """Send one part that only reads, with a few others at most in flight."""
        session = await session_for(self._address.origin, self, self.limits)
        async with session.reads:
            return (await self.send([part]))[0]

    async def write(self, batches: Sequence[Batch], /) -> tuple[Sequence[Answer], int | None]:
        """Write batches in one request, and return their answers and how far the log is then.

        A batch that fails does not touch the others.

        Raises:
            AttemptError: There is no answer for them.
        """
        if len(batches) == 1:
            return await self._write_apart(batches)
        [result] = await self.send([encode_group(batches)])
        try:
            answers = rows_of_group(result, [len(batch) for batch in batches])
        except AttemptError as failure:
            if failure.repeat != "never":
                raise
            # One of them is unfit for the server, which refused them all.
            return await self._write_apart(batches)
        return answers, replication_index_of(result)

    async def _write_apart(self, batches: Sequence[Batch]) -> tuple[Sequence[Answer], int | None]:
        """Write batches in parts of their own; one statement alone is a transaction already."""
        if len(batches) == 1 and len(batches[0]) == 1:
            parts = [encode_single(batches[0][0])]
        else:
            parts = [encode_write(batch) for batch in batches]
        results = await self.send(parts)
        indexes = (replication_index_of(result) for result in results)
        last = max((index for index in indexes if index is not None), default=None)
        return [_answer_of(result) for result in results], last

    async def answers_reads(self) -> bool:
        """Tell whether the server answers, in a part of the time that a request may take."""
        try:
            await self.send([_SELECT_ONE], seconds=self.limits.request / 4)
        except AttemptError:
            return False
        return True

    async def probe_writes(self) -> None:
        """Begin to write, and write nothing.

        Raises:
            AttemptError: The server did not let it.
        """
        [result] = await self.send([_WRITE_NOTHING], seconds=self.limits.request / 2)
        rows_of(result)

    async def aclose(self) -> None:
        """Give the connections up; no-op if there are none."""
        await leave(self._address.origin, self)

    async def _post(
        self, session: Session, body: bytes, token: str | None, seconds: float | None
    ) -> tuple[int, bytes]:
        """Send a request to the version that answered before, or the newest one that is there."""
        status, answer = 0, b""
        for version in sorted(VERSIONS, key=lambda each: each != self._version):
            url = f"{self._address.base_url}/{version}/pipeline"
            status, answer = await post(
                session, url, body, token=token, limits=self.limits, seconds=seconds
            )
            if status == HTTPStatus.OK:
                self._version = version
            if status not in _MISSING or is_about_stream(_text(answer)):
                break
        return status, answer


def _answer_of(result: Mapping[str, Any]) -> Answer:
    try:
        return rows_of(result)
    except AttemptError as failure:
        return failure


def _text(answer: bytes) -> str:
    return answer.decode(errors="replace")
