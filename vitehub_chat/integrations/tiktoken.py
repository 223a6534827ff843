"""tiktoken: the estimator that counts with a real vocabulary. Needs the extra `tiktoken`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from vitehub_chat.errors import MissingDependencyError
from vitehub_chat.model.estimates import SizeUnit
from vitehub_chat.selection.tokens import SEGMENTS

DEFAULT_ENCODING = "o200k_base"
_WINDOW = 20_000
"""How many characters are encoded at once: the time grows faster than the length."""


@attrs.frozen(kw_only=True)
class TiktokenEstimator:
    """Counts with one vocabulary of tiktoken, as its models do.

    A text that ends in the middle of a word may count a token more than with the rest of the word.

    Attributes:
        name: `tiktoken`.
        version: The release of tiktoken and the vocabulary.
        unit: `tokens`.
        message_overhead: What each message costs on top of its content.
    """

    version: str
    name: str = "tiktoken"
    unit: SizeUnit = "tokens"
    message_overhead: int = 4
    _encode: Callable[[str], list[int]] = attrs.field(alias="encode")

    def count_text(self, text: str, /) -> int:
        """Return how many tokens a text has; names of special tokens are plain text."""
        windows = (text[begin : begin + _WINDOW] for begin in range(0, len(text), _WINDOW))
        return sum(len(self._encode(window)) for window in windows)


def create(*, encoding: str = DEFAULT_ENCODING) -> Any:
    """Return the estimator, or `segments` if the files of the vocabulary cannot be had.

    tiktoken downloads them once into `TIKTOKEN_CACHE_DIR`; reading them takes about a second.

    Raises:
        MissingDependencyError: The extra `tiktoken` is not installed.
    """
    try:
        import tiktoken  # noqa: PLC0415 - the extra may be missing
    except ModuleNotFoundError as error:
        raise MissingDependencyError("the estimator 'tiktoken'", extra="tiktoken") from error
    try:
        found = tiktoken.get_encoding(encoding)
    except Exception:  # noqa: BLE001 - whatever its download raises; the caller tells what counts
        return SEGMENTS
    return TiktokenEstimator(
        version=f"{tiktoken.__version__}/{encoding}", encode=found.encode_ordinary
    )
