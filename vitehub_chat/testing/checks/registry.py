"""Registry: checks by group, and the features they need."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

OpenState = Callable[..., AgentState]
"""Called with a clock, and for some checks with options of a state; the same store every time."""

CheckFunction = Callable[[OpenState, FakeClock], Awaitable[None]]

PREFIX: Final = "check_"

FEATURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "durable": "what was stored is there after everybody closed it",
        "group_commit": "writes that wait together are committed together",
        "one_store": "objects that are open at once have one store; tried out if not `durable`",
        "options": "the opener takes options, such as `transcripts={'retention': '1h'}`",
        "search": "stored text can be searched",
        "server_time": "leases follow the clock of the server",
        "shared": "several processes may use it at once",
        "steps": "it is a `SteppedAgentState`, in which checks damage what is stored",
    }
)
"""What a check may need: features of the state, its `steps`, and what the opener has.

That is `one_store` and `options`.
"""


@attrs.frozen(kw_only=True)
class Check:
    """One rule that a provider has to keep.

    Attributes:
        name: Its group and its own name, such as `turns.a_free_lock_is_granted`.
        rule: What the provider has to do, in one line.
        needs: The features without which it says nothing.
        run: Raises what is wrong; takes an opener and a clock that stands still.
    """

    name: str
    rule: str
    needs: frozenset[str]
    run: CheckFunction


class CheckGroup:
    """The checks of one subject; `@group` adds a function, `@group.needs("durable")` with a tag."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def __call__(self, function: CheckFunction) -> CheckFunction:
        """Add a check and return the function as it is."""
        return self.needs()(function)

    def needs(self, *features: str) -> Callable[[CheckFunction], CheckFunction]:
        """Return what adds a check that needs features.

        Raises:
            ValueError: There is no such feature.
        """
        unknown = set(features) - set(FEATURES)
        if unknown:
            raise ValueError(f"unknown features: {sorted(unknown)}")

        def add(function: CheckFunction) -> CheckFunction:
            own = getattr(function, "__name__", "").removeprefix(PREFIX)
            rule = (inspect.getdoc(function) or "").partition("\n")[0]
            found = Check(
                name=f"{self.name}.{own}", rule=rule, needs=frozenset(features), run=function
            )
            self.checks.append(found)
            return function

        return add
