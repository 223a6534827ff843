"""Properties of search: it finds exactly what a plain look at every text finds."""

from __future__ import annotations

import asyncio
import tempfile
import time
import tracemalloc
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vitehub_chat import ConversationKey, open_agent_state
from vitehub_chat.conversation.conversations import Conversations
from vitehub_chat.model.folding import fold_text, split_clusters, split_query
from vitehub_chat.model.snippets import (
    MARK,
    SNIPPET_LENGTH,
    find_matches,
    make_snippet,
    snippet_pieces,
)
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import row

TEXTS = st.one_of(st.text("aAbBßée\u0301 ", max_size=12), st.text("天气东京ス。 a", max_size=9))
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
QUERIES = st.one_of(st.text("aAbBße\u0301天气ス ", max_size=3), ANY)
MIXED = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from(
        "か\u3099がｶ\uff9e\u1100\u1161\u11a8가각ㄱㅏi\u0131İ\u0307\u0301\u0323eéß天 "
    ),
    max_size=400,
)
LONG = st.one_of(MIXED, st.text("ab é", max_size=900), ANY).map(lambda text: text.replace("…", ""))
LONGEST_WHOLE = SNIPPET_LENGTH - 2 * len(MARK) - 2 * len("…")
"""How long a first match may be to be shown whole wherever it is."""

MARKS = st.lists(st.sampled_from("\u0301\u0323\u0344\u3099\u0345\u05b0"), max_size=300)
STEPS = st.lists(st.tuples(st.integers(0, 3), TEXTS), min_size=1, max_size=8)


@contextmanager
def new_url(scheme: str) -> Iterator[str]:
    if scheme == "memory:":
        yield scheme
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"file:{folder}/state.db"


def plainly(texts: dict[str, str], query: str) -> set[str]:
    """Return the messages that a look at every cluster of characters finds."""
    words = [fold_by_cluster(word) for word in query.split()]
    parts = [part for word in words for part in word.split()]
    found = {name: fold_by_cluster(text) for name, text in texts.items()}
    return {name for name, text in found.items() if parts and all(p in text for p in parts)}


def fold_by_cluster(text: str) -> str:
    return "".join(map(fold_text, split_clusters(text)))


@pytest.mark.parametrize("scheme", ["memory:", "file:"])
@given(steps=STEPS, queries=st.lists(QUERIES, min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_search_finds_what_a_plain_look_finds(
    scheme: str, steps: list[tuple[int, str]], queries: list[str]
) -> None:
    async def search() -> None:
        with new_url(scheme) as url:
            async with open_agent_state(url) as state:
                texts: dict[str, str] = {}
                for number, text in steps:
                    key = ConversationKey(None, "helper", None, f"t{number % 2}")
                    name = f"m{number}"
                    request = SessionRequest(conversation=key)
                    await state.transcripts.append(request, rows=[row(name, text)])
                    texts[name] = text
                for query in queries:
                    page = await Conversations(state, tenant=None, agent="helper").search(query)
                    assert {hit.message_id for hit in page.items} == plainly(texts, query)

    asyncio.run(search())


@given(text=MIXED, begin=st.integers(0, 40), count=st.integers(1, 40))
def test_what_is_in_a_text_is_in_its_folded_text(text: str, begin: int, count: int) -> None:
    clusters = list(split_clusters(text))
    assert "".join(clusters) == text
    assert fold_by_cluster(text) == fold_text(text)
    part = "".join(clusters[begin : begin + count])
    assert fold_text(part) in fold_text(text)
    assert all(word in fold_text(text) for word in split_query(part))


@given(text=MIXED)
def test_texts_that_unicode_calls_equal_are_folded_alike(text: str) -> None:
    forms: list[Any] = ["NFC", "NFD", "NFKC", "NFKD"]
    assert {fold_text(unicodedata.normalize(form, text)) for form in forms} == {fold_text(text)}


@given(marks=MARKS, letter=st.sampled_from("a\u304b\uac00i"))
@example(marks=["\u0301", "\u0323"] * 99, letter="a")
def test_very_many_marks_on_a_letter_are_folded_like_few(marks: list[str], letter: str) -> None:
    text = letter + "".join(marks)
    forms: list[Any] = ["NFC", "NFD", "NFKC", "NFKD"]
    assert {fold_text(unicodedata.normalize(form, text)) for form in forms} == {fold_text(text)}
    assert fold_text(f"x {text} y") == f"x {fold_text(text)} y"


def test_marks_in_any_number_are_folded_in_a_time_that_grows_with_it() -> None:
    begin = time.process_time()
    folded = fold_text("a" + "\u0301\u0323" * 100_000)
    assert folded == "a" + "\u0323" * 100_000 + "\u0301" * 100_000
    # A fifth of a second; with the square of the marks it is most of a minute.
    assert time.process_time() - begin < 10


def test_of_a_very_long_match_no_more_is_looked_at_than_is_shown() -> None:
    word = "b" * 200_000
    words = split_query(word)
    tracemalloc.start()
    try:
        snippet = make_snippet(word, words)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert snippet == f"**{'b' * 295}**…"
    # A place of each character would be twenty times the text.
    assert most < 10 * len(word)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("\uff76\uff9e\uff97\uff7d", "\u30ac\u30e9\u30b9"),
        ("\u304b\u3099\u3059", "\u304c\u3059"),
        (unicodedata.normalize("NFD", "\ud55c\uad6d\uc5b4"), "\ud55c\uad6d\uc5b4"),
        ("\u0130stanbul", "istanbul"),
        ("\u0130stanbul".lower(), "ISTANBUL"),
        ("\u0131l\u0131k", "ILIK"),
        ("e\u0302\u0323", "\u1ec7"),
        ("caf\u00e9", "cafe"),
        ("STRASSE", "stra\u00dfe"),
        ("\uff21\uff22", "ab"),
    ],
)
def test_forms_of_the_same_word_find_each_other(text: str, query: str) -> None:
    (word,) = split_query(query)
    for line in (text, f"x {text} y", "\u3042" * 9000 + text):
        assert word in fold_text(line)
        ((start, end),) = find_matches(line[-99:], [word])
        assert line[-99:][start:end] in text
        assert MARK in make_snippet(line, [word])


