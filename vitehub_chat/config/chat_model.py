"""The option model of `chat()`."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from vitehub_chat.config.context_model import ContextModel, MemoryModel
from vitehub_chat.config.option_model import (
    AnyCallable,
    Count,
    Milliseconds,
    MillisecondsOrZero,
    OptionModel,
    Text,
)
from vitehub_chat.config.transcripts_model import TranscriptsModel
from vitehub_chat.model.policies import (
    ConcurrencyStrategy,
    LockScope,
    QueueFullPolicy,
    SessionStrategy,
    WindowSource,
)


class TriggerHistoryModel(OptionModel):
    """Which earlier messages one call may see."""

    source: WindowSource
    """`thread`: the caller supplies the messages. `transcript`: the stored rows are read."""

    max_messages: Count
    """How many messages at most, the current one included."""

    max_age_ms: MillisecondsOrZero | None = None
    """How much older than the current message at most, in milliseconds; no limit by default."""

    often_meant: ClassVar[Mapping[str, str]] = {"limit": "max_messages"}


class SessionsModel(OptionModel):
    """Where one conversation starts and ends."""

    strategy: SessionStrategy | None = None
    """`manual`: by id. `idle-timeout`: by silence. `hybrid`: both. By default `idle-timeout` if a
    timeout is set, else `manual`."""

    idle_timeout_ms: MillisecondsOrZero | None = None
    """Silence longer than this ends a session, in milliseconds; 0 is unset."""

    metadata_key: Text | None = None
    """The first place in a message's metadata where its session id is looked for."""

    @classmethod
    def expand(cls, value: object, /) -> object:
        """Turn True into manual sessions and False into none."""
        if isinstance(value, bool):
            return {} if value else None
        return value


class ConcurrencyModel(OptionModel):
    """What happens when a message meets a running turn."""

    strategy: ConcurrencyStrategy
    """`serial`: one after the other. `queue`: those that wait run together. `debounce`: wait for
    silence first. `parallel`: at once. `drop`, `reject`: not at all."""

    max_queue_size: Count | None = None
    """How many may wait per lock key: 10, with `serial` no limit."""

    on_queue_full: QueueFullPolicy | None = None
    """Who goes when it is full: `drop-oldest`, with `serial` `reject`."""

    queue_entry_ttl_ms: Milliseconds | None = None
    """How long an entry may wait, in milliseconds: 90000, with `serial` no limit."""

    debounce_ms: Milliseconds | None = None
    """How long without a new message before a `debounce` run, in milliseconds: 1500."""

    max_concurrent: Count | None = None
    """How many `parallel` turns at once per lock key; no limit by default."""

    wait_timeout_ms: Milliseconds | None = None
    """How long a caller waits for its run to begin, in milliseconds; no limit by default."""

    max_lock_lifetime_ms: Milliseconds | None = None
    """How long one turn may hold its lock, in milliseconds: 600000."""

    @classmethod
    def expand(cls, value: object, /) -> object:
        """Turn the name of a strategy into its mapping."""
        return {"strategy": value} if isinstance(value, str) else value


class ThreadHistoryModel(OptionModel):
    """Bounds of a channel's thread cache and backfill; they never change what a model sees."""

    max_messages: Count | None = None
    """How many messages: 100."""

    ttl_ms: Milliseconds | None = None
    """How long they are kept, in milliseconds: 604800000, a week."""


class LoadingModel(OptionModel):
    """What is posted before the answer."""

    text: Text
    """The text that is posted."""


class ChatModel(OptionModel):
    """Every option of `chat()`."""

    trigger_history: Literal["none"] | TriggerHistoryModel | None = None
    """Which earlier messages one call may see; the current message alone by default."""

    sessions: bool | SessionsModel | None = None
    """Where one conversation starts and ends; off by default, `true` is `manual`."""

    concurrency: ConcurrencyStrategy | ConcurrencyModel | None = None
    """What happens when a message meets a running turn: `serial`."""

    lock_scope: LockScope | AnyCallable | None = None
    """What shares a lock: the channel's own scope, else `thread`."""

    dedupe_ttl_ms: Milliseconds | None = None
    """How long a repeated message id is answered from the record, in milliseconds: 600000."""

    thread_history: ThreadHistoryModel | None = None
    """Bounds of a channel's thread cache and backfill."""

    identity: AnyCallable | None = None
    """Gives the user key of a message; sync or async."""

    filter: AnyCallable | None = None
    """Whether a message starts a turn; sync or async."""

    search_tools: bool | None = None
    """Whether the agent gets tools that search past conversations; off by default."""

    timeout_ms: Milliseconds | None = None
    """How long a driver may take, in milliseconds; no limit by default."""

    stream: bool | None = None
    """Whether a channel reply is edited while it grows; off by default."""

    streaming_update_interval_ms: Milliseconds | None = None
    """How often it is edited at most, in milliseconds: 500."""

    delivery: Literal["automatic", "manual"] | None = None
    """`automatic`: the answer is posted. `manual`: nothing is posted by itself."""

    loading: LoadingModel | None = None
    """What is posted first; the reply then follows whole."""

    fallback_streaming_placeholder_text: str | list[str] | tuple[str, ...] | AnyCallable | None = (
        None
    )
    """What a channel shows before the first text; null is nothing, a list is a random entry."""

    error_fallback_text: str | AnyCallable | None = None
    """What a channel shows when a run fails; null is nothing, an apology by default."""

    transcripts: TranscriptsModel | None = None
    """How long stored rows live, and which are pruned."""

    memory: MemoryModel | None = None
    """Where messages are archived before they are condensed; off without `root` or `sink`."""

    context: bool | ContextModel | None = None
    """How history that no longer fits the model is condensed; off by default."""

    keeps_none: ClassVar[frozenset[str]] = frozenset(
        {"fallback_streaming_placeholder_text", "error_fallback_text"}
    )
    often_meant: ClassVar[Mapping[str, str]] = {"history": "trigger_history"}
