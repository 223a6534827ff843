"""SQL as data: every statement has a name and a line that says what it does.

`SqlAgentState(driver)` is the Agent State of any SQL database that is reached by requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitehub_chat.state.sql.agent_state import SqlAgentState
    from vitehub_chat.state.sql.driver import Capabilities, SqlDriver

__all__ = ["Capabilities", "SqlAgentState", "SqlDriver"]


def __getattr__(name: str) -> object:
    if name == "SqlAgentState":
        from vitehub_chat.state.sql.agent_state import SqlAgentState  # noqa: PLC0415  on demand

        return SqlAgentState
    if name in __all__:
        from vitehub_chat.state.sql import driver  # noqa: PLC0415  on demand

        return getattr(driver, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
