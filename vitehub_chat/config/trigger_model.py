"""The option model of the input of `chat.message`."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from vitehub_chat.config.option_model import Allowed, AnyMapping, Milliseconds, OptionModel, Text


class RunModel(OptionModel):
    """Where a message came from."""

    tenant_id: Text | None = None
    """Whose data it is."""

    channel_id: Text | None = None
    """The channel it came through."""

    thread_id: Text | None = None
    """The thread it belongs to."""

    run_id: str | None = None
    """What this run is called."""

    message_id: str | None = None
    """The id by which a repeat is known, if the message itself has none."""

    origin: str | None = None
    """The kind of place it came from; stands before the invoker's id."""

    annotations: AnyMapping | None = None
    """Text to text, for telemetry and channels."""


class SessionModel(OptionModel):
    """Which session a call wants."""

    action: Literal["continue", "new", "switch"] | None = None
    """`new` starts a session; for the others only the id counts."""

    id: Annotated[Any, Allowed("text or an integer")] = None
    """The id of the session: text or an integer; empty text is absent."""


class InvokerModel(OptionModel):
    """On whose behalf a turn runs."""

    id: Text
    """Who it is."""

    kind: str | None = None
    """What kind of caller."""

    label: str | None = None
    """How people call it."""

    meta: AnyMapping | None = None
    """Further facts."""


class ReplaceModel(OptionModel):
    """What a turn takes the place of."""

    kind: Literal["edit", "regenerate", "continue"]
    """`edit`, `regenerate`: it and all behind it go first; `continue`: it goes on in its place."""

    message_id: Text
    """The message from which on it is done."""


class TriggerModel(OptionModel):
    """The input of `chat.message`."""

    messages: Annotated[Any, Allowed("a non-empty list of messages")]
    """The messages, oldest first, the new one last."""

    run: RunModel | None = None
    """Where the message came from."""

    session: SessionModel | None = None
    """Which session is wanted."""

    trigger_history: Annotated[Any, Allowed("'none' or a mapping")] = None
    """Replaces the option for this call; null uses the option."""

    user: AnyMapping | None = None
    """Facts about the user."""

    meta: AnyMapping | None = None
    """Further facts about the caller."""

    invoker: InvokerModel | None = None
    """On whose behalf the turn runs, where it does not follow from the user."""

    timeout_ms: Milliseconds | None = None
    """How long the driver may take, in milliseconds; replaces the option."""

    context: AnyMapping | None = None
    """Values for the driver, passed on as they are."""

    replace: ReplaceModel | None = None
    """What the turn takes the place of."""

    chat_id: Text | None = None
    """The client's name of the conversation."""

    user_key: Text | None = None
    """The owner of the session."""

    often_meant: ClassVar[Mapping[str, str]] = {"history": "trigger_history"}
