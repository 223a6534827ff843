"""Folder: notes and entries as files, one process at a time; everything here blocks."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Final

import attrs

from vitehub_chat.errors import ConfigError, StateUnavailableError
from vitehub_chat.formatting.memory_entries import entry_text
from vitehub_chat.formatting.memory_sections import mark_of
from vitehub_chat.model.memory_policy import MemoryEntry

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

ENTRIES: Final = "entries"
LOCK: Final = ".vitehub-memory.lock"

_POLL_S = 0.01
_TORN = re.compile(rb"(?:\A|(?<=\n))## (?:Context compaction archive|Turn) [^\n]*\n?(?:<[^\n]*)?\Z")
"""A section that ends before the line behind its id."""
_NEXT = re.compile(rb"^## ", re.MULTILINE)
_ID = re.compile(r'^id: "([0-9a-f]+)"$', re.MULTILINE)


@attrs.frozen
class NoteFolder:
    """The notes under a folder: `YYYY-MM-DD.md`, and `entries/`.

    Names are made of dates and digests alone. A link that leads out of the folder is refused.

    Attributes:
        root: The folder; it is created with the first note, for the user alone.
    """

    root: Path

    def append(self, section: str, day: date, flush_id: str, wait_s: float) -> None:
        """Append a section to the note of a day, unless its id is there; then it is on the disk.

        One of which only the beginning is there, as after a loss of power, is written anew.

        Raises:
            StateUnavailableError: The folder is locked by others for longer than `wait_s`.
            ConfigError: The note leads out of the folder.
            OSError: It cannot be written; nothing is left of it.
        """
        with self._locked(wait_s):
            path = self._inside(f"{day.isoformat()}.md")
            is_new = not path.exists()
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
            with os.fdopen(descriptor, "r+b", buffering=0) as file:
                kept = _kept(file.read(), section.encode(), flush_id)
                if kept is not None:
                    _write_behind(file.fileno(), kept, section.encode())
                os.fsync(file.fileno())
            if is_new:
                _sync_folder(path.parent)

    def remove(self, flush_id: str, day: date, wait_s: float) -> bool:
        """Remove a section and the entries that came from it; tell whether it was there.

        A note of which nothing else is left is deleted.
        """
        if not self.root.exists():
            return False
        with self._locked(wait_s):
            self._remove_entries(flush_id)
            path = self._inside(f"{day.isoformat()}.md")
            content = path.read_bytes() if path.exists() else b""
            found = _section_at(content, flush_id)
            if found is None:
                return False
            rest = content[: found.start] + content[found.stop :]
            if rest.strip():
                _replace(path, rest)
            else:
                path.unlink()
            _sync_folder(path.parent)
            return True

    def add(self, entry: MemoryEntry, wait_s: float) -> bool:
        """Add an entry as a file unless one of the same digest is there; overwrite none."""
        with self._locked(wait_s):
            folder = self._inside(ENTRIES)
            folder.mkdir(mode=0o700, exist_ok=True)
            for start in range(0, len(entry.digest), 8):
                short = entry.digest[start : start + 8]
                ids = [_id_of(path) for path in folder.glob(f"*-{short}.md")]
                if entry.digest[:32] in ids:
                    return False
                if not ids:
                    path = self._inside(ENTRIES, f"{entry.kind}-{short}.md")
                    _replace(path, entry_text(entry).encode())
                    _sync_folder(folder)
                    return True
            return False

    def _remove_entries(self, flush_id: str) -> None:
        folder = self._inside(ENTRIES)
        for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
            head = path.read_text(encoding="utf-8").partition("\n---\n")[0]
            if f'\nsource: "{flush_id}"' in head:
                path.unlink()

    def _inside(self, *names: str) -> Path:
        """Return the real path of a file of the folder.

        Raises:
            ConfigError: A link leads out of the folder.
        """
        root = self.root.resolve()
        path = root.joinpath(*names).resolve()
        if not path.is_relative_to(root):
            raise ConfigError("has a link that leads out of it", path="memory.root")
        return path

    @contextmanager
    def _locked(self, wait_s: float) -> Iterator[None]:
        """Hold the folder against all other processes and threads; the end of one frees it."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._inside(LOCK), os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        try:
            give_up_at = time.monotonic() + wait_s
            while not _try_lock(descriptor):
                if time.monotonic() >= give_up_at:
                    raise StateUnavailableError("the folder of the notes is locked")
                time.sleep(_POLL_S)
            yield
        finally:
            os.close(descriptor)


_FLAGS: Final = (
    getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _kept(content: bytes, section: bytes, flush_id: str) -> int | None:
    """Return how much of a note stays before a section is written; None if it is there."""
    found = _section_at(content, flush_id)
    if found is None:
        torn = _TORN.search(content)
        return len(content) if torn is None else torn.start()
    mark = mark_of(flush_id).encode() + b"\n"
    there = content[content.index(mark, found.start) :]
    wanted = section[section.index(mark) :]
    is_torn = len(there) < len(wanted) and wanted.startswith(there)
    return found.start if is_torn else None


def _section_at(content: bytes, flush_id: str) -> slice[int, int, None] | None:
    """Return where a section is: from its heading up to the next one."""
    at = content.find(b"\n" + mark_of(flush_id).encode() + b"\n")
    if at < 0:
        return None
    following = _NEXT.search(content, at + 1)
    start = content.rfind(b"\n", 0, at) + 1
    return slice(start, len(content) if following is None else following.start())


def _write_behind(descriptor: int, kept: int, section: bytes) -> None:
    os.ftruncate(descriptor, kept)
    gap = b""
    if kept:
        os.lseek(descriptor, max(kept - 2, 0), os.SEEK_SET)
        end = os.read(descriptor, 2)
        gap = b"" if end == b"\n\n" else b"\n" if end.endswith(b"\n") else b"\n\n"
    os.lseek(descriptor, kept, os.SEEK_SET)
    left = memoryview(gap + section)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        os.ftruncate(descriptor, kept)
        raise


def _replace(path: Path, content: bytes) -> None:
    """Write a whole file in place of another one, or of none."""
    other = path.with_name(f".{path.name}.new")
    descriptor = os.open(other, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    other.replace(path)


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _id_of(path: Path) -> str | None:
    found = _ID.search(path.read_text(encoding="utf-8"))
    return None if found is None else found[1]
