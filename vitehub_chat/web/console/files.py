"""Files: the pages of the console, by a fixed list of names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from starlette.responses import Response

_HTML: Final = "text/html; charset=utf-8"
_SCRIPT: Final = "text/javascript; charset=utf-8"
_STYLE: Final = "text/css; charset=utf-8"
FOLDER: Final = Path(__file__).with_name("static")

PAGES: Final[Mapping[str, str]] = {"": "index.html", "open": "open.html"}
"""The pages by their path below the console."""

MEDIA_TYPES: Final[Mapping[str, str]] = {
    "index.html": _HTML,
    "open.html": _HTML,
    "console.css": _STYLE,
    "icon.svg": "image/svg+xml",
    "api.js": _SCRIPT,
    "chat.js": _SCRIPT,
    "dom.js": _SCRIPT,
    "given.js": _SCRIPT,
    "log.js": _SCRIPT,
    "main.js": _SCRIPT,
    "message.js": _SCRIPT,
    "open.js": _SCRIPT,
    "panels.js": _SCRIPT,
    "sessions.js": _SCRIPT,
}
"""The content type of every file there is."""

DOOR: Final = frozenset({"open.html", "open.js"})
"""What only a console with a link has."""

FOR_STRANGERS: Final = DOOR | {"console.css", "icon.svg"}
"""What whoever has not opened the link yet may have."""


def load_files() -> Mapping[str, bytes]:
    """Read every file into memory."""
    return {name: (FOLDER / name).read_bytes() for name in MEDIA_TYPES}


def respond(files: Mapping[str, bytes], name: str) -> Response:
    """Return a file as a response."""
    return Response(files[name], media_type=MEDIA_TYPES[name])
