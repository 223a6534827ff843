"""Loading: looks made together, in one request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.state.sql.driver import Columns, SqlDriver, Statement
from vitehub_chat.state.sql.known import Known
from vitehub_chat.state.sql.looks.look import Asking, Look
from vitehub_chat.state.sql.numbers import Numbers
from vitehub_chat.state.sql.retrying import Retrying


class Loader:
    """Fetches what steps look at from one database."""

    def __init__(self, driver: SqlDriver, numbers: Numbers, retrying: Retrying) -> None:
        self._driver = driver
        self._numbers = numbers
        self._retrying = retrying

    async def load(self, looks: Iterable[Look], asking: Asking) -> Known:
        """Return what the looks find, all at one moment.

        Raises:
            StateUnavailableError: There was no answer.
        """
        known = Known()
        ranked = sorted(looks, key=lambda look: look.rank)
        asked = [(look, look.statements(asking)) for look in ranked]
        statements = [each for _, those in asked for each in those]
        answers = await self.ask(statements) if statements else ()
        position = 0
        for look, those in asked:
            look.learn(known, answers[position : position + len(those)])
            position += len(those)
        self._numbers.add(known)
        return known

    async def ask(self, statements: Sequence[Statement]) -> Sequence[Sequence[Columns]]:
        """Return the answers to statements that may be made again without harm."""
        failures = 0
        while True:
            try:
                return await self._driver.batch(statements)
            except StateUnavailableError as error:
                failures += 1
                if not error.retryable or failures >= self._retrying.failures:
                    raise
            await self._retrying.after_failure(failures)
