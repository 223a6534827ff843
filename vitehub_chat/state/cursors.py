"""Cursors: opaque positions that only the store they come from accepts."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from functools import lru_cache

from vitehub_chat.errors import CursorError

_VERSION = 1
_LAYOUT = struct.Struct(">B8sqq")
_TAG_SIZE = 8


def encode_cursor(secret: bytes, scope: str, position: int, generation: int) -> str:
    """Return the cursor of a position in a scope."""
    packed = _LAYOUT.pack(_VERSION, _digest(scope), position, generation)
    return base64.urlsafe_b64encode(packed + _tag(secret, packed)).decode("ascii").rstrip("=")


def decode_cursor(secret: bytes, scope: str, cursor: str) -> tuple[int, int]:
    """Return position and generation of a cursor.

    Raises:
        CursorError: It was altered, belongs elsewhere, or has another version; all alike.
    """
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        packed, tag = raw[: _LAYOUT.size], raw[_LAYOUT.size :]
        version, digest, position, generation = _LAYOUT.unpack(packed)
    except (binascii.Error, struct.error, TypeError, ValueError):
        raise CursorError from None
    if not hmac.compare_digest(tag, _tag(secret, packed)):
        raise CursorError
    if version != _VERSION or digest != _digest(scope):
        raise CursorError
    return position, generation


@lru_cache(maxsize=64)  # every row of a page has the same
def _digest(scope: str) -> bytes:
    return hashlib.sha256(scope.encode()).digest()[:8]


def _tag(secret: bytes, packed: bytes) -> bytes:
    return hmac.digest(secret, packed, "sha256")[:_TAG_SIZE]
