"""Channels: agents on chat platforms.

The names here are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitehub_chat.channels.contract import Channel
    from vitehub_chat.channels.host import ChannelHost
    from vitehub_chat.channels.messages import channel_message
    from vitehub_chat.channels.mounting import MountedChannels, mount_channels
    from vitehub_chat.channels.posting import Poster, post_reply
    from vitehub_chat.channels.values import (
        Author,
        ChannelRequest,
        ChannelResponse,
        DeliveryPlan,
        Inbound,
        Sent,
        Target,
    )

_MODULES = {
    "Author": "values",
    "Channel": "contract",
    "ChannelHost": "host",
    "ChannelRequest": "values",
    "ChannelResponse": "values",
    "DeliveryPlan": "values",
    "Inbound": "values",
    "MountedChannels": "mounting",
    "Poster": "posting",
    "Sent": "values",
    "Target": "values",
    "channel_message": "messages",
    "mount_channels": "mounting",
    "post_reply": "posting",
}

__all__ = [
    "Author",
    "Channel",
    "ChannelHost",
    "ChannelRequest",
    "ChannelResponse",
    "DeliveryPlan",
    "Inbound",
    "MountedChannels",
    "Poster",
    "Sent",
    "Target",
    "channel_message",
    "mount_channels",
    "post_reply",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vitehub_chat.plugins import import_path  # noqa: PLC0415 - at the first use of a name

    found = import_path(f"{__name__}.{_MODULES[name]}:{name}")
    globals()[name] = found
    return found
