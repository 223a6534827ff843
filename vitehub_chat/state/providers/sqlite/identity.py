"""Identity: whether the file that is open is still the one at its path.

A file that was deleted or renamed goes on working for who has it open, and everything written to
it is lost. SQLite does not notice that while it writes ahead.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import attrs

from vitehub_chat.errors import StateError

_Mark = tuple[int, int]

_SUFFIXES: Final = ("-wal", "-shm")


@attrs.define
class FileIdentity:
    """Which file was opened, and which files SQLite has made beside it.

    Attributes:
        is_gone: Whether anybody has noticed that it is not the file at its path any more.
    """

    _path: str
    _file: _Mark | None
    _beside: tuple[tuple[str, _Mark | None], ...]
    is_gone: bool = attrs.field(default=False, init=False)

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        """Return the identity of the file at a path that a connection has open."""
        beside = tuple((f"{path}{suffix}", _mark_of(f"{path}{suffix}")) for suffix in _SUFFIXES)
        return cls(str(path), _mark_of(str(path)), beside)

    @property
    def is_there(self) -> bool:
        """Whether it is the file at its path."""
        found = _mark_of(self._path)
        return found is not None and found == self._file

    def check(self) -> None:
        """Make sure that it is the file at its path.

        What SQLite keeps beside the path is removed otherwise: it belongs to the file that is
        gone, and would be taken for changes of the one that takes its place.

        Raises:
            StateError: It was deleted or replaced; nothing of what was asked is stored.
        """
        if self.is_there:
            return
        self.is_gone = True
        for path, mark in self._beside:
            if mark is not None and _mark_of(path) == mark:
                Path(path).unlink(missing_ok=True)
        raise StateError(
            "the state file was deleted or replaced while it was open; nothing was written",
            hint="close the state before its file is moved; the next call uses what is there now",
        )


def _mark_of(path: str) -> _Mark | None:
    try:
        found = os.stat(path)  # noqa: PTH116  for every transaction
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
