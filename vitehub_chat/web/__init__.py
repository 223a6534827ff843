"""Web: the routes of an agent, for Starlette, FastAPI and any ASGI server.

The names here are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitehub_chat.web.console.mounting import mount_console
    from vitehub_chat.web.mounting import MountedChat, chat_app, mount_chat
    from vitehub_chat.web.openapi import openapi_document
    from vitehub_chat.web.principals import Principal, SessionRef, per_user_sessions

_MODULES = {
    "MountedChat": "mounting",
    "Principal": "principals",
    "SessionRef": "principals",
    "chat_app": "mounting",
    "mount_chat": "mounting",
    "openapi_document": "openapi",
    "mount_console": "console.mounting",
    "per_user_sessions": "principals",
}

__all__ = [
    "MountedChat",
    "Principal",
    "SessionRef",
    "chat_app",
    "mount_chat",
    "mount_console",
    "openapi_document",
    "per_user_sessions",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vitehub_chat.plugins import import_path  # noqa: PLC0415 - at the first use of a name

    found = import_path(f"{__name__}.{_MODULES[name]}:{name}")
    globals()[name] = found
    return found
