"""The option models of stored rows: how long they live and which are pruned."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, WithJsonSchema

from vitehub_chat.config.option_model import Allowed, CountOrZero, NumberOrZero, OptionModel

_DURATION = re.compile(r"([0-9]{1,15})([smhd])", re.ASCII)
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST_MS = 100_000 * _UNIT_MS["d"]


def retention_ms(value: object) -> int | None:
    """Return a retention in milliseconds, or None if it is no duration."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        value = int(match[1]) * _UNIT_MS[match[2]]
    return value if type(value) is int and 1 <= value <= _LONGEST_MS else None


def _check_retention(value: object) -> object:
    if not (isinstance(value, str) and value == "forever") and retention_ms(value) is None:
        raise ValueError
    return value


def _check_estimator(value: object) -> object:
    is_name = isinstance(value, str) and value
    if not (is_name or callable(value) or callable(getattr(value, "count_text", None))):
        raise ValueError
    return value


RetentionValue = Annotated[
    Any,
    AfterValidator(_check_retention),
    Allowed(
        "'forever', text such as '30d' (s, m, h, d) or an integer >= 1 of milliseconds,"
        " at most 100000 days"
    ),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "forever"},
                {"type": "string", "pattern": "^[0-9]{1,15}[smhd]$"},
                {"type": "integer", "minimum": 1},
            ]
        }
    ),
]
EstimatorValue = Annotated[
    Any,
    AfterValidator(_check_estimator),
    Allowed("a name, a callable or an estimator"),
    WithJsonSchema({"type": "string", "minLength": 1}),
]


class PruneModel(OptionModel):
    """Which stored rows are removed after a turn."""

    enabled: bool | None = None
    """Whether anything is removed; on where pruning is asked for."""

    mode: Literal["delete", "hide"] | None = None
    """`delete` removes rows for good, `hide` makes them invisible: `delete`."""

    max_age_hours: NumberOrZero | None = None
    """How old a row may be, in hours: 720; 0 and null switch the rule off.

    A message without a time is as old as its record.
    """

    max_messages: CountOrZero | None = None
    """How many rows are kept: 50; 0 and null switch the rule off.

    Beside `context` a row only goes once a summary covers it.
    """

    max_tokens: CountOrZero | None = None
    """How many tokens are kept: 32000; 0 and null switch the rule off.

    Beside `context` a row only goes once a summary covers it.
    """

    preserve_system: bool | None = None
    """Whether system messages always stay: they do."""

    estimator: EstimatorValue | None = None
    """How tokens are counted: `chars4`."""

    message_overhead: CountOrZero | None = None
    """What each message costs on top of its text: 0."""

    keeps_none: ClassVar[frozenset[str]] = frozenset(
        {"max_age_hours", "max_messages", "max_tokens"}
    )

    @classmethod
    def expand(cls, value: object, /) -> object:
        """Turn True into pruning by all defaults and False into none."""
        if isinstance(value, bool):
            return {} if value else None
        return value


class TranscriptsModel(OptionModel):
    """How long stored rows live, and which are pruned."""

    retention: RetentionValue | None = None
    """`forever`, a number with s, m, h or d, or milliseconds; the state's own by default."""

    prune: bool | PruneModel | None = None
    """Which rows are removed after a turn; off by default, `true` is all defaults."""
