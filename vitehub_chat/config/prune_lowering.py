"""Prune lowering: from what was given to `transcripts.prune` to the policy that it means."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from vitehub_chat.config.durations import count
from vitehub_chat.config.transcripts_model import PruneModel, TranscriptsModel
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.policies import PrunePolicy

_PLAIN = ("mode", "preserve_system", "estimator")
_COUNTS = ("max_messages", "max_tokens", "message_overhead")
_MOST_HOURS = 1000 * 365 * 24
"""A thousand years: no row is older, and there is a date that long ago."""
_RESOLUTION = timedelta.resolution


def lower_prune(given: TranscriptsModel | None, /) -> PrunePolicy | None:
    """Return the policy that options mean; None if nothing is pruned.

    Raises:
        ConfigError: Rows would be deleted that the retention `forever` keeps.
    """
    prune = None if given is None else given.prune
    if given is None or not isinstance(prune, PruneModel) or prune.enabled is False:
        return None
    if given.retention == "forever" and prune.mode != "hide":
        raise ConfigError(
            "deletes what transcripts.retention='forever' keeps",
            path="transcripts.prune.mode",
            hint="hide rows with mode='hide', or leave one of them out",
        )
    options: dict[str, Any] = {
        name: getattr(prune, name) for name in _PLAIN if getattr(prune, name) is not None
    }
    for name in _COUNTS:
        if name in prune.model_fields_set:
            options[name] = count(getattr(prune, name) or 0)
    if "max_age_hours" in prune.model_fields_set:
        options["max_age"] = _age_of(prune.max_age_hours or 0)
    return PrunePolicy(**options)


def _age_of(hours: float) -> timedelta | None:
    """Return an age; one that is no duration of its own is the shortest, not none."""
    return max(timedelta(hours=min(hours, _MOST_HOURS)), _RESOLUTION) if hours else None
