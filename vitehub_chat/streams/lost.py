"""Lost runs: how a stream ends whose process died, so that its client is left with nothing open."""

from __future__ import annotations

from vitehub_chat.streams.chunks import Chunk

LOST = "lost"
"""Why the run ended, for clients."""

_STARTS = {"text-start": "text-end", "reasoning-start": "reasoning-end"}
_ENDS = frozenset(_STARTS.values())


class OpenParts:
    """The parts of a stream that have begun and not ended."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], Chunk] = {}

    def see(self, chunk: Chunk) -> None:
        """Take note of a chunk of the stream."""
        kind, part_id = chunk["type"], chunk.get("id", "")
        if kind in _STARTS:
            end = _STARTS[kind]
            self._ends[end, part_id] = {"type": end, "id": part_id}
        elif kind in _ENDS:
            self._ends.pop((kind, part_id), None)

    def end_lost(self, form: str) -> list[Chunk]:
        """Return the chunks that end a stream whose run was lost."""
        if form == "ag-ui":
            return [{"type": "RUN_ERROR", "message": "", "code": LOST}]
        return [
            *self._ends.values(),
            {"type": "message-metadata", "messageMetadata": {"status": "interrupted"}},
            {"type": "abort", "reason": LOST},
        ]
