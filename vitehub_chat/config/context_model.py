"""The option models of condensing: the rolling summary, and the memory it writes to first."""

import os
from collections.abc import Mapping, MutableSequence
from datetime import UTC, tzinfo
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, WithJsonSchema

from vitehub_chat.config.option_model import (
    Allowed,
    AnyCallable,
    Count,
    CountOrZero,
    Milliseconds,
    OptionModel,
    PositiveNumber,
    Ratio,
    Text,
)
from vitehub_chat.config.transcripts_model import EstimatorValue


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name.

    Raises:
        ValueError: There is none.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, LookupError, ValueError) as exc:  # a folder of zones is an OSError
        raise ValueError from exc


def _check_zone(name: str) -> str:
    zone_of(name)
    return name


def _check_sink(value: object) -> object:
    is_sink = callable(getattr(value, "append", None)) and not isinstance(value, MutableSequence)
    if not (isinstance(value, str) and value) and not is_sink:
        raise ValueError
    return value


def _check_root(value: object) -> object:
    if not (isinstance(value, str | os.PathLike) and os.fspath(value)):
        raise ValueError
    return value


ZoneName = Annotated[str, AfterValidator(_check_zone), Allowed("the name of a time zone")]
SinkValue = Annotated[
    Any,
    AfterValidator(_check_sink),
    Allowed("a name or an object with `append`"),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
RootValue = Annotated[
    Any,
    AfterValidator(_check_root),
    Allowed("the path of a folder"),
    WithJsonSchema({"type": "string", "minLength": 1}),
]


class ContextModel(OptionModel):
    """How history that no longer fits the model is condensed."""

    estimator: EstimatorValue | None = None
    """How sizes are counted: `segments`."""

    window_tokens: Count | None = None
    """How many tokens the model takes: the driver's, else 128000."""

    reserve_output_tokens: CountOrZero | None = None
    """How many tokens are left for the answer: an eighth of the window, 4096 to 16384."""

    runes_per_token: PositiveNumber | None = None
    """How many runes one token is: 2.0."""

    limit: Count | None = None
    """The whole budget: the window less the reserve."""

    trigger_ratio: Ratio | None = None
    """Above which part of the limit it begins: 0.88."""

    target_ratio: Ratio | None = None
    """Down to which part of the limit it goes: 0.70."""

    hard_cap: Count | None = None
    """An absolute ceiling; unset by default."""

    batch_messages: Count | None = None
    """How many messages are condensed at once: 4."""

    max_loops: Count | None = None
    """How many attempts one turn makes at most: 48."""

    min_verbatim: CountOrZero | None = None
    """How many of the newest messages are never condensed: 8."""

    summary_max: Count | None = None
    """How long the summary may be: 1500 tokens or 15 % of the limit, the smaller one."""

    message_overhead: CountOrZero | None = None
    """What each message costs on top of its text: what the estimator says."""

    frame_overhead: CountOrZero | None = None
    """What the fixed texts around a summary cost: measured."""

    retries: CountOrZero | None = None
    """How many further tries one call of the summariser has: 1."""

    summarizer_timeout_ms: Milliseconds | None = None
    """How long one call of the summariser may take, in milliseconds: 30000."""

    turn_deadline_ms: Milliseconds | None = None
    """How long all condensing of one turn may take, in milliseconds: 60000."""

    failure_alarm: Count | None = None
    """How many failed turns in a row until the event is an error: 3."""

    checkpoints_kept: Count | None = None
    """How many of the newest checkpoints are kept: 64."""

    summary_placement: Literal["system", "user"] | None = None
    """Where the summary stands: `system`."""

    wrap_current: bool | None = None
    """Whether the current message is marked beside a summary: it is."""

    summarizer: Text | AnyCallable | None = None
    """Who writes the summary: the driver's model."""

    @classmethod
    def expand(cls, value: object, /) -> object:
        """Turn True into condensing by all defaults and False into none."""
        if isinstance(value, bool):
            return {} if value else None
        return value


class MemoryModel(OptionModel):
    """Where messages are archived before they are condensed."""

    root: RootValue | None = None
    """The folder of the notes."""

    sink: SinkValue | None = None
    """The name of a memory sink."""

    daily_note: bool | None = None
    """Whether messages are archived by day: they are."""

    extract: bool | None = None
    """Whether facts are extracted: they are, where there is a model."""

    append_every_turn: bool | None = None
    """Whether every finished turn is archived: it is not."""

    on_error: Literal["continue", "block"] | None = None
    """`block`: nothing is condensed in a turn in which archiving failed: `continue`."""

    timezone: ZoneName | None = None
    """The zone by whose date notes are filed: `UTC`."""

    note_timeout_ms: Milliseconds | None = None
    """How long one note may take, in milliseconds: 5000."""

    extract_timeout_ms: Milliseconds | None = None
    """How long one extraction may take, in milliseconds: 20000."""

    second_names: ClassVar[Mapping[str, str]] = {
        "memory_auto_extract": "extract",
        "memory_auto_append": "append_every_turn",
    }
