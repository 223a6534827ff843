"""The client: requests to one server, with its token and the version that it speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from vitehub_chat.state.providers.libsql.address import Address
from vitehub_chat.state.providers.libsql.answers import (
    Answer,
    Rows,
    decode_body,
    decode_cursor,
    replication_index_of,
    rows_of,
    rows_of_group,
)
from vitehub_chat.state.providers.libsql.failures import (
    AttemptError,
    from_status,
    is_about_stream,
    is_long_answer,
)
from vitehub_chat.state.providers.libsql.jobs import Batch
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.providers.libsql.network import post
from vitehub_chat.state.providers.libsql.pipelines import (
    READING,
    WRITING,
    encode_body,
    encode_close,
    encode_cursor,
    encode_group,
    encode_reads,
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
        return decode_body(await self._ask("pipeline", encode_body(parts), seconds), len(parts))

    async def read(self, batch: Batch, position: int | None) -> tuple[list[Rows], int | None]:
        """Run statements that only read, on one view, and return their rows and how far it went.

        A few others at most are in flight.

        Args:
            batch: The statements.
            position: How far the log of a replica has to be, or None.

        Raises:
            AttemptError: There is no answer for them.
        """
        session = await session_for(self._address.origin, self, self.limits)
        async with session.reads:
            [result] = await self.send([encode_reads(batch, position)])
            answer = _answer_of(result)
            if isinstance(answer, AttemptError):
                result = await self._row_by_row(answer, READING, batch, position)
                answer = rows_of(result)
        return answer, replication_index_of(result)

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
        return await self._lengthened(batches, answers, replication_index_of(result))

    async def _write_apart(self, batches: Sequence[Batch]) -> tuple[Sequence[Answer], int | None]:
        """Write batches in parts of their own; one statement alone is a transaction already."""
        if len(batches) == 1 and len(batches[0]) == 1:
            parts = [encode_single(batches[0][0])]
        else:
            parts = [encode_write(batch) for batch in batches]
        results = await self.send(parts)
        answers = [_answer_of(result) for result in results]
        indexes = (replication_index_of(result) for result in results)
        last = max((index for index in indexes if index is not None), default=None)
        return await self._lengthened(batches, answers, last)

    async def _lengthened(
        self, batches: Sequence[Batch], answers: Sequence[Answer], index: int | None
    ) -> tuple[Sequence[Answer], int | None]:
        """Write those again, row by row, of which only the answer was too large."""
        found = list(answers)
        for number, answer in enumerate(answers):
            # One statement alone may have been written, whatever its answer says.
            if isinstance(answer, AttemptError) and len(batches[number]) > 1:
                try:
                    result = await self._row_by_row(answer, WRITING, batches[number])
                except AttemptError as failure:
                    found[number] = failure
                else:
                    found[number], index = _answer_of(result), replication_index_of(result)
        return found, index

    async def _row_by_row(
        self, failure: AttemptError, begin: bytes, batch: Batch, position: int | None = None
    ) -> Any:
        """Return the answer to a transaction whose answer is too large for a pipeline.

        Raises:
            AttemptError: The same failure if it is another one, or the server has version 2.
        """
        if not is_long_answer(failure) or self._version != VERSIONS[0]:
            raise failure
        body = await self._ask("cursor", encode_cursor(begin, batch, position))
        baton, result = decode_cursor(body, len(batch) + 3)
        if baton is not None:
            # One that is not closed ends by itself.
            with suppress(AttemptError):
                await self._ask("pipeline", encode_close(baton))
        return result

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

    async def _ask(self, path: str, body: bytes, seconds: float | None = None) -> bytes:
        """Send a request and return the body of its answer."""
        session = await session_for(self._address.origin, self, self.limits)
        token = await self._tokens.get()
        status, answer = await self._post(session, path, body, token, seconds)
        if status == HTTPStatus.UNAUTHORIZED:
            async with session.renewing:
                token = await self._tokens.renew(token)
            status, answer = await self._post(session, path, body, token, seconds)
        if status != HTTPStatus.OK:
            raise from_status(status, _text(answer))
        return answer

    async def _post(
        self, session: Session, path: str, body: bytes, token: str | None, seconds: float | None
    ) -> tuple[int, bytes]:
        """Send a request to the version that answered before, or the newest one that is there."""
        status, answer = 0, b""
        for version in sorted(VERSIONS, key=lambda each: each != self._version):
            url = f"{self._address.base_url}/{version}/{path}"
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
