"""Expecting: comparisons that say what is wrong, also without pytest."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeVar

from vitehub_chat.errors import ChatError

T = TypeVar("T")
E = TypeVar("E", bound=ChatError)

_SHOWN: Final = 300
"""How many characters of a value are shown."""


def equal(actual: object, expected: object, what: str) -> None:
    """Compare what a provider gave with what it has to give.

    Raises:
        AssertionError: They differ.
    """
    if actual != expected:
        raise AssertionError(f"{what}: {_short(actual)}, expected {_short(expected)}")


def holds(fact: object, what: str) -> None:
    """Expect a fact.

    Raises:
        AssertionError: It is false.
    """
    if not fact:
        raise AssertionError(what)


def yes(fact: bool, question: str) -> None:  # noqa: FBT001 - it is what the function is about
    """Expect that the answer to a question is yes.

    Raises:
        AssertionError: It is no.
    """
    holds(fact is True, f"{question}: {fact!r}, expected True")


def no(fact: bool, question: str) -> None:  # noqa: FBT001 - it is what the function is about
    """Expect that the answer to a question is no.

    Raises:
        AssertionError: It is yes.
    """
    holds(fact is False, f"{question}: {fact!r}, expected False")


def present(value: T | None, what: str) -> T:
    """Return a value that must not be None.

    Raises:
        AssertionError: It is None.
    """
    if value is None:
        raise AssertionError(f"{what} is missing")
    return value


async def refused(
    kind: type[E], call: Awaitable[object], what: str, *, code: str | None = None
) -> E:
    """Expect that a call raises an error of one class, and return it.

    Raises:
        AssertionError: It raises nothing, or an error with another code. An error of another
            class is not caught.
    """
    try:
        answer = await call
    except kind as error:
        if code is not None:
            equal(error.code, code, f"the code of the error of {what}")
        return error
    raise AssertionError(f"{what} gave {_short(answer)}, expected {kind.__name__}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
