"""Wire media: which media each wire shape has a form for, and what the forms share."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Final

from vitehub_chat.formatting.profiles import Shape
from vitehub_chat.model.parts import MediaPart

AUDIO_FORMATS: Final[Mapping[str, str]] = {
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
    "audio/vnd.wave": "wav",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
}
"""The formats of `input_audio` by media type."""

IMAGE_FORMATS: Final[Mapping[str, str]] = {
    "image/gif": "gif",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/png": "png",
    "image/webp": "webp",
}
"""The image formats of Anthropic and Bedrock by media type."""

DOCUMENT_FORMATS: Final[Mapping[str, str]] = {
    "application/msword": "doc",
    "application/pdf": "pdf",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
}
"""The document formats of Bedrock by media type."""


def can_carry(shape: Shape, part: MediaPart) -> bool:
    """Tell whether a wire shape has a form for this part."""
    return _CARRIES[shape](part)


def plain_type(part: MediaPart) -> str:
    """Return the media type in lower case, without parameters."""
    return part.media_type.partition(";")[0].strip().lower()


def location(part: MediaPart) -> str:
    """Return the URL of a part: its own, else a `data:` URL of its data."""
    if part.data is not None:
        return f"data:{part.media_type};base64,{part.data}"
    return part.url or ""


def file_name(part: MediaPart) -> str:
    """Return the name of a file, or one that says nothing."""
    return part.name or "file"


def text_of(part: MediaPart) -> str | None:
    """Return the content of a text file that is given as data, or None."""
    if part.data is None or not plain_type(part).startswith("text/"):
        return None
    try:
        return base64.b64decode(part.data, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


def _on_chat(part: MediaPart) -> bool:
    if part.type == "audio":
        return part.data is not None and plain_type(part) in AUDIO_FORMATS
    return part.type == "image" or part.data is not None


def _on_ollama(part: MediaPart) -> bool:
    return part.type == "image" and part.data is not None


def _on_responses(part: MediaPart) -> bool:
    return part.type in {"image", "file"}


def _on_anthropic(part: MediaPart) -> bool:
    if part.type == "image":
        return part.data is None or plain_type(part) in IMAGE_FORMATS
    if part.type == "file":
        return plain_type(part) == "application/pdf" or bool((text_of(part) or "").strip())
    return False


def _on_gemini(part: MediaPart) -> bool:
    return part.data is not None or part.url is not None


def _on_bedrock(part: MediaPart) -> bool:
    formats = {"image": IMAGE_FORMATS, "file": DOCUMENT_FORMATS}.get(part.type, {})
    is_held = part.data is not None or (part.url or "").startswith("s3://")
    return is_held and plain_type(part) in formats


_CARRIES: Final[Mapping[Shape, Callable[[MediaPart], bool]]] = {
    "chat": _on_chat,
    "ollama": _on_ollama,
    "responses": _on_responses,
    "anthropic": _on_anthropic,
    "gemini": _on_gemini,
    "bedrock": _on_bedrock,
}
