"""Prune options: those that a settings file of an application has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from vitehub_chat.config.lowering import read_options
from vitehub_chat.config.settings_files import read_settings
from vitehub_chat.config.transcripts_model import PruneModel
from vitehub_chat.errors import ConfigError

SECTION: Final = "chatHistory"
NAMES: Final[Mapping[str, str]] = {
    "enableAutoPruning": "enabled",
    "maxMessages": "max_messages",
    "maxTokens": "max_tokens",
    "maxAgeHours": "max_age_hours",
    "preserveSystemMessages": "preserve_system",
}
"""What an option is called in a settings file, and here."""


class PruneOptions(dict[str, Any]):
    """Options of `transcripts.prune` that come from a file."""

    @classmethod
    def from_settings(cls, path: str | Path, /) -> Self:
        """Read the options `chatHistory.*` of a JSON file, dotted or nested.

        Missing ones have their defaults, pruning itself included. Other top-level keys are ignored.

        Raises:
            ConfigError: The file is missing or no JSON object, or has an unknown or a wrong option
                of `chatHistory`.
        """
        values: dict[str, Any] = {}
        for name, value in _options(read_settings(path)):
            if name not in NAMES:
                raise ConfigError.unknown_name(name, NAMES, path=f"{SECTION}.{name}")
            if NAMES[name] in values:
                raise ConfigError("is given both dotted and nested", path=f"{SECTION}.{name}")
            _check(name, value)
            values[NAMES[name]] = value
        return cls(values)


def _options(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if key == SECTION:
            if not isinstance(value, dict):
                raise ConfigError("must be an object", path=SECTION)
            yield from value.items()
        elif key.startswith(f"{SECTION}."):
            yield key.removeprefix(f"{SECTION}."), value


def _check(name: str, value: object) -> None:
    """Refuse a wrong value under the name that it has in the file."""
    try:
        read_options(PruneModel, {NAMES[name]: value})
    except ConfigError as error:
        raise ConfigError(error.message, path=f"{SECTION}.{name}") from error
