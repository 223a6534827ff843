"""Fakes for tests of agents, and the checks that every Agent State provider has to pass.

`FakeClock`, `CountingIds` and `ScriptedChannel` are fakes; `run_checks` runs the checks of a
provider, `all_checks` names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitehub_chat.testing.checks.catalogue import all_checks
    from vitehub_chat.testing.clock import FakeClock
    from vitehub_chat.testing.conformance import CheckResult, run_checks
    from vitehub_chat.testing.ids import CountingIds
    from vitehub_chat.testing.scripted_channel import ScriptedChannel, ScriptedPlatform

__all__ = [
    "CheckResult",
    "CountingIds",
    "FakeClock",
    "ScriptedChannel",
    "ScriptedPlatform",
    "all_checks",
    "run_checks",
]


def __getattr__(name: str) -> object:
    # Lazy, because every pytest of an environment loads the plugin that is in this package.
    if name in {"CheckResult", "run_checks"}:
        from vitehub_chat.testing import conformance  # noqa: PLC0415

        return getattr(conformance, name)
    if name == "all_checks":
        from vitehub_chat.testing.checks.catalogue import all_checks  # noqa: PLC0415

        return all_checks
    if name == "FakeClock":
        from vitehub_chat.testing.clock import FakeClock  # noqa: PLC0415

        return FakeClock
    if name == "CountingIds":
        from vitehub_chat.testing.ids import CountingIds  # noqa: PLC0415

        return CountingIds
    if name in {"ScriptedChannel", "ScriptedPlatform"}:
        from vitehub_chat.testing import scripted_channel  # noqa: PLC0415

        return getattr(scripted_channel, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
