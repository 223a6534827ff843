"""Mutants that find too little, too much, or what belongs to somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from tests.providers.mutants.mutant import Mutant
from vitehub_chat.state.memory.seeking import MemorySeeker
from vitehub_chat.state.records import SessionRecord
from vitehub_chat.state.seeking import Candidate, TextQuery
from vitehub_chat.state.steps.listing import ListRequest
from vitehub_chat.state.stores import searching
from vitehub_chat.state.tables import Transaction


def folds_nothing(_fold_text: Any) -> Any:
    return lambda text: text


def looks_for_one_word(split_query: Any) -> Any:
    def mutated(query: str) -> tuple[str, ...]:
        words: tuple[str, ...] = split_query(query)
        return words[:1]

    return mutated


def forgets_the_owner(listing: Any) -> Any:
    def mutated(
        tx: Transaction, listed: ListRequest, after: tuple[int, int] | None
    ) -> Sequence[SessionRecord]:
        found: Sequence[SessionRecord] = listing(tx, attrs.evolve(listed, user_key=None), after)
        return found

    return mutated


def finds_what_is_over(find: Any) -> Any:
    async def mutated(seeker: MemorySeeker, query: TextQuery) -> Sequence[Candidate]:
        found: Sequence[Candidate] = await find(seeker, attrs.evolve(query, now=0))
        return found

    return mutated


MUTANTS = (
    Mutant(
        name="searches for words in one case only",
        target=searching,
        attribute="fold_text",
        replace=folds_nothing,
        caught_by="search.a_word_is_found_in_any_script",
    ),
    Mutant(
        name="looks for the first word only",
        target=searching,
        attribute="split_query",
        replace=looks_for_one_word,
        caught_by="search.no_character_of_a_query_is_syntax",
    ),
    Mutant(
        name="searches the sessions of every owner",
        target=searching,
        attribute="_list",
        replace=forgets_the_owner,
        caught_by="search.search_is_kept_to_its_tenant_agent_and_owner",
    ),
    Mutant(
        name="finds what has expired",
        target=MemorySeeker,
        attribute="find",
        replace=finds_what_is_over,
        caught_by="search.expired_messages_are_not_found",
    ),
)
