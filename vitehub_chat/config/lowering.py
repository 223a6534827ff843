"""Lowering: from a mapping that somebody wrote to a checked option model, or the first error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from vitehub_chat.config.option_model import MAX_MS, Allowed, OptionModel
from vitehub_chat.config.spelling import Raising, join, read_names, spellings, type_name
from vitehub_chat.errors import ConfigError, nearest_name

Model = TypeVar("Model", bound=OptionModel)

_ABOUT_THE_VALUE = frozenset(
    {
        "finite_number",
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "string_too_short",
        "value_error",
    }
)
"""Pydantic's errors about a value whose type is right."""


def read_options(
    model: type[Model], value: object, /, *, path: str = "", raising: Raising = ConfigError
) -> Model:
    """Check a mapping of options, and the mappings inside it, against a model.

    Names come before values, and inner mappings before the one around them. Nothing is converted.

    Raises:
        ConfigError: The first thing that is wrong, with its path; never the value. An
            `InputError` where `raising` says so.
    """
    if not isinstance(value, Mapping):
        raise refuse(value, "a mapping", path=path, raising=raising)
    values = read_names(model, value, path, raising)
    for field, inner in inner_models(model).items():
        if field in values:
            _read_inner(values, field, inner, join(path, field), raising)
    try:
        return model.model_validate(values)
    except ValidationError as exc:
        details = exc.errors(include_url=False, include_input=False)[0]
        raise _translate(model, values, details, path, raising) from None


def _read_inner(
    values: dict[str, object], field: str, inner: type[OptionModel], path: str, raising: Raising
) -> None:
    expanded = inner.expand(values[field])
    if expanded is None:
        del values[field]
    elif isinstance(expanded, Mapping):
        values[field] = read_options(inner, expanded, path=path, raising=raising)


@cache
def inner_models(model: type[OptionModel]) -> Mapping[str, type[OptionModel]]:
    """Return the fields of a model that hold options themselves, with their models."""
    return {
        name: option
        for name, field in model.model_fields.items()
        for option in _members(field.annotation)
        if isinstance(option, type) and issubclass(option, OptionModel)
    }


def _translate(
    model: type[OptionModel],
    values: Mapping[str, object],
    details: ErrorDetails,
    path: str,
    raising: Raising,
) -> Exception:
    field = spellings(model)[str(details["loc"][0])]
    where = join(path, field)
    allowed = describe(model, field)
    if details["type"] == "missing":
        return raising(f"is required: {allowed}", path=where)
    if details.get("ctx", {}).get("le") == MAX_MS:
        return raising(f"must be {allowed} and <= {MAX_MS}", path=where)
    return refuse(
        values[field],
        allowed,
        choices=_choices(model, field),
        path=where,
        raising=raising,
        name_type=details["type"] not in _ABOUT_THE_VALUE,
    )


def refuse(
    value: object,
    allowed: str,
    /,
    *,
    path: str,
    choices: tuple[str, ...] = (),
    raising: Raising = ConfigError,
    name_type: bool = True,
    hint: str | None = None,
) -> Exception:
    """Build the error for a value that is not allowed; it shows the type of the value at most."""
    if isinstance(value, str) and choices:
        nearest = nearest_name(value[:80], choices)
        hint = f"did you mean {nearest!r}?" if nearest else hint
        return raising(f"must be {allowed}", path=path, hint=hint)
    suffix = f", not {type_name(value)}" if name_type else ""
    return raising(f"must be {allowed}{suffix}", path=path, hint=hint)


def describe(model: type[OptionModel], field: str) -> str:
    """Say what a field allows."""
    info = model.model_fields[field]
    for item in info.metadata:
        if isinstance(item, Allowed):
            return item.text
    return join_words([text for member in _members(info.annotation) if (text := _words(member))])


def join_words(words: list[str]) -> str:
    """Return words as a choice: `a, b or c`."""
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last


def _choices(model: type[OptionModel], field: str) -> tuple[str, ...]:
    members = _members(model.model_fields[field].annotation)
    return tuple(
        choice for member in members if get_origin(member) is Literal for choice in get_args(member)
    )


def _members(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in {Union, UnionType}:
        for member in get_args(annotation):
            yield from _members(member)
    elif annotation is not NoneType:
        yield annotation


def _words(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return next(
            (item.text for item in annotation.__metadata__ if isinstance(item, Allowed)),
            _words(annotation.__origin__),
        )
    if origin is Literal:
        choices = [repr(choice) for choice in get_args(annotation)]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    if isinstance(annotation, type) and issubclass(annotation, OptionModel):
        return "a mapping"
    return _PLAIN_WORDS.get(origin or annotation, "")


_PLAIN_WORDS: Mapping[Any, str] = {
    bool: "a bool",
    str: "text",
    list: "a list of text",
    Callable: "a callable",
}
