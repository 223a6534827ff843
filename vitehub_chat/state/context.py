"""Context: what accompanies every call of an Agent State."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs


@attrs.frozen
class Fence:
    """Proof of a held lock: writes are refused once it is held under another token."""

    lock_key: str
    token: int


@attrs.frozen(kw_only=True)
class StateContext:
    """What accompanies every call.

    Attributes:
        now: The time of the call; None uses the clock of the provider.
        deadline: When the answer is of no use any more, or None.
        fence: The lock that the write depends on, or None.
        trace: Fields for telemetry.
    """

    now: datetime | None = None
    deadline: datetime | None = None
    fence: Fence | None = None
    trace: Mapping[str, str] = attrs.field(factory=dict)


NO_CONTEXT = StateContext()
"""No deadline, no fence, the provider's clock."""
