"""The Agent State contract for whoever looks after a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, Protocol

import attrs

from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.policies import Retention
from vitehub_chat.state.context import NO_CONTEXT, StateContext


@attrs.frozen(kw_only=True)
class StoreInfo:
    """What is known of a store.

    Attributes:
        schema_version: The version of its schema, 0 for a store without one.
        newest_version: The version that this release makes.
        features: The optional powers it has.
        retention: How long its rows live.
        counts: How many records each table has, what has expired included.
        size: How many bytes it takes, or None if that is not known.
    """

    schema_version: int
    newest_version: int
    features: frozenset[str]
    retention: Retention
    counts: Mapping[str, int]
    size: int | None


@attrs.frozen(kw_only=True)
class Migration:
    """What a migration did, or would do.

    Attributes:
        from_version: The version that the store has or had, 0 for one without tables.
        to_version: The version it has afterwards.
        rows: How many rows got the expiry that the retention gives them.
        texts: How many older messages were made ready for search.
    """

    from_version: int
    to_version: int
    rows: int = 0
    texts: int = 0


@attrs.frozen(kw_only=True)
class Integrity:
    """What is wrong with a store.

    Attributes:
        rows: How many rows were looked at.
        problems: How many records have a fault, by its name; without faults empty.
    """

    rows: int
    problems: Mapping[str, int]


@attrs.frozen(kw_only=True)
class PersonRecord:
    """One record of a person.

    Attributes:
        kind: What it is.
        fields: What it says, as JSON.
    """

    kind: Literal["session", "message", "summary", "document", "entry"]
    fields: JsonObject

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"type": self.kind, **self.fields}


class Admin(Protocol):
    """Looking after a store."""

    async def info(self, *, ctx: StateContext = NO_CONTEXT) -> StoreInfo:
        """Return version, counts and size."""

    async def migrate(
        self,
        *,
        dry_run: bool = False,
        apply_retention: bool = False,
        ctx: StateContext = NO_CONTEXT,
    ) -> Migration:
        """Bring the schema up to date, and give older rows the expiry of the retention.

        An open store is up to date, so only the retention is left to apply: rows without an expiry
        get that of a duration, counted from when they were recorded; without a duration none has
        one afterwards. The texts of older messages are made ready for search, if there is any,
        which the first search would do otherwise. With `dry_run` nothing is written, and the store
        may be closed: it tells which version it has, and which it would have.
        """

    async def cleanup(self, *, ctx: StateContext = NO_CONTEXT) -> Mapping[str, int]:
        """Remove all that has expired at once, in short transactions; return counts by table."""

    async def drop(self) -> None:
        """Delete the tables of this store and everything in them, then close it."""

    async def erase_person(
        self, tenant: str | None, user_key: str, /, *, ctx: StateContext = NO_CONTEXT
    ) -> Mapping[str, int]:
        """Erase what a person said and owns; return a receipt of counts by store.

        Their sessions with everything in them, and what they wrote in the sessions of others, also
        with the retention `forever`, also what is hidden or superseded. In short transactions: what
        is interrupted is finished by calling it again. Repeated: zeros.

        A message that waits to be run is found by the `user_key` in its payload.

        Raises:
            InputError: The key is no text, or empty; nothing was erased.
            ChatBusyError: Turns of the person wait or run (`turn_in_progress`); the rest is erased.
        """

    def export_person(
        self, tenant: str | None, user_key: str, /, *, ctx: StateContext = NO_CONTEXT
    ) -> AsyncIterator[PersonRecord]:
        """Yield everything that `erase_person` would erase."""

    async def check_integrity(self, *, ctx: StateContext = NO_CONTEXT) -> Integrity:
        """Look for records that cannot be read, and for those that belong to nothing."""
