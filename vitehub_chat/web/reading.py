"""Reading: bodies, queries and ids of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import decode_json
from vitehub_chat.model.keys import check_id
from vitehub_chat.web.problems import refuse

RESERVED: Final = frozenset({".", "..", "history", "sessions", "truncate", "ag-ui"})
"""Names that no conversation can have for its client, as they are parts of paths."""

TAKEN: Final = "sessions/"
"""How no name of a new conversation begins: `/sessions/a/stream` is the conversation `a/stream`."""


def check_chat_id(value: str, path: str = "id") -> str:
    """Return a client's name of a conversation unchanged, or refuse it.

    Raises:
        InputError: It is empty, too long, reserved, or has control characters.
    """
    if not value:
        raise InputError("must not be empty", path=path)
    if value in RESERVED:
        raise InputError("is reserved", path=path, hint="take another id")
    return check_id(value, path)


def check_new_chat_id(value: str, path: str = "id") -> str:
    """Return a client's name of a conversation that goes on or begins unchanged, or refuse it.

    Every name that is taken here means the same conversation on every route.

    Raises:
        InputError: As in `check_chat_id`, or it begins as a path of another route does.
    """
    if value.startswith(TAKEN):
        hint = "take another id; what is stored under it can be read and deleted"
        raise InputError(f"must not begin with {TAKEN!r}", path=path, hint=hint)
    return check_chat_id(value, path)


async def read_body(request: Request, max_bytes: int) -> Mapping[str, Any]:
    """Return the JSON object that a request carries.

    Raises:
        Refused: It is too large, or not declared as JSON.
        InputError: It is no JSON object.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise refuse(415, "not_json", "The body has to be application/json.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise refuse(413, "body_too_large", f"The body may have {max_bytes} bytes.")
    try:
        value = decode_json(body.decode())
    except (ValueError, RecursionError):
        raise InputError("is not JSON", path="body") from None
    if not isinstance(value, dict):
        raise InputError("must be a JSON object", path="body")
    return value


def read_query(request: Request) -> Mapping[str, str]:
    """Return the query of a request.

    Raises:
        InputError: A name comes twice.
    """
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in query:
            raise InputError("is given twice", path=name)
        query[name] = value
    return query
