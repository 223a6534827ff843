"""Notes as files: once per id, whole, in the folder alone."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tests.memory.notes import Section, ranges, sections_in, sections_of, texts
from vitehub_chat.conversation.memory.folder import LOCK, NoteFolder
from vitehub_chat.errors import ConfigError, StateUnavailableError
from vitehub_chat.formatting.memory_entries import digest_of
from vitehub_chat.formatting.memory_sections import section_of
from vitehub_chat.model.memory_policy import MemoryEntry

DAY = date(2026, 5, 4)
NOTE = "2026-05-04.md"
WAIT_S = 20.0


def id_of(number: int) -> str:
    return f"{number:032x}"


def section(number: int, said: str = "something", minute: int = 0) -> str:
    return section_of(
        "Context compaction archive",
        texts(said, "an answer"),
        flush_id=id_of(number),
        from_seq=2 * number - 1,
        to_seq=2 * number,
        now=datetime(2026, 5, 4, 12, minute, tzinfo=UTC),
    )


def append(folder: NoteFolder, number: int, minute: int = 0, wait_s: float = WAIT_S) -> None:
    folder.append(section(number, minute=minute), DAY, id_of(number), wait_s)


def entry(text: str, *, digest: str | None = None, source: int = 1) -> MemoryEntry:
    return MemoryEntry(
        digest=digest or digest_of(text),
        kind="fact",
        text=text,
        created_at=datetime(2026, 5, 4, tzinfo=UTC),
        session_id="../../s",
        from_seq=1,
        to_seq=2,
        source=id_of(source),
    )


@pytest.fixture
def folder(tmp_path: Path) -> NoteFolder:
    return NoteFolder(tmp_path / "deep" / "notes")


def test_sections_are_appended_in_order(folder: NoteFolder) -> None:
    for number in (1, 2, 3):
        append(folder, number)
    text = (folder.root / NOTE).read_text(encoding="utf-8")
    assert text == section(1) + section(2) + section(3)
    assert ranges(sections_of(text)) == [(1, 2), (3, 4), (5, 6)]


def test_an_id_that_is_there_is_not_written_again(folder: NoteFolder) -> None:
    append(folder, 1)
    append(folder, 2)
    before = (folder.root / NOTE).read_bytes()
    append(folder, 1, minute=5)
    assert (folder.root / NOTE).read_bytes() == before


@pytest.mark.parametrize("cut", range(1, len(section(2).encode()), 7))
def test_a_section_that_was_torn_is_written_anew(folder: NoteFolder, cut: int) -> None:
    append(folder, 1)
    heading = section(2).encode().index(b", messages")
    with (folder.root / NOTE).open("ab") as file:
        file.write(section(2).encode()[: max(cut, heading)])
    append(folder, 2, minute=5)
    text = (folder.root / NOTE).read_text(encoding="utf-8")
    assert text == section(1) + section(2, minute=5)


def test_what_people_wrote_in_a_note_stays(folder: NoteFolder) -> None:
    folder.root.mkdir(parents=True)
    (folder.root / NOTE).write_text("# My day\nwithout end", encoding="utf-8")
    append(folder, 1)
    assert (folder.root / NOTE).read_text(encoding="utf-8") == (
        "# My day\nwithout end\n\n" + section(1)
    )


def test_many_threads_write_every_id_once(folder: NoteFolder) -> None:
    def write() -> None:
        for number in range(1, 9):
            append(folder, number)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sections_in(folder.root)
    assert sorted(each.flush_id for each in found) == [id_of(number) for number in range(1, 9)]


def test_a_folder_that_stays_locked_is_given_up(folder: NoteFolder) -> None:
    with folder._locked(WAIT_S), pytest.raises(StateUnavailableError):
        append(folder, 1, wait_s=0)
    append(folder, 1, wait_s=0)
    assert ranges(sections_in(folder.root)) == [(1, 2)]


def test_files_are_for_the_user_alone(folder: NoteFolder) -> None:
    append(folder, 1)
    folder.add(entry("Lives in Oslo"), WAIT_S)
    files = [path for path in folder.root.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    folders = [folder.root, folder.root / "entries"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_a_disk_that_is_full_leaves_nothing_of_a_section(
    folder: NoteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder, 1)
    before = (folder.root / NOTE).read_bytes()
    write, calls = os.write, []

    def write_some(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(descriptor, bytes(data)[: len(data) // 2])

    monkeypatch.setattr(os, "write", write_some)
    with pytest.raises(OSError, match="No space"):
        append(folder, 2)
    monkeypatch.undo()
    assert (folder.root / NOTE).read_bytes() == before


@pytest.mark.parametrize("name", [NOTE, LOCK, "entries"])
def test_a_link_that_leads_out_of_the_folder_is_refused(
    folder: NoteFolder, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside if name == "entries" else outside / "file.md"
    folder.root.mkdir(parents=True)
    (folder.root / name).symlink_to(target)
    act: Callable[[], object] = (
        (lambda: folder.add(entry("Lives in Oslo"), WAIT_S))
        if name == "entries"
        else (lambda: append(folder, 1))
    )
    with pytest.raises(ConfigError) as caught:
        act()
    assert caught.value.path == "memory.root"
    assert list(outside.iterdir()) == []


def test_a_link_inside_the_folder_is_followed(folder: NoteFolder) -> None:
    folder.root.mkdir(parents=True)
    (folder.root / NOTE).symlink_to(folder.root / "real.md")
    append(folder, 1)
    assert (folder.root / "real.md").read_text(encoding="utf-8") == section(1)


def test_the_folder_itself_may_be_a_link(folder: NoteFolder, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    folder.root.parent.mkdir()
    folder.root.symlink_to(tmp_path / "real")
    append(folder, 1)
    assert (tmp_path / "real" / NOTE).read_text(encoding="utf-8") == section(1)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_section_is_removed_by_its_id(folder: NoteFolder, number: int) -> None:
    for each in (1, 2, 3):
        append(folder, each)
    assert folder.remove(id_of(number), DAY, WAIT_S)
    assert not folder.remove(id_of(number), DAY, WAIT_S)
    left = [each for each in (1, 2, 3) if each != number]
    text = (folder.root / NOTE).read_text(encoding="utf-8")
    assert text == "".join(section(each) for each in left)


def test_a_note_without_sections_is_deleted(folder: NoteFolder) -> None:
    assert not folder.remove(id_of(1), DAY, WAIT_S)
    assert not folder.root.exists()
    append(folder, 1)
    assert folder.remove(id_of(1), DAY, WAIT_S)
    assert [path.name for path in folder.root.iterdir()] == [LOCK]


def test_an_entry_of_equal_content_is_there_once(folder: NoteFolder) -> None:
    assert folder.add(entry("Lives in Oslo."), WAIT_S)
    assert not folder.add(entry("lives in  oslo"), WAIT_S)
    assert folder.add(entry("Lives in Bergen"), WAIT_S)
    names = sorted(path.name for path in (folder.root / "entries").iterdir())
    digests = [digest_of("lives in oslo"), digest_of("lives in bergen")]
    assert names == sorted(f"fact-{digest[:8]}.md" for digest in digests)


def test_entries_whose_short_digests_are_equal_are_both_kept(folder: NoteFolder) -> None:
    first, second = "a" * 8 + "1" * 56, "a" * 8 + "2" * 56
    assert folder.add(entry("one", digest=first), WAIT_S)
    assert folder.add(entry("two", digest=second), WAIT_S)
    assert not folder.add(entry("one", digest=first), WAIT_S)
    assert not folder.add(entry("two", digest=second), WAIT_S)
    names = sorted(path.name for path in (folder.root / "entries").iterdir())
    assert names == ["fact-22222222.md", "fact-aaaaaaaa.md"]


def test_entries_go_with_the_section_that_they_come_from(folder: NoteFolder) -> None:
    append(folder, 1)
    folder.add(entry("one", source=1), WAIT_S)
    folder.add(entry(f'two\nsource: "{id_of(1)}"', source=2), WAIT_S)
    assert folder.remove(id_of(1), DAY, WAIT_S)
    left = [path.read_text(encoding="utf-8") for path in (folder.root / "entries").iterdir()]
    assert ["two" in text for text in left] == [True]


def test_sections_know_their_messages(folder: NoteFolder) -> None:
    append(folder, 2)
    assert sections_in(folder.root) == [Section(id_of(2), 3, 4)]
