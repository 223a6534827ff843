"""Named SQL: statements read from `.sql` files.

A file is a sequence of ``-- name: NAME`` lines, each followed by one comment line and a text. A
text may use the texts before it as ``{NAME}``, and ``{prefix}``; values are parameters, always.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from types import MappingProxyType

import attrs

from vitehub_chat.errors import ConfigError

_HEAD = re.compile(r"^-- name: (\w+)\n-- .+\n", re.MULTILINE)
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;])+", re.DOTALL)
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

NO_PARTS: Mapping[str, str] = MappingProxyType({})


@attrs.frozen
class Migration:
    """What leads from one version of a schema to the next.

    Attributes:
        version: The version it leads to, from 1.
        checksum: What tells two texts of one version apart.
        statements: Its statements, in order.
    """

    version: int
    checksum: str
    statements: tuple[str, ...]


def load_statements(
    dialect: str, prefix: str, parts_of: Mapping[str, str] = NO_PARTS
) -> Mapping[str, str]:
    """Return the statements of a dialect by `file.name`, for tables of a prefix.

    `parts_of` are texts of other dialects that these may use, by name.
    """
    _check_prefix(prefix)
    found: dict[str, str] = {}
    for name, text in _files(dialect):
        parts = _HEAD.split(text)[1:]
        known = {"prefix": prefix, **parts_of}
        for key, template in zip(parts[::2], parts[1::2], strict=True):
            known[key] = template.strip().format_map(known)
            found[f"{name}.{key}"] = known[key]
    return found


def load_migrations(dialect: str, prefix: str) -> Sequence[Migration]:
    """Return the migrations of a dialect in order, for tables of a prefix."""
    _check_prefix(prefix)
    migrations = []
    for name, text in _files(f"{dialect}/migrations"):
        checksum = hashlib.sha256(text.encode()).hexdigest()
        body = re.sub(r"^--.*\n", "", text, flags=re.MULTILINE).format(prefix=prefix)
        statements = tuple(each.strip() for each in _STATEMENT.findall(body) if each.strip())
        migrations.append(Migration(int(name), checksum, statements))
    return migrations


def _files(folder: str) -> Sequence[tuple[str, str]]:
    """Return name and text of the `.sql` files of a folder, by name."""
    parent = resources.files(__package__ or "").joinpath(folder)
    return sorted(
        (entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
        for entry in parent.iterdir()
        if entry.name.endswith(".sql")
    )


def _check_prefix(prefix: str) -> None:
    if not _PREFIX.fullmatch(prefix):
        raise ConfigError(
            "must be letters, digits and '_', not beginning with a digit",
            path="state.table_prefix",
            code="invalid_option",
        )
