"""The option models of an agent definition."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, WithJsonSchema

from vitehub_chat.config.option_model import (
    Allowed,
    AnyCallable,
    AnyMapping,
    Milliseconds,
    OptionModel,
    Text,
)
from vitehub_chat.config.transcripts_model import RetentionValue

_NO_OBJECTS = (bool, int, float, bytes, bytearray, list, tuple, set, frozenset, Mapping)


def _check_model(value: object) -> object:
    if value == "" or isinstance(value, _NO_OBJECTS):
        raise ValueError
    return value


ModelValue = Annotated[
    Any,
    AfterValidator(_check_model),
    Allowed("the name of a model or a model object"),
    WithJsonSchema({"type": "string", "minLength": 1}),
]


class ModelDriverModel(OptionModel):
    """A driver that asks a model."""

    model: ModelValue
    """Provider and model, such as `openai:gpt-5.1-mini`."""

    instructions: str | None = None
    """What the model is told before every conversation."""


class CallableDriverModel(OptionModel):
    """A driver that calls a function."""

    run: AnyCallable
    """Answers one call; sync or async."""


class StateRetentionModel(OptionModel):
    """How long stored rows live."""

    retention: RetentionValue | None = None
    """`forever`, a number with s, m, h or d, or milliseconds; kept until deleted by default."""


class StateModel(OptionModel):
    """An Agent State that the agent opens at first use."""

    url: Text
    """The URL of the state, such as `file:.vitehub/agent-state.db`, or a bare path."""

    auth_token: Text | AnyCallable | None = None
    """The token of a remote server; `auth_token_env` keeps it out of the file."""

    auth_token_env: Text | None = None
    """The environment variable that holds the token."""

    table_prefix: Text | None = None
    """What the names of all tables begin with: `vitehub_agent_state_`."""

    transcripts: StateRetentionModel | None = None
    """How long stored rows live."""

    durability: Literal["full", "normal"] | None = None
    """`normal`: the last acknowledged writes may be lost at power failure. `full` by default."""

    busy_timeout_ms: Milliseconds | None = None
    """How long to wait for another process that writes, in milliseconds: 5000."""

    cleanup_interval_ms: Milliseconds | None = None
    """How often expired data is removed at most, in milliseconds: 300000."""

    migrate: bool | None = None
    """Whether opening brings an older schema up to date: it does."""

    search: bool | None = None
    """Whether the text of messages is kept for search across conversations; on by default."""


class DefinitionModel(OptionModel):
    """An agent."""

    name: Text
    """The name of the agent; stored conversations belong to it."""

    driver: Annotated[Any, Allowed("a name, a callable, a mapping or a driver")] = None
    """What answers."""

    capabilities: Annotated[Any, Allowed("a list")] = None
    """What the agent can do, in order."""

    channels: Annotated[Any, Allowed("a list")] = None
    """Where the agent is reached."""

    state: Annotated[Any, Allowed("a URL, a path, a mapping or an Agent State")] = None
    """Where conversations are stored; nowhere by default."""

    meta: AnyMapping | None = None
    """Further facts about the agent."""

    often_meant: ClassVar[Mapping[str, str]] = {"id": "name", "model": "driver"}
