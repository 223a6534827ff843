"""The reference of estimators: how far each is off, measured.

    pip install bpe-openai
    python tests/examples/tokens_page.py

counts the samples with two real vocabularies and writes `docs/reference/tokens.md` anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.examples.token_samples import SAMPLES
from vitehub_chat.selection.tokens import CHARS4, SEGMENTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tokens.md"

VOCABULARIES = ("o200k_base", "cl100k_base")
Real = Mapping[str, tuple[int, ...]]
"""How many tokens each sample has, by vocabulary."""

HEAD = """# Estimating tokens

What a call costs has to be known before it is made. An estimator counts texts, messages and tools;
it is chosen with `context.estimator` and `transcripts.prune.estimator`.

| name | counts | default of |
| --- | --- | --- |
| `chars4` | four characters as a token | `transcripts.prune` |
| `segments` | runs of similar characters, without a vocabulary | `context` |
| `runes` | characters | |
| `tiktoken` | with the vocabulary `o200k_base`; needs the extra `tiktoken` | |

A callable that takes a text and gives an integer is an estimator, and so is an object with `name`,
`version`, `unit` (`"tokens"` or `"runes"`) and `count_text`; other distributions offer more in the
entry-point group `vitehub_chat.token_estimators`. Sizes of messages are counted once per process
and kept by name, version and a digest of the content.

`tiktoken` downloads its vocabulary once. Where that cannot be had, `segments` counts in its place,
and the event `chat.tokens.fallback` says so.

With `context`, an answer for which the model reported its usage is counted as what it reported, and
only what came after it is estimated. A report counts only while the model would be given the same
again: a roll, a truncate, a prune, and another model, other instructions or tools make it void.

## How far they are off

Measured by `tests/examples/tokens_page.py` on the texts of `tests/examples/token_samples.py`. Above
0 % an estimator is careful; below it a call may be larger than it seems.

"""

TAIL = """
`chars4` undercounts text without spaces, JSON and base64: with it, leave more of the window free,
or let the model's refusal correct it (`context` multiplies its estimates then).
"""


def count_really() -> Real:
    """Return how many tokens the samples have; needs the distribution `bpe-openai`."""
    library: Any = import_module("bpe_openai")
    encodings = [library.get_encoding(name) for name in VOCABULARIES]
    return {
        kind: tuple(len(encoding.encode(text)) for encoding in encodings)
        for kind, text in SAMPLES.items()
    }


def read_counts(page: str) -> Real:
    """Return the counts that a page has."""
    found = re.findall(r"^\| (\w+) \| \d+ \| (\d+) \| (\d+) \|", page, re.MULTILINE)
    return {kind: tuple(map(int, counts)) for kind, *counts in found}


def build_page(real: Real) -> str:
    """Return the page for some real counts."""
    return HEAD + "\n".join(_table(real)) + "\n" + TAIL


def _table(real: Real) -> Iterator[str]:
    names = " | ".join(f"`{name}`" for name in VOCABULARIES)
    yield f"| text | characters | {names} | `segments` | error | `chars4` | error |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for kind, text in SAMPLES.items():
        counts = real[kind]
        cells: list[str] = [kind, str(len(text)), *map(str, counts)]
        for counter in (SEGMENTS, CHARS4):
            estimate = counter.count_text(text)
            cells += [str(estimate), ", ".join(_error(estimate, count) for count in counts)]
        yield f"| {' | '.join(cells)} |"


def _error(estimate: int, real: int) -> str:
    return f"{round(100 * (estimate - real) / real):+d} %"


if __name__ == "__main__":
    PAGE.write_text(build_page(count_really()), encoding="utf-8")
