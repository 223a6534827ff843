"""OpenAPI: the routes of an agent, described for tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from vitehub_chat.web.answer_schemas import SCHEMAS, Schema, ref
from vitehub_chat.web.wire import (
    AgUiBody,
    PageQuery,
    PlaceQuery,
    QueryModel,
    SearchQuery,
    SessionsQuery,
    StopBody,
    SummaryBody,
    TruncateBody,
    TurnBody,
    TurnsQuery,
    WindowQuery,
    WireModel,
)

VERSION: Final = "3.1.0"
DOCUMENT: Final = "/openapi.json"
"""Where the document is, below the path of the routes."""

MAX_LIMIT: Final = 100
MAX_FOUND: Final = 50
_JSON = "application/json"
_STREAM: Mapping[str, Schema] = {"text/event-stream": {"type": "string"}}
_STATUSES: Mapping[str, str] = {
    "400": "The request is wrong.",
    "401": "Nobody is signed in.",
    "403": "This is not allowed.",
    "404": "It does not exist for who asks.",
    "500": "Something is wrong on this side; the log has the `ref`, too.",
    "503": "The state does not answer, or the service ends.",
}
_WRITING: Mapping[str, str] = {
    "409": "A turn runs, or the conversation was changed meanwhile.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
}
_TURNING: Mapping[str, str] = {
    **_WRITING,
    "429": "Too many messages wait.",
    "504": "It waited too long.",
}


@attrs.frozen(kw_only=True)
class Operation:
    """One route with its method.

    Attributes:
        below: Its path below that of the routes.
        needs: The option without which it does not exist, or None.
        query: The model of its query, or None.
        body: The model of its body, or None.
        is_camel: Whether its body is spelled as its protocol spells it.
        content: What it answers, by media type.
        statuses: Further statuses.
    """

    method: str
    below: str
    summary: str
    content: Mapping[str, Schema]
    needs: str | None = None
    query: type[QueryModel] | None = None
    body: type[WireModel] | None = None
    is_camel: bool = False
    statuses: Mapping[str, str] = attrs.field(factory=dict)


def _reads(method: str, below: str, summary: str, answer: str, **more: Any) -> Operation:
    content = {_JSON: ref(answer)}
    return Operation(
        method=method, below=below, summary=summary, content=content, needs="read_routes", **more
    )


OPERATIONS: Final = (
    Operation(
        method="post",
        below="",
        summary="Have a message answered, as a UI message stream or as one object.",
        body=TurnBody,
        is_camel=True,
        content={**_STREAM, _JSON: ref("RunResult")},
        statuses=_TURNING,
    ),
    Operation(
        method="post",
        below="/ag-ui",
        summary="Have a message answered, as a stream of AG-UI.",
        needs="ag_ui",
        body=AgUiBody,
        is_camel=True,
        content=_STREAM,
        statuses=_TURNING,
    ),
    Operation(
        method="get",
        below="/{id}/stream",
        summary="Follow what runs in a conversation, from its start.",
        content=_STREAM,
        statuses={"204": "Nothing runs."},
    ),
    Operation(
        method="post",
        below="/{id}/stop",
        summary="Stop what runs in a conversation; answers once it is recorded.",
        body=StopBody,
        is_camel=True,
        content={_JSON: ref("Stopped")},
        statuses=_WRITING,
    ),
    _reads("get", "/history", "A page of messages.", "HistoryPage", query=PageQuery),
    _reads("get", "/history/turns", "A row per message of a user.", "Turns", query=TurnsQuery),
    _reads("get", "/history/window", "What the model was given.", "Window", query=WindowQuery),
    _reads("get", "/history/summary", "The summaries.", "Summaries", query=PlaceQuery),
    _reads(
        "put",
        "/history/summary",
        "Save the manual summary.",
        "Summaries",
        body=SummaryBody,
        statuses=_WRITING,
    ),
    Operation(
        method="get",
        below="/history/export",
        summary="The whole conversation as lines of JSON.",
        needs="read_routes",
        query=PlaceQuery,
        content={"application/x-ndjson": {"type": "string"}},
    ),
    _reads("get", "/history/search", "Search in what was said.", "Found", query=SearchQuery),
    _reads("get", "/sessions", "The conversations of who asks.", "Sessions", query=SessionsQuery),
    _reads("get", "/sessions/{id}", "One conversation.", "Session", query=PlaceQuery),
    _reads(
        "delete",
        "/sessions/{id}",
        "Erase a conversation; zeros when repeated.",
        "Erased",
        query=PlaceQuery,
        statuses={"409": _WRITING["409"]},
    ),
    _reads(
        "post",
        "/truncate",
        "Cut a conversation off from a message on.",
        "Truncated",
        body=TruncateBody,
        statuses=_WRITING,
    ),
    Operation(
        method="get",
        below=DOCUMENT,
        summary="This document.",
        content={_JSON: {"type": "object"}},
    ),
)
"""Every route with its methods."""


def openapi_document(
    path: str = "/api/chat", *, read_routes: bool = True, ag_ui: bool = False
) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the routes of an agent.

    Who may call is the application's and not part of it.

    Args:
        path: Where the routes begin, as given to `mount_chat`.
        read_routes: Whether the routes exist that read, cut and delete.
        ag_ui: Whether the route of AG-UI exists.
    """
    options = {None: True, "read_routes": read_routes, "ag_ui": ag_ui}
    operations = [each for each in OPERATIONS if options[each.needs]]
    base = path.rstrip("/")
    paths: dict[str, Any] = {}
    for operation in operations:
        methods = paths.setdefault(f"{base}{operation.below}" or "/", {})
        methods[operation.method] = _describe(operation)
    return {
        "openapi": VERSION,
        "info": {"title": "vitehub-chat", "version": "1"},
        "paths": paths,
        "components": {"schemas": {**SCHEMAS, **_body_schemas(operations)}},
    }


