"""The files of the console: few, small, and nothing in them that the policy would refuse."""

from __future__ import annotations

import re

from vitehub_chat.web.console.files import FOLDER, MEDIA_TYPES, PAGES, load_files

TEXTS = {name: content.decode() for name, content in load_files().items()}


def test_the_list_of_files_is_what_is_there() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(MEDIA_TYPES)


def test_all_files_together_are_below_40_kb() -> None:
    assert sum(map(len, load_files().values())) < 40_000


def test_no_script_or_style_is_inline() -> None:
    for page in PAGES.values():
        assert re.findall(r"<script(?![^>]*\bsrc=)", TEXTS[page]) == []
        assert re.findall(r"<style|\bstyle=|\bon\w+=|javascript:", TEXTS[page]) == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    urls = [url for text in TEXTS.values() for url in re.findall(r"(?:\w+:)?//\w[^\"'\s]*", text)]
    assert urls == ["http://www.w3.org/2000/svg"]  # the name of a vocabulary


def test_no_script_writes_markup_or_runs_text() -> None:
    sinks = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"
    )
    assert [name for name, content in TEXTS.items() if re.search(sinks, content)] == []


def test_every_file_that_a_page_or_script_names_is_there() -> None:
    for name, content in TEXTS.items():
        found = re.findall(r"(?:src|href)=\"([^\"#]+)\"|from \"\./([^\"]+)\"", content)
        named = {one or other for one, other in found}
        assert (name, named - set(MEDIA_TYPES)) == (name, set())
