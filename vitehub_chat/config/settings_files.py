"""Settings files: JSON objects that applications keep beside their code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitehub_chat.errors import ConfigError


def read_settings(path: str | Path, /) -> Mapping[str, Any]:
    """Return the object of a JSON file.

    Raises:
        ConfigError: The file is missing, cannot be read, or is no JSON object.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError("the settings file cannot be read", path=str(path)) from error
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("the settings file is no JSON", path=str(path)) from error
    if not isinstance(found, dict):
        raise ConfigError("the settings file must be a JSON object", path=str(path))
    return found
