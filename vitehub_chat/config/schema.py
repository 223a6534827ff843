"""Schema: the JSON Schema of an agent definition that is written as data, for editors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticOmit, core_schema

from vitehub_chat.config.chat_model import ChatModel
from vitehub_chat.config.definition_model import DefinitionModel, ModelDriverModel, StateModel
from vitehub_chat.config.lowering import inner_models
from vitehub_chat.config.option_model import OptionModel
from vitehub_chat.config.spelling import spellings

JsonSchema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def agent_json_schema() -> JsonSchema:
    """Return the JSON Schema (draft 2020-12) of an agent definition in a file.

    Properties have their camelCase and their snake_case name. What only code can hold, such as a
    callable, is left out.
    """
    definitions: JsonSchema = {}
    for model in (ChatModel, ModelDriverModel, StateModel):
        definitions |= _schemas(model)
    definitions["ChatCapability"] = _with_use(definitions[ChatModel.__name__])
    definitions["Plugin"] = _PLUGIN
    root = _schemas(DefinitionModel)[DefinitionModel.__name__]
    for field, schema in _FIELDS.items():
        root["properties"][field] |= schema
    return {"$schema": DIALECT, **root, "title": "Agent definition", "$defs": definitions}


class _DataSchema(GenerateJsonSchema):
    """Leaves out what data cannot hold, and what says nothing."""

    def callable_schema(self, schema: core_schema.CallableSchema) -> JsonSchema:  # noqa: ARG002
        """Leave out the choice, or the field if it is the only one."""
        raise PydanticOmit

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchema:
        """Leave out the default: it is null, which is unset, or in the description."""
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Leave out titles that repeat the name."""
        return False


def _schemas(model: type[OptionModel]) -> JsonSchema:
    """Return the schema of a model and those of the models in it, by name."""
    schema = model.model_json_schema(schema_generator=_DataSchema)
    found = {**schema.pop("$defs", {}), model.__name__: schema}
    for inner in _tree(model):
        _add_spellings(found[inner.__name__], inner)
    return found


def _tree(model: type[OptionModel]) -> Iterator[type[OptionModel]]:
    yield model
    for inner in inner_models(model).values():
        yield from _tree(inner)


def _add_spellings(schema: JsonSchema, model: type[OptionModel]) -> None:
    """Allow every name of every property, and refuse two names of one."""
    properties, required = schema["properties"], schema.pop("required", [])
    rules: list[JsonSchema] = []
    for first, names in _names(model).items():
        if first in properties:
            properties |= dict.fromkeys(names, properties[first])
            rules += [{"not": {"required": list(pair)}} for pair in combinations(names, 2)]
        if first in required:
            rules.append({"anyOf": [{"required": [name]} for name in names]})
    if rules:
        schema["allOf"] = rules


def _names(model: type[OptionModel]) -> dict[str, list[str]]:
    """Return the names of every field, by the one that pydantic gives it in a schema."""
    by_field: dict[str, list[str]] = {}
    for name, field in spellings(model).items():
        by_field.setdefault(field, []).append(name)
    return {info.alias or field: by_field[field] for field, info in model.model_fields.items()}


def _with_use(chat: JsonSchema) -> JsonSchema:
    properties = {"use": {"const": "chat"}, **chat["properties"]}
    return {**chat, "properties": properties, "required": ["use"]}


_NAME: JsonSchema = {"type": "string", "minLength": 1}
_NULL: JsonSchema = {"type": "null"}
_PLUGIN: JsonSchema = {
    "type": "object",
    "description": "A plugin by name, with its options.",
    "properties": {"use": _NAME},
    "required": ["use"],
}
_ANY_PLUGIN: JsonSchema = {"anyOf": [_NAME, {"$ref": "#/$defs/Plugin"}]}
_CAPABILITY: JsonSchema = {
    "if": {"type": "object", "properties": {"use": {"const": "chat"}}, "required": ["use"]},
    "then": {"$ref": "#/$defs/ChatCapability"},
    "else": _ANY_PLUGIN,
}
_FIELDS: JsonSchema = {
    "driver": {"anyOf": [*_ANY_PLUGIN["anyOf"], {"$ref": "#/$defs/ModelDriverModel"}, _NULL]},
    "capabilities": {"anyOf": [{"type": "array", "items": _CAPABILITY}, _NULL]},
    "channels": {"anyOf": [{"type": "array", "items": _ANY_PLUGIN}, _NULL]},
    "state": {"anyOf": [_NAME, {"$ref": "#/$defs/StateModel"}, _NULL]},
}
