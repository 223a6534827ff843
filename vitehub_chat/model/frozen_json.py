"""Frozen JSON: objects and lists that several readers share, so that none of them changes them."""

from __future__ import annotations

from typing import Any, NoReturn

from vitehub_chat.model.json_text import Json


def freeze_json(value: Json) -> Json:
    """Return a JSON value with objects and lists that refuse to be changed, at every level.

    They equal those they were made of, are dicts and lists to everybody, and their copies can be
    changed.
    """
    kind = type(value)
    if kind is dict:
        for item in value.values():
            if type(item) in _NESTED:
                break
        else:
            return FrozenObject(value)
        return FrozenObject(zip(value, map(freeze_json, value.values()), strict=True))
    return FrozenList(map(freeze_json, value)) if kind is list else value


_NESTED = frozenset({dict, list})


def _refuse(*_arguments: Any, **_named: Any) -> NoReturn:
    raise TypeError("what is stored is shared and cannot be changed; change a copy of it")


class FrozenObject(dict[str, Any]):
    """A JSON object that cannot be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Let copies be plain ones."""
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A JSON list that cannot be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """Let copies be plain ones."""
        return list, (list(self),)
