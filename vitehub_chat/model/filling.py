"""Filling: frozen values made quickly, for what is made of every stored row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar, cast

import attrs

T = TypeVar("T")


class Filler(Generic[T]):
    """Makes values of one frozen class in half of the time that its constructor takes.

    A frozen class looks up each of its slots to fill it; these are looked up once. Every field is
    given: there are no defaults, converters or validators.
    """

    def __init__(self, kind: type[T]) -> None:
        """Say what is made: a frozen attrs class with slots."""
        self._kind = kind
        fields = attrs.fields(cast("Any", kind))
        self._setters = tuple(vars(kind)[field.name].__set__ for field in fields)

    def fill(self, values: Iterable[object]) -> T:
        """Return a value with these fields, in the order of the class.

        Raises:
            ValueError: There are more or fewer.
        """
        made = _new_object(self._kind)
        for set_field, value in zip(self._setters, values, strict=True):
            set_field(made, value)
        return made


_new_object = object.__new__
