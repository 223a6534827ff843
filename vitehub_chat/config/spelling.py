"""Spelling: the names by which options are given, and the paths by which errors call them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from pydantic.alias_generators import to_camel

from vitehub_chat.config.option_model import OptionModel
from vitehub_chat.errors import ConfigError, InputError

Raising = type[ConfigError] | type[InputError]
"""The class of the errors about one mapping."""

_LONGEST_NAME = 80


@cache
def spellings(model: type[OptionModel]) -> Mapping[str, str]:
    """Return every accepted name of a model with the field that it means."""
    names = {field: field for field in model.model_fields} | dict(model.second_names)
    return names | {to_camel(name): field for name, field in names.items()}


def read_names(
    model: type[OptionModel], given: Mapping[object, object], path: str, raising: Raising
) -> dict[str, object]:
    """Return the options that were given, by field; those that are None are left out.

    Raises:
        ConfigError: A name is unknown or no text, or one option has two names here; an
            `InputError` where `raising` says so.
    """
    known = spellings(model)
    found: dict[str, str] = {}
    for name in given:
        if not isinstance(name, str):
            problem = f"names are text, not {type_name(name)}"
            raise raising(problem, path=path or None)
        field = known.get(name)
        if field is None:
            raise unknown_name(model, name, path, raising)
        if field in found:
            problem = f"{found[field]!r} and {name!r} are two names of one option"
            raise raising(problem, path=join(path, field), hint="use one of them")
        found[field] = name
    values = {field: given[name] for field, name in found.items()}
    return {
        field: value
        for field, value in values.items()
        if value is not None or field in model.keeps_none
    }


def unknown_name(
    model: type[OptionModel], name: str, path: str, raising: Raising
) -> ConfigError | InputError:
    """Build the error for a name that a model does not have, with the nearest one in its style."""
    shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
    where = join(path, shown)
    if (meant := model.often_meant.get(name)) is not None:
        return raising(f"unknown option {shown!r}", path=where, hint=f"did you mean {meant!r}?")
    snake = [*model.model_fields, *model.second_names]
    in_camel_case = name != name.lower() and "_" not in name
    known = [to_camel(option) for option in snake] if in_camel_case else snake
    return raising.unknown_name(shown, known, path=where)


def join(path: str, name: str) -> str:
    """Return the path of a name below a path; a name that is no plain word is quoted."""
    if not (name.isascii() and name.isidentifier()):
        return f"{path}[{name!r}]"
    return f"{path}.{name}" if path else name


def type_name(value: object) -> str:
    """Return what a value is, for errors that must not show it."""
    return type(value).__name__