@pytest.mark.parametrize(("text", "query"), [("\u304c", "\u304b"), ("\ud55c", "\ud558")])
def test_a_part_of_a_kana_or_a_syllable_is_another_one(text: str, query: str) -> None:
    assert split_query(query)[0] not in fold_text(text)


@given(text=LONG, query=QUERIES | st.text("ab", min_size=200, max_size=400))
@example(text="a" * 900, query="a")
@example(text="a " * 450, query="a")
@example(text="b" * 900, query="b" * 400)
@example(text="x " * 90 + "b" * 270 + " y" * 90, query="b" * 270)
@example(text="x " * 90 + "b" * 294 + " y" * 90, query="b" * 294)
@example(text="x " * 90 + "b" * 295 + " y" * 90, query="b" * 295)
@example(text="x " * 90 + "ab", query="a b")
@example(text="x" * 301, query="a")
@example(text="x" * 301, query="")
def test_a_snippet_is_short_and_says_what_the_text_says(text: str, query: str) -> None:
    words = split_query(query)
    line = " ".join(text.split())
    spans = find_matches(line, words)
    for start, end in spans:
        assert any(word in fold_text(line[start:end]) for word in words)
    pieces = snippet_pieces(text, words)
    assert make_snippet(text, words) == MARK.join(pieces)
    assert len(pieces) % 2 == 1
    begin, end = place_of(line, spans, pieces)
    # As much as fits, each match marked, and the end of the line only with what is before it.
    starts = [start for start, _ in spans]
    fitting = [
        each for each in range(begin, len(line) + 1) if size(line, starts, begin, each) <= 300
    ]
    assert end == max(fitting)
    assert size(line, starts, begin, end) == len(MARK.join(pieces)) <= SNIPPET_LENGTH
    inside = [(start, min(stop, end)) for start, stop in spans if start < end]
    assert list(pieces[1::2]) == [line[start:stop] for start, stop in inside]
    if spans:
        start, stop = spans[0]
        shown = pieces[1]
        assert shown == line[start:stop] or (stop - start > LONGEST_WHOLE and shown)


def place_of(line: str, spans: list[tuple[int, int]], pieces: tuple[str, ...]) -> tuple[int, int]:
    """Return which part of a line a snippet shows, whose first match has to be the line's first."""
    is_begun = bool(spans) and len(pieces[0]) < spans[0][0] + 1 and pieces[0].startswith("…")
    begin = spans[0][0] - len(pieces[0]) + 1 if is_begun else 0
    body = "".join(pieces)[is_begun:]
    end = begin + len(body)
    if line[begin:end] != body:
        end -= 1
        assert body == line[begin:end] + "…"
    return begin, end


def size(line: str, starts: list[int], begin: int, end: int) -> int:
    """Return how long a snippet of a part of a line has to be."""
    marks = sum(start < end for start in starts) * 2 * len(MARK)
    return (begin > 0) + end - begin + marks + (end < len(line))
