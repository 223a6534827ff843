"""Frozen JSON: what is shared equals what it was made of, and cannot be changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from vitehub_chat.model.frozen_json import freeze_json

VALUE = {"type": "tool", "input": {"list": [1, {"deep": None}]}, "done": True}

CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda value: value.__setitem__("type", "text"),
    "delete": lambda value: value.__delitem__("type"),
    "or": lambda value: value.__ior__({"type": "text"}),
    "clear": lambda value: value.clear(),
    "pop": lambda value: value.pop("type"),
    "popitem": lambda value: value.popitem(),
    "setdefault": lambda value: value.setdefault("new", 1),
    "update": lambda value: value.update(type="text"),
    "set deep": lambda value: value["input"]["list"][1].__setitem__("deep", 1),
    "set item": lambda value: value["input"]["list"].__setitem__(0, 2),
    "delete item": lambda value: value["input"]["list"].__delitem__(0),
    "add items": lambda value: value["input"]["list"].__iadd__([2]),
    "multiply": lambda value: value["input"]["list"].__imul__(2),
    "append": lambda value: value["input"]["list"].append(2),
    "clear items": lambda value: value["input"]["list"].clear(),
    "extend": lambda value: value["input"]["list"].extend([2]),
    "insert": lambda value: value["input"]["list"].insert(0, 2),
    "pop item": lambda value: value["input"]["list"].pop(),
    "remove": lambda value: value["input"]["list"].remove(1),
    "reverse": lambda value: value["input"]["list"].reverse(),
    "sort": lambda value: value["input"]["list"].sort(key=str),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_cannot_be_changed(change: Callable[[Any], object]) -> None:
    frozen = freeze_json(VALUE)
    with pytest.raises(TypeError, match="change a copy"):
        change(frozen)
    assert frozen == VALUE


def test_it_is_written_down_like_what_it_was_made_of() -> None:
    assert json.dumps(freeze_json(VALUE)) == json.dumps(VALUE)


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "text", [], {}, [[1], {"a": []}]])
def test_it_equals_what_it_was_made_of(value: object) -> None:
    assert freeze_json(value) == value


def test_a_deep_copy_can_be_changed_at_every_level() -> None:
    value = copy.deepcopy(freeze_json(VALUE))
    value["input"]["list"].append(2)
    value["type"] = "text"
    assert value == {"type": "text", "input": {"list": [1, {"deep": None}, 2]}, "done": True}


def test_a_shallow_copy_can_be_changed_itself() -> None:
    for value in (
        copy.copy(freeze_json(VALUE)),
        dict(freeze_json(VALUE)),
        freeze_json(VALUE).copy(),
    ):
        value["type"] = "text"
        assert value["type"] == "text"
