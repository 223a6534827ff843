"""Properties of search: it finds exactly what a plain look at every text finds."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitehub_chat import ConversationKey, open_agent_state
from vitehub_chat.conversation.conversations import Conversations
from vitehub_chat.model.folding import fold_character, fold_text, split_query
from vitehub_chat.model.snippets import MARK, SNIPPET_LENGTH, find_matches, make_snippet
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import row

TEXTS = st.one_of(st.text("aAbBßée\u0301 ", max_size=12), st.text("天气东京ス。 a", max_size=9))
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
QUERIES = st.one_of(st.text("aAbBße\u0301天气ス ", max_size=3), ANY)
STEPS = st.lists(st.tuples(st.integers(0, 3), TEXTS), min_size=1, max_size=8)


@contextmanager
def new_url(scheme: str) -> Iterator[str]:
    if scheme == "memory:":
        yield scheme
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"file:{folder}/state.db"


def plainly(texts: dict[str, str], query: str) -> set[str]:
    """Return the messages that a look at every character finds."""
    words = ["".join(map(fold_character, word)) for word in query.split()]
    parts = [part for word in words for part in word.split()]
    found = {name: "".join(map(fold_character, text)) for name, text in texts.items()}
    return {name for name, text in found.items() if parts and all(p in text for p in parts)}


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


@given(before=ANY, word=ANY, after=ANY)
def test_what_is_in_a_text_is_in_its_folded_text(before: str, word: str, after: str) -> None:
    assert fold_text(word) in fold_text(before + word + after)
    assert all(part in fold_text(before + word + after) for part in split_query(word))


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=900), query=ANY)
def test_a_snippet_is_short_and_says_what_the_text_says(text: str, query: str) -> None:
    words = split_query(query)
    snippet = make_snippet(text, words)
    line = " ".join(text.split())
    assert len(snippet) <= SNIPPET_LENGTH
    if MARK[0] not in text and "…" not in text:
        assert snippet.replace(MARK, "").strip("…") in line
        assert (MARK in snippet) == bool(find_matches(line, words))
    for start, end in find_matches(line, words):
        assert any(word in fold_text(line[start:end]) for word in words)
