"""Later options: checked like the others, then refused where they would have to do something."""

from __future__ import annotations

from vitehub_chat.config.chat_model import ChatModel
from vitehub_chat.errors import ConfigError


def refuse_later_options(given: ChatModel) -> None:
    """Refuse what this release cannot do: search tools.

    Switched off they are fine.

    Raises:
        ConfigError: One of them is switched on.
    """
    if given.search_tools:
        raise _not_available("search_tools", "leave it out, or set it to False")


def _not_available(option: str, hint: str) -> ConfigError:
    return ConfigError("is not available in this release", path=option, hint=hint)
