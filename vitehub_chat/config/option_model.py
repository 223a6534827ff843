"""The option model: what every mapping of options is checked against, and its kinds of values."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar

import attrs
from pydantic import BaseModel, ConfigDict, Field, InstanceOf
from pydantic.alias_generators import to_camel


class OptionModel(BaseModel):
    """A mapping of options: frozen, strict, without unknown names.

    Every field is known by its snake_case name and by its camelCase twin. None means that the
    option was not given.
    """

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        arbitrary_types_allowed=True,
    )

    keeps_none: ClassVar[frozenset[str]] = frozenset()
    """Fields in which None is a value."""

    second_names: ClassVar[Mapping[str, str]] = {}
    """Further snake_case names, and the fields that they mean."""

    often_meant: ClassVar[Mapping[str, str]] = {}
    """Names that do not exist, and the fields that people mean by them."""

    @classmethod
    def expand(cls, value: object, /) -> object:
        """Turn a short form into the mapping that it stands for; anything else stays."""
        return value


@attrs.frozen
class Allowed:
    """What a kind of value allows, in the words of its error."""

    text: str


MAX_MS = timedelta.max // timedelta(milliseconds=1)
"""The longest duration that there is, in milliseconds."""

Count = Annotated[int, Field(ge=1), Allowed("an integer >= 1")]
CountOrZero = Annotated[int, Field(ge=0), Allowed("an integer >= 0")]
Milliseconds = Annotated[int, Field(ge=1, le=MAX_MS), Allowed("an integer >= 1")]
MillisecondsOrZero = Annotated[int, Field(ge=0, le=MAX_MS), Allowed("an integer >= 0")]
Ratio = Annotated[
    float, Field(gt=0, le=1, allow_inf_nan=False), Allowed("a number above 0 and at most 1")
]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False), Allowed("a number above 0")]
NumberOrZero = Annotated[float, Field(ge=0, allow_inf_nan=False), Allowed("a number >= 0")]
Text = Annotated[str, Field(min_length=1), Allowed("non-empty text")]
AnyMapping = Annotated[InstanceOf[Mapping[str, Any]], Allowed("a mapping")]
AnyCallable = Annotated[Callable[..., Any], Allowed("a callable")]
