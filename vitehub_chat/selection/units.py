"""Units: messages that stay or go together, and the tool calls that wait."""

from __future__ import annotations

from vitehub_chat.model.units import Waiting, find_waiting, split_units

__all__ = ["Waiting", "find_waiting", "split_units"]
