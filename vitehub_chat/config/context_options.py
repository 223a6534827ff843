"""Context options: what was given to `context`, with what files and the environment add to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

import attrs

from vitehub_chat.config.context_model import ContextModel
from vitehub_chat.config.durations import count, term
from vitehub_chat.config.lowering import describe, read_options
from vitehub_chat.config.settings_files import read_settings
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.context_policy import ContextPolicy

Origin = Literal["definition", "environment", "file"]

PREFIX: Final = "VITEHUB_CHAT_CONTEXT_"
FILE_VARIABLE: Final = "VITEHUB_CHAT_CONTEXT_FILE"
OBJECT: Final = "chat_context"
"""The object of a settings file that holds the options."""

_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?|\.[0-9]{1,18}", re.ASCII)
_TRUTHS: Final[Mapping[str, bool]] = {"true": True, "1": True, "false": False, "0": False}
_DEFAULTS = ContextPolicy()
_COUNTS = (
    "window_tokens",
    "reserve_output_tokens",
    "limit",
    "hard_cap",
    "batch_messages",
    "max_loops",
    "min_verbatim",
    "summary_max",
    "message_overhead",
    "frame_overhead",
    "retries",
    "failure_alarm",
    "checkpoints_kept",
)
_OTHERS = ("estimator", "runes_per_token", "summary_placement", "wrap_current", "summarizer")


class ContextOptions(dict[str, Any]):
    """Options of `context` that come from a file; the environment and code beat them."""

    @classmethod
    def from_settings(cls, path: str | Path, /) -> Self:
        """Read the options of the object `chat_context` of a JSON file, in either spelling.

        A file without that object has no options. Other keys are ignored.

        Raises:
            ConfigError: The file is missing or no JSON object, or an option is wrong.
        """
        found = read_settings(path).get(OBJECT, {})
        return cls(_given(read_options(ContextModel, found, path=OBJECT)))


@attrs.frozen
class ContextSettings:
    """Every option of `context` that somebody gave, and who did."""

    values: Mapping[str, Any]
    origins: Mapping[str, Origin]


def find_context(
    given: ContextModel, environ: Mapping[str, str], /, *, is_file: bool = False
) -> ContextSettings:
    """Return the options that count: code beats the environment, which beats files.

    Args:
        given: What `context` says.
        environ: The environment.
        is_file: Whether that comes from a file itself.

    Raises:
        ConfigError: A variable or a file is wrong; the error names it.
    """
    named_file = environ.get(FILE_VARIABLE, "").strip()
    from_file: dict[str, Any] = dict(ContextOptions.from_settings(named_file)) if named_file else {}
    from_code: dict[str, Any] = {}
    (from_file if is_file else from_code).update(_given(given))
    layers: tuple[tuple[Origin, Mapping[str, Any]], ...] = (
        ("file", from_file),
        ("environment", dict(_variables(environ))),
        ("definition", from_code),
    )
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for origin, layer in layers:
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))
    return ContextSettings(values, origins)


def lower_context(settings: ContextSettings, /) -> ContextPolicy:
    """Return the policy that options mean.

    Raises:
        ConfigError: They contradict each other.
    """
    values = settings.values
    changes: dict[str, Any] = {name: values[name] for name in _OTHERS if name in values}
    changes.update({name: count(values[name]) for name in _COUNTS if name in values})
    trigger = _ratio(values.get("trigger_ratio")) or _DEFAULTS.trigger_ratio
    target = _ratio(values.get("target_ratio"))
    if target is not None and target > trigger:
        problem = f"must be at most trigger_ratio, which is {trigger}"
        raise ConfigError(problem, path="context.target_ratio")
    for name in ("summarizer_timeout", "turn_deadline"):
        if f"{name}_ms" in values:
            changes[name] = term(values[f"{name}_ms"])
    return ContextPolicy(
        trigger_ratio=trigger,
        target_ratio=min(_DEFAULTS.target_ratio, trigger) if target is None else target,
        **changes,
    )


def _given(model: ContextModel) -> dict[str, Any]:
    found = {name: getattr(model, name) for name in model.model_fields_set}
    return {name: value for name, value in found.items() if value is not None}


def _ratio(value: float | None) -> Decimal | None:
    """Return a ratio as it was written: 0.29 is exactly that."""
    return None if value is None else Decimal(str(value))


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Give the options that variables set; blank ones set none."""
    for variable, text in sorted(environ.items()):
        if not variable.startswith(PREFIX) or variable == FILE_VARIABLE or not text.strip():
            continue
        option = variable.removeprefix(PREFIX).lower()
        if option not in ContextModel.model_fields:
            known = [f"{PREFIX}{name.upper()}" for name in ContextModel.model_fields]
            raise ConfigError.unknown_name(variable, known, path=variable, what="variable")
        yield option, _value_of(variable, option, text.strip())


def _value_of(variable: str, option: str, text: str) -> Any:
    try:
        checked = read_options(ContextModel, {option: _converted(option, text)})
    except ConfigError as error:
        allowed = describe(ContextModel, option)
        raise ConfigError(f"must be {allowed}", path=variable) from error
    return getattr(checked, option)


def _converted(option: str, text: str) -> object:
    kinds = _kinds_of(ContextModel.model_fields[option].annotation)
    if bool in kinds:
        return _TRUTHS.get(text.lower(), text)
    if int in kinds and _WHOLE.fullmatch(text):
        return int(text)
    if float in kinds and _DECIMAL.fullmatch(text):
        return float(text)
    return text


def _kinds_of(annotation: Any) -> frozenset[Any]:
    """Return the plain types of an annotation."""
    members = get_args(annotation)
    if not members:
        return frozenset({annotation})
    return frozenset().union(*(_kinds_of(each) for each in members))
