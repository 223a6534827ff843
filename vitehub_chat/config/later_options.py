"""Later options: checked like the others, then refused where they would have to do something."""

from __future__ import annotations

from vitehub_chat.config.chat_model import ChatModel
from vitehub_chat.config.context_model import ContextModel, MemoryModel
from vitehub_chat.config.transcripts_model import PruneModel, TranscriptsModel
from vitehub_chat.errors import ConfigError

_DEFAULT_TRIGGER_RATIO = 0.88


def refuse_later_options(given: ChatModel) -> None:
    """Refuse what this release cannot do: pruning, condensing, memory, search tools.

    Switched off they are fine.

    Raises:
        ConfigError: One of them is switched on, or contradicts itself.
    """
    if given.transcripts is not None:
        _refuse_prune(given.transcripts)
    if given.memory is not None:
        _refuse_memory(given.memory)
    if isinstance(given.context, ContextModel):
        _refuse_context(given.context)
    if given.search_tools:
        raise _not_available("search_tools", "leave it out, or set it to False")


def _refuse_prune(given: TranscriptsModel) -> None:
    prune = given.prune
    if not isinstance(prune, PruneModel) or prune.enabled is False:
        return
    if given.retention == "forever" and prune.mode != "hide":
        raise ConfigError(
            "deletes what transcripts.retention='forever' keeps",
            path="transcripts.prune.mode",
            hint="leave one of them out",
        )
    raise _not_available("transcripts.prune", "leave it out, or set it to False")


def _refuse_memory(given: MemoryModel) -> None:
    if given.root is not None and given.sink is not None:
        raise ConfigError(
            "cannot be given beside memory.root", path="memory.sink", hint="leave one of them out"
        )
    if given.root is not None or given.sink is not None:
        raise _not_available("memory", "leave it out")


def _refuse_context(given: ContextModel) -> None:
    trigger = given.trigger_ratio or _DEFAULT_TRIGGER_RATIO
    if given.target_ratio is not None and given.target_ratio > trigger:
        problem = f"must be at most trigger_ratio, which is {trigger}"
        raise ConfigError(problem, path="context.target_ratio")
    raise _not_available("context", "leave it out, or set it to False")


def _not_available(option: str, hint: str) -> ConfigError:
    return ConfigError("is not available in this release", path=option, hint=hint)
