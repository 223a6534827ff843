"""Media for Pydantic AI: what a user sends, as its content."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    UserContent,
    VideoUrl,
)

from vitehub_chat.model.model_messages import has_visible_text
from vitehub_chat.model.parts import MediaPart, Part, TextPart

_URLS: dict[str, type[ImageUrl | AudioUrl | VideoUrl | DocumentUrl]] = {
    "image": ImageUrl,
    "audio": AudioUrl,
    "video": VideoUrl,
}
_SCHEMES = ("http://", "https://")


def user_content(parts: Sequence[Part]) -> list[UserContent]:
    """Return the visible texts and the media among some parts, in order.

    Media that cannot be sent becomes a text that names it. A URL that is not of the web is such
    media: the provider would fetch it with the rights of the server.
    """
    content: list[UserContent] = []
    for part in parts:
        if isinstance(part, TextPart) and has_visible_text(part.text):
            content.append(part.text)
        elif isinstance(part, MediaPart):
            content.append(_media(part))
    return content


def binary(part: MediaPart) -> BinaryContent | None:
    """Return the data of a media part, or None when it has none that can be read."""
    try:
        data = base64.b64decode(part.data or "", validate=True)
    except (binascii.Error, ValueError):
        return None
    return BinaryContent(data, media_type=part.media_type) if data else None


def not_shown(part: MediaPart) -> str:
    """Return the text that stands for media that the model is not shown."""
    return f"[{part.type} not shown: {part.name or part.media_type}]"


def _media(part: MediaPart) -> UserContent:
    content = binary(part)
    if content is not None:
        return content
    if part.url is None or not part.url.lower().startswith(_SCHEMES):
        return not_shown(part)
    family = part.media_type.partition("/")[0].lower()
    return _URLS.get(family, DocumentUrl)(part.url, media_type=part.media_type)
