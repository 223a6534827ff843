"""Wire: the models of what clients send."""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from vitehub_chat.errors import InputError


class WireModel(BaseModel):
    """A mapping of a client; unknown names are ignored, each known one has two spellings."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )


class QueryModel(WireModel):
    """The query of a URL, whose values are text."""

    model_config = ConfigDict(strict=False)


class TurnBody(WireModel):
    """What a chat client sends to have a message answered."""

    id: str
    """Its name of the conversation."""

    messages: list[Any]
    """Its messages, the new one last."""

    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    """What the client did."""

    message_id: str | None = None
    """The stored message that the client changed, continued or wants anew."""


class AgUiBody(WireModel):
    """A `RunAgentInput`."""

    thread_id: str
    """Its name of the conversation."""

    run_id: str
    """Its name of the run."""

    messages: list[Any]
    """Its messages, the new one last; without any it is told what is stored."""

    resume: list[Any] | None = None
    """Answers to the interrupts that the run before ended with."""

    state: Any = None
    """Data for the driver."""

    context: Any = None
    """Data for the driver."""

    tools: Any = None
    """Data for the driver."""

    forwarded_props: Any = None
    """Data for the driver."""


class StopBody(WireModel):
    """Which run to stop."""

    message_id: str | None = None
    """The answer or the message of it; without one every run of the conversation."""


class SummaryBody(WireModel):
    """A manual summary."""

    id: str | None = None
    """The client's name of the conversation."""

    session_id: str | None = None
    """One session of it."""

    text: str
    """What it says."""


class TruncateBody(WireModel):
    """What to cut off."""

    id: str | None = None
    """The client's name of the conversation."""

    session_id: str | None = None
    """One session of it."""

    from_message_id: str
    """The first message to go."""

    inclusive: bool = True
    """Whether that one goes, too."""

    expected_generation: int | None = None
    """Refuses if the conversation was cut meanwhile."""

    idempotency_key: str | None = None
    """The same key gets the same answer."""


class PlaceQuery(QueryModel):
    """A conversation, or one session of it."""

    id: str | None = None
    """The client's name of the conversation."""

    session_id: str | None = None
    """One session of it; alone it is resolved in place of `id`."""


class PageQuery(PlaceQuery):
    """A page of messages."""

    limit: int = 50
    """How many at most."""

    cursor: str | None = None
    """Where to go on."""

    direction: Literal["older", "newer"] = "older"
    """In which direction."""

    around: str | None = None
    """The message in the middle."""


class TurnsQuery(PlaceQuery):
    """A page of the turn index."""

    limit: int = 100
    """How many at most."""

    cursor: str | None = None
    """Where to go on."""


class WindowQuery(PlaceQuery):
    """What the model was given in a turn."""

    turn_id: str | None = None
    """The turn; without one the last."""

    next: bool = False
    """What it would be given for the next message."""


class SearchQuery(PlaceQuery):
    """A search in all conversations of who calls, or in one of them."""

    q: str
    """Words that all have to occur."""

    role: str | None = None
    """Only messages of this role."""

    before: str | None = None
    """Only messages before this time."""

    after: str | None = None
    """Only messages of this time or later."""

    limit: int = 10
    """How many at most."""


class SessionsQuery(QueryModel):
    """A page of the session list."""

    limit: int = 20
    """How many at most."""

    cursor: str | None = None
    """Where to go on."""

    updated_since: str | None = None
    """Only sessions with a message since then."""


M = TypeVar("M", bound=WireModel)


def read_model(model: type[M], given: Mapping[str, Any]) -> M:
    """Read a mapping in either spelling.

    Raises:
        InputError: A value is missing or wrong, or comes in both spellings.
    """
    check_spellings(given, model.model_fields)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False, include_input=False, include_context=False)
        path = ".".join(str(step) for step in first["loc"])
        text = "is needed" if first["type"] == "missing" else first["msg"]
        raise InputError(text, path=path) from None


def check_spellings(given: Mapping[str, Any], names: Any) -> None:
    """Refuse a mapping that has a value in both spellings.

    Raises:
        InputError: It has one.
    """
    for name in names:
        camel = to_camel(name)
        if camel != name and name in given and camel in given:
            problem = f"{name!r} and {camel!r} are two names of one value"
            raise InputError(problem, path=name, hint="use one of them")
