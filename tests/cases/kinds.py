"""Kinds of cases: which files of a folder can be run, by what, and which not yet."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.cases import (
    flush_cases,
    formatting_cases,
    history_cases,
    prune_cases,
    rolling_cases,
    selection_cases,
    tokens_cases,
)

DATA = Path(__file__).parent / "data"


@attrs.frozen
class Case:
    """One case of a file: its kind, its id, what stands there, and what all cases of it share."""

    kind: str
    id: str
    body: Mapping[str, Any]
    shared: Mapping[str, Any]


async def _run_selection(case: Case, url: str | None) -> None:
    await selection_cases.run(case.body, url)


async def _run_history(case: Case, url: str | None) -> None:
    await history_cases.run(case.body, case.shared["fixtures"], url)


async def _run_formatting(case: Case, _url: str | None) -> None:
    await formatting_cases.run(case.body)


async def _run_prune(case: Case, url: str | None) -> None:
    await prune_cases.run(case.body, url)


async def _run_tokens(case: Case, _url: str | None) -> None:
    tokens_cases.run(case.body)


async def _run_flush(case: Case, url: str | None) -> None:
    await flush_cases.run(case.body, url)


async def _run_rolling(case: Case, url: str | None) -> None:
    await rolling_cases.run(case.body, url)


def _nothing(_body: Mapping[str, Any]) -> Sequence[str]:
    return ()


@attrs.frozen(kw_only=True)
class Kind:
    """What runs the cases of a kind.

    Attributes:
        run: Runs a case against a state URL, None for no state.
        states: Where its cases run: no state, `memory:`, `file:`.
        lacks: Names what a case needs and the package does not have yet.
    """

    run: Callable[[Case, str | None], Awaitable[None]]
    states: tuple[str | None, ...] = (None,)
    lacks: Callable[[Mapping[str, Any]], Sequence[str]] = _nothing


KINDS: Mapping[str, Kind] = {
    "selection": Kind(run=_run_selection, states=(None, "memory:")),
    "history": Kind(
        run=_run_history,
        states=("memory:", "file:"),
        lacks=history_cases.lacking_steps,
    ),
    "flush": Kind(run=_run_flush, states=("memory:", "file:")),
    "formatting": Kind(run=_run_formatting),
    "prune": Kind(run=_run_prune, states=("file:",)),
    "rolling": Kind(run=_run_rolling, states=("memory:", "file:")),
    "tokens": Kind(run=_run_tokens),
}
"""The kinds that can be run; a file says its kind by the letters that its name begins with."""

NOT_YET: frozenset[str] = frozenset()
"""The kinds of features that the package does not have yet."""


@attrs.frozen
class Folder:
    """The cases of a folder: those to run, and what is left out with the reason."""

    cases: tuple[Case, ...]
    left_out: tuple[str, ...]


def read_folder(folder: Path) -> Folder:
    """Read every JSON file of a folder.

    Raises:
        pytest.UsageError: The folder has none, one is of an unknown kind, or none can be run.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        raise pytest.UsageError(f"no *.json in the folder of cases {str(folder)!r}")
    cases: list[Case] = []
    left_out: list[str] = []
    for file in files:
        kind = kind_of(file)
        found = list(_read_cases(file, kind))
        if kind in NOT_YET:
            left_out.append(f"{file.name}: all {len(found)}, the kind {kind!r} cannot be run yet")
            continue
        for case in found:
            lacks = KINDS[kind].lacks(case.body)
            if lacks:
                left_out.append(f"{file.name}: {case.id}, needs {', '.join(lacks)}")
            else:
                cases.append(case)
    if not cases:
        raise pytest.UsageError(f"no case of {str(folder)!r} can be run: {'; '.join(left_out)}")
    return Folder(tuple(cases), tuple(left_out))


def kind_of(file: Path) -> str:
    """Return the kind of a file, by its name.

    Raises:
        pytest.UsageError: There is no such kind.
    """
    found = re.match(r"[a-z]+", file.name)
    kind = "" if found is None else found[0]
    if kind not in KINDS and kind not in NOT_YET:
        known = ", ".join(sorted({*KINDS, *NOT_YET}))
        raise pytest.UsageError(f"{file.name!r} is of no known kind of cases: {known}")
    return kind


def _read_cases(file: Path, kind: str) -> Iterator[Case]:
    content = json.loads(file.read_text(encoding="utf-8"))
    shared = {name: value for name, value in content.items() if name != "cases"}
    for body in content["cases"]:
        yield Case(kind, body["id"], body, shared)