def _describe(operation: Operation) -> dict[str, Any]:
    content = {kind: {"schema": schema} for kind, schema in operation.content.items()}
    problem = {_JSON: {"schema": ref("Problem")}}
    responses: dict[str, Any] = {"200": {"description": "Done.", "content": content}}
    for status, description in {**_STATUSES, **operation.statuses}.items():
        responses[status] = {"description": description}
        if not status.startswith("2"):
            responses[status]["content"] = problem
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _name(operation),
        "parameters": list(_parameters(operation)),
        "responses": dict(sorted(responses.items())),
    }
    if operation.body is not None:
        schema = {"schema": ref(operation.body.__name__)}
        described["requestBody"] = {"required": True, "content": {_JSON: schema}}
    return described


def _name(operation: Operation) -> str:
    words = operation.below.replace("{id}", "one").replace(".", "/").replace("-", "/").split("/")
    return "_".join([operation.method, *(word for word in words if word)])


def _parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    if "{id}" in operation.below:
        schema = {"type": "string", "minLength": 1, "maxLength": 512}
        yield {"name": "id", "in": "path", "required": True, "schema": schema}
    if operation.query is None:
        return
    model = _schema_of(operation.query, is_camel=False)
    for name, schema in model["properties"].items():
        if name == "id" and "{id}" in operation.below:
            continue
        parameter: dict[str, Any] = {
            "name": name,
            "in": "query",
            "description": schema.pop("description", ""),
        }
        if name in model.get("required", ()):
            parameter["required"] = True
        yield {**parameter, "schema": schema}


def _body_schemas(operations: list[Operation]) -> dict[str, Schema]:
    return {
        each.body.__name__: _schema_of(each.body, is_camel=each.is_camel)
        for each in operations
        if each.body is not None
    }


def _schema_of(model: type[WireModel], *, is_camel: bool) -> Schema:
    """Return the schema of a model in the spelling that clients of it use most."""
    schema = model.model_json_schema(by_alias=is_camel)
    properties = schema["properties"]
    for name, given in properties.items():
        properties[name] = _plain(given)
    if "limit" in properties:
        most = MAX_FOUND if model is SearchQuery else MAX_LIMIT
        properties["limit"] |= {"minimum": 1, "maximum": most}
    return schema


def _plain(given: Schema) -> Schema:
    """Return the schema of a value without titles, and without null where that means absent."""
    schema = {key: value for key, value in given.items() if key != "title"}
    if schema.get("default", "") is None:
        del schema["default"]
    some = [each for each in schema.pop("anyOf", []) if each != {"type": "null"}]
    schema |= some[0] if some else {}
    return schema
