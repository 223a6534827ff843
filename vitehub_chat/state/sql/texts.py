"""Texts: the statements of a dialect, those for stores that are reached by requests among them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import attrs

from vitehub_chat.errors import ConfigError
from vitehub_chat.state.sql.named import Migration, load_migrations, load_statements

DIALECTS: Final = ("sqlite", "postgres")

_PARTS: Final[Mapping[str, str]] = {
    "select_document": "documents.select_document",
    "live_document": "documents.live",
    "select_entry": "entries.select_entry",
    "select_row": "rows.select_row",
    "select_session": "sessions.select_session",
    "session_by_key": "sessions.get",
    "session_by_id": "sessions.by_id",
    "session_by_base": "sessions.latest",
}
_PLACES: Final[Mapping[str, str]] = {
    "conversation_key": "loads.conversation",
    "session_key": "loads.session_of_rows",
    "above": "loads.above",
    "below": "loads.below",
}
_PLACE: Final = re.compile(rf":({'|'.join(_PLACES)})\b")


@attrs.frozen
class Texts:
    """The statements for the tables of one prefix.

    Attributes:
        statements: All of them by `file.name`.
        by_encoded: The same statements for a conversation that is named by its key instead of its
            number, and for rows of which only their place in it is known.
        migrations: What makes the tables that every store has.
        migrations_for_requests: What makes those that stores by requests have besides.
    """

    statements: Mapping[str, str]
    by_encoded: Mapping[str, str]
    migrations: Sequence[Migration]
    migrations_for_requests: Sequence[Migration]

    def __getitem__(self, name: str) -> str:
        return self.statements[name]


def check_dialect(dialect: str) -> None:
    """Refuse a dialect that there are no statements for.

    Raises:
        ConfigError: There are none.
    """
    if dialect not in DIALECTS:
        raise ConfigError(
            f"has the dialect {dialect!r}, which is not one of: {', '.join(DIALECTS)}",
            path="state.driver",
        )


@lru_cache(maxsize=64)
def load_texts(dialect: str, prefix: str) -> Texts:
    """Return the statements of a dialect for tables of a prefix; reads files the first time."""
    common = load_statements(dialect, prefix)
    parts = {name: common[origin] for name, origin in _PARTS.items()}
    own = load_statements(f"{dialect}/requests", prefix, parts)
    statements = {**common, **own}
    return Texts(
        statements,
        {
            name: _PLACE.sub(lambda match: statements[_PLACES[match[1]]], text)
            for name, text in common.items()
        },
        load_migrations(dialect, prefix),
        load_migrations(f"{dialect}/requests", prefix),
    )
