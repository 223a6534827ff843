"""Names of options: two spellings, unknown ones, and hostile ones."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from vitehub_chat.config import typed
from vitehub_chat.config.chat_model import (
    ChatModel,
    ConcurrencyModel,
    LoadingModel,
    SessionsModel,
    ThreadHistoryModel,
    TriggerHistoryModel,
)
from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.config.context_model import ContextModel, MemoryModel
from vitehub_chat.config.definition_model import DefinitionModel, StateModel
from vitehub_chat.config.lowering import describe, inner_models
from vitehub_chat.config.option_model import OptionModel
from vitehub_chat.config.spelling import spellings
from vitehub_chat.config.transcripts_model import PruneModel, TranscriptsModel
from vitehub_chat.config.trigger_model import TriggerModel
from vitehub_chat.errors import ConfigError

TYPED: dict[type[OptionModel], type] = {
    ChatModel: typed.ChatOptions,
    TriggerHistoryModel: typed.TriggerHistoryOptions,
    SessionsModel: typed.SessionsOptions,
    ConcurrencyModel: typed.ConcurrencyOptions,
    ThreadHistoryModel: typed.ThreadHistoryOptions,
    LoadingModel: typed.LoadingOptions,
    TranscriptsModel: typed.TranscriptsOptions,
    PruneModel: typed.PruneOptions,
    ContextModel: typed.ContextOptions,
    MemoryModel: typed.MemoryOptions,
}


def refusal(options: dict[str, object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        lower_chat_options(options)
    return caught.value


def every_model(model: type[OptionModel]) -> list[type[OptionModel]]:
    return [model, *(item for inner in inner_models(model).values() for item in every_model(inner))]


@pytest.mark.parametrize("model", TYPED, ids=lambda model: model.__name__)
def test_the_typed_options_are_the_names_that_the_model_accepts(model: type[OptionModel]) -> None:
    assert set(get_type_hints(TYPED[model])) == set(spellings(model))


def test_every_model_below_chat_has_typed_options() -> None:
    assert set(TYPED) == set(every_model(ChatModel))


def test_the_typed_options_contain_each_other_as_the_models_do() -> None:
    hints = get_type_hints(typed.ChatOptions)
    found = {name: {*get_args(hint)} & {*TYPED.values()} for name, hint in hints.items()}
    expected = {
        to_camel(field): {TYPED[inner]} for field, inner in inner_models(ChatModel).items()
    } | {field: {TYPED[inner]} for field, inner in inner_models(ChatModel).items()}
    assert {name: kinds for name, kinds in found.items() if kinds} == expected


@pytest.mark.parametrize("root", [ChatModel, TriggerModel, DefinitionModel, StateModel])
def test_every_option_is_documented_and_says_what_it_allows(root: type[OptionModel]) -> None:
    untold = [
        f"{model.__name__}.{field}"
        for model in every_model(root)
        for field, info in model.model_fields.items()
        if not info.description or not describe(model, field)
    ]
    assert untold == []


@pytest.mark.parametrize(
    ("options", "path", "names"),
    [
        ({"lock_scope": "thread", "lockScope": "thread"}, "lock_scope", "lock_scope lockScope"),
        ({"lockScope": None, "lock_scope": None}, "lock_scope", "lockScope lock_scope"),
        (
            {"triggerHistory": {"source": "thread", "maxMessages": 1, "max_messages": 1}},
            "trigger_history.max_messages",
            "maxMessages max_messages",
        ),
        (
            {"transcripts": {"prune": {"maxTokens": 1, "max_tokens": 1}}},
            "transcripts.prune.max_tokens",
            "maxTokens max_tokens",
        ),
        ({"memory": {"extract": True, "memory_auto_extract": True}}, "memory.extract", "extract"),
        (
            {"memory": {"appendEveryTurn": True, "memoryAutoAppend": True}},
            "memory.append_every_turn",
            "appendEveryTurn memoryAutoAppend",
        ),
    ],
)
def test_two_names_of_one_option_are_refused_at_any_depth(
    options: dict[str, object], path: str, names: str
) -> None:
    error = refusal(options)
    assert error.path == path
    assert [name for name in names.split() if repr(name) not in error.message] == []


@pytest.mark.parametrize(
    ("options", "path", "nearest"),
    [
        ({"history": {}}, "history", "trigger_history"),
        ({"trigger_histroy": {}}, "trigger_histroy", "trigger_history"),
        ({"lockScop": "thread"}, "lockScop", "lockScope"),
        ({"lockscope": "thread"}, "lockscope", "lock_scope"),
        (
            {"trigger_history": {"source": "thread", "max_message": 1}},
            "trigger_history.max_message",
            "max_messages",
        ),
        (
            {"triggerHistory": {"source": "thread", "maxMessage": 1}},
            "trigger_history.maxMessage",
            "maxMessages",
        ),
        ({"context": {"trigger_ration": 0.5}}, "context.trigger_ration", "trigger_ratio"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_one(
    options: dict[str, object], path: str, nearest: str
) -> None:
    error = refusal(options)
    assert (error.path, error.hint) == (path, f"did you mean {nearest!r}?")


@pytest.mark.parametrize("name", ["steer", "burst", "on_lock_conflict", "webhooks", "__class__"])
def test_what_does_not_exist_is_an_unknown_name(name: str) -> None:
    assert refusal({name: True}).message == f"unknown option {name!r}"


@pytest.mark.parametrize("name", [1, None, ("stream",), b"stream", 2.5])
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    with pytest.raises(ConfigError, match=f"^names are text, not {type(name).__name__}$"):
        lower_chat_options({name: True})  # type: ignore[dict-item]


@given(st.text().filter(lambda name: name not in spellings(ChatModel)))
def test_any_text_is_refused_in_words_that_can_be_printed(name: str) -> None:
    str(refusal({name: 1})).encode()
    str(refusal({"sessions": {name: 1}})).encode()


def test_a_name_without_end_is_shown_in_part() -> None:
    assert len(str(refusal({"sessions": {"x" * 1_000_000: 1}}))) < 500
