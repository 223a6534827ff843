"""Overflow: the words in which providers refuse a call as too long."""

from __future__ import annotations

import pytest

from vitehub_chat.conversation.overflow import find_overflow
from vitehub_chat.errors import ContextOverflowError


class ProviderError(Exception):
    """What a client of a provider raises."""

    def __init__(self, text: str, **facts: object) -> None:
        super().__init__(text)
        for name, fact in facts.items():
            setattr(self, name, fact)


class ValidationException(Exception):  # noqa: N818 - its name at the provider
    """What botocore raises for a request that is not accepted."""


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (ContextOverflowError(reported=5), 5),
        (
            ProviderError(
                "This model's maximum context length is 8192 tokens. However, your messages "
                "resulted in 9,001 tokens.",
                code="context_length_exceeded",
                status_code=400,
            ),
            9001,
        ),
        (
            ProviderError("prompt is too long: 208310 tokens > 200000 maximum", status_code=400),
            208310,
        ),
        (
            ProviderError(
                "input length and max_tokens exceed context limit: 9 + 8", status_code=400
            ),
            None,
        ),
        (
            ProviderError(
                "The input token count (1048577) exceeds the maximum number of tokens allowed",
                code=400,
            ),
            1048577,
        ),
        (ValidationException("Input is too long for requested model."), None),
        (
            ProviderError(
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
                "maximum context length",
                status_code=422,
            ),
            40000,
        ),
        (ProviderError("Please reduce the length of the messages", status_code=413), None),
    ],
)
def test_a_refusal_is_recognised_with_the_size_it_tells(
    error: Exception, reported: int | None
) -> None:
    found = find_overflow(error)
    assert found is not None
    assert found.reported == reported


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("invalid temperature", status_code=400),
        ProviderError("maximum context length", status_code=500),
        ProviderError("rate limit", status_code=429, code="rate_limit_exceeded"),
        RuntimeError("prompt is too long: 5 tokens"),
        ValidationException("The provided model identifier is invalid."),
        KeyboardInterrupt(),
    ],
)
def test_any_other_error_is_none(error: BaseException) -> None:
    assert find_overflow(error) is None
