"""The input of `chat.message`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.config.trigger_input import parse_chat_message
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.model.requests import (
    Invoker,
    Replacement,
    RunInfo,
    SessionChoice,
    TurnRequest,
)

HELLO: dict[str, object] = {
    "id": "m1",
    "role": "user",
    "parts": [{"type": "text", "text": "hello"}],
}
SECRET = "never to be seen"  # noqa: S105  a made-up one


def parse(**fields: object) -> TurnRequest:
    return parse_chat_message({"messages": [HELLO], **fields})


def refusal(fields: Mapping[str, object]) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_chat_message({"messages": [HELLO], **fields})
    return caught.value


def test_messages_alone_are_enough() -> None:
    message = Message("m1", "user", ({"type": "text", "text": "hello"},))
    assert parse() == TurnRequest(messages=(message,))


def test_everything_is_read_in_either_spelling() -> None:
    context = {"now": datetime(2026, 1, 1, tzinfo=UTC)}
    snake = parse_chat_message(
        {
            "messages": (Message("m0", "user", ()), HELLO),
            "run": {
                "tenant_id": "t",
                "channel_id": "portal",
                "thread_id": "th",
                "run_id": "r",
                "message_id": "m",
                "origin": "portal",
                "annotations": {"x": "1"},
            },
            "session": {"action": "new", "id": "s"},
            "trigger_history": {"source": "thread", "max_messages": 3, "max_age_ms": 5},
            "user": {"id": 7},
            "meta": {"email": "a@x.io"},
            "invoker": {"id": "k", "kind": "customer", "label": "K", "meta": {"q": 1}},
            "timeout_ms": 9,
            "context": context,
            "replace": {"kind": "edit", "message_id": "m0"},
            "chat_id": "c",
            "user_key": "u",
        }
    )
    camel = parse_chat_message(
        {
            "messages": [Message("m0", "user", ()), HELLO],
            "run": {
                "tenantId": "t",
                "channelId": "portal",
                "threadId": "th",
                "runId": "r",
                "messageId": "m",
                "origin": "portal",
                "annotations": {"x": "1"},
            },
            "session": {"action": "new", "id": "s"},
            "triggerHistory": {"source": "thread", "maxMessages": 3, "maxAgeMs": 5},
            "user": {"id": 7},
            "meta": {"email": "a@x.io"},
            "invoker": {"id": "k", "kind": "customer", "label": "K", "meta": {"q": 1}},
            "timeoutMs": 9,
            "context": context,
            "replace": {"kind": "edit", "messageId": "m0"},
            "chatId": "c",
            "userKey": "u",
        }
    )
    assert snake == camel
    assert snake == TurnRequest(
        messages=(
            Message("m0", "user", ()),
            Message("m1", "user", ({"type": "text", "text": "hello"},)),
        ),
        run=RunInfo(
            tenant_id="t",
            channel_id="portal",
            thread_id="th",
            run_id="r",
            message_id="m",
            origin="portal",
            annotations={"x": "1"},
        ),
        session=SessionChoice(action="new", id="s"),
        session_given=True,
        window=HistoryWindow(source="thread", max_messages=3, max_age=timedelta(milliseconds=5)),
        user={"id": 7},
        meta={"email": "a@x.io"},
        invoker=Invoker(id="k", kind="customer", label="K", meta={"q": 1}),
        timeout=timedelta(milliseconds=9),
        context=context,
        replace=Replacement(kind="edit", message_id="m0"),
        chat_id="c",
        user_key="u",
    )
    assert snake.context is context


def test_none_means_that_a_value_was_not_given() -> None:
    names = (
        *("run", "session", "trigger_history", "user", "meta", "invoker", "timeout_ms"),
        *("context", "replace", "chat_id", "user_key"),
    )
    assert parse(**dict.fromkeys(names)) == parse()


def test_any_mapping_will_do() -> None:
    frozen = MappingProxyType({"id": "u1"})
    request = parse_chat_message(MappingProxyType({"messages": [HELLO], "user": frozen}))
    assert request.user == {"id": "u1"}


@pytest.mark.parametrize("fields", [{}, {"messages": None}, {"messages": []}, {"messages": ()}])
def test_there_is_at_least_one_message(fields: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"^messages: .*a non-empty list of messages$"):
        parse_chat_message(fields)


@pytest.mark.parametrize("messages", ["hello", HELLO, 5, iter([HELLO]), {1: HELLO}])
def test_messages_are_a_list(messages: object) -> None:
    assert refusal({"messages": messages}).path == "messages"


@pytest.mark.parametrize("value", [None, 5, "text", [("messages", [HELLO])]])
def test_an_input_that_is_no_mapping_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="must be a mapping"):
        parse_chat_message(value)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (5, "messages[1]"),
        ({"parts": []}, "messages[1].role"),
        ({"role": "user"}, "messages[1].parts"),
        ({**HELLO, "id": 5}, "messages[1].id"),
        ({**HELLO, "id": "a\x00"}, "messages[1].id"),
        ({**HELLO, "metadata": []}, "messages[1].metadata"),
    ],
)
def test_a_message_that_is_none_is_named(message: object, path: str) -> None:
    assert refusal({"messages": [HELLO, message, HELLO]}).path == path


@pytest.mark.parametrize("parts", [[], [{"type": "text", "text": " \n\u200b"}], [{"type": "x"}]])
def test_a_current_message_that_says_nothing_is_refused(parts: list[object]) -> None:
    blank = {**HELLO, "parts": parts}
    assert len(parse(messages=[blank, HELLO]).messages) == 2
    error = refusal({"messages": [HELLO, blank]})
    assert (error.code, error.path) == ("empty_message", "messages[1]")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, SessionChoice()),
        ({"id": "s 1"}, SessionChoice(id="s 1")),
        ({"id": 42}, SessionChoice(id="42")),
        ({"id": -1}, SessionChoice(id="-1")),
        ({"id": 0}, SessionChoice(id="0")),
        ({"id": 10**40}, SessionChoice(id=str(10**40))),
        ({"id": ""}, SessionChoice()),
        ({"id": None}, SessionChoice()),
        ({"id": " "}, SessionChoice(id=" ")),
        ({"action": "switch", "id": "s"}, SessionChoice(action="switch", id="s")),
        ({"action": "new"}, SessionChoice(action="new")),
        ({"action": None, "id": "s"}, SessionChoice(id="s")),
    ],
)
def test_a_session_id_is_exact_text_or_an_integer(
    given: dict[str, object], expected: SessionChoice
) -> None:
    request = parse(session=given)
    assert (request.session, request.session_given) == (expected, True)


@pytest.mark.parametrize("value", [True, 2.0, [], {}, b"s", "a\n", "\ud800", "x" * 513, 10**600])
def test_another_session_id_is_refused(value: object) -> None:
    assert refusal({"session": {"id": value}}).path == "session.id"


def test_t38_a_run_with_both_spellings_is_refused() -> None:
    error = refusal({"run": {"threadId": "a", "thread_id": "a"}})
    assert error.path == "run.thread_id"
    assert ("'threadId'" in error.message, "'thread_id'" in error.message) == (True, True)


def test_an_empty_message_id_of_a_run_is_absent() -> None:
    assert parse(run={"message_id": ""}).run == RunInfo(message_id=None)


@pytest.mark.parametrize("name", ["tenant_id", "channelId", "thread_id"])
def test_a_place_is_not_empty_text_or_all_who_forget_it_share_one(name: str) -> None:
    with pytest.raises(InputError, match="non-empty"):
        parse(run={name: ""})


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"run": 5}, "run"),
        ({"run": {"thread": "a"}}, "run.thread"),
        ({"run": {"thread_id": 5}}, "run.thread_id"),
        ({"run": {"tenantId": "a\x7f"}}, "run.tenant_id"),
        ({"run": {"channel_id": "\ud800"}}, "run.channel_id"),
        ({"run": {"run_id": "x" * 513}}, "run.run_id"),
        ({"run": {"message_id": "\n"}}, "run.message_id"),
        ({"run": {"origin": 5}}, "run.origin"),
        ({"run": {"annotations": []}}, "run.annotations"),
        ({"run": {"annotations": {"x": 5}}}, "run.annotations"),
        ({"run": {"annotations": {5: "x"}}}, "run.annotations"),
        ({"session": "s"}, "session"),
        ({"session": {"action": "stop"}}, "session.action"),
        ({"session": {"ID": "s"}}, "session.ID"),
        ({"user": "u"}, "user"),
        ({"meta": []}, "meta"),
        ({"invoker": "k"}, "invoker"),
        ({"invoker": {}}, "invoker.id"),
        ({"invoker": {"id": ""}}, "invoker.id"),
        ({"invoker": {"id": 5}}, "invoker.id"),
        ({"invoker": {"id": "k", "email": "a@x"}}, "invoker.email"),
        ({"timeout_ms": 0}, "timeout_ms"),
        ({"timeoutMs": "5"}, "timeout_ms"),
        ({"timeout_ms": True}, "timeout_ms"),
        ({"timeout_ms": 10**30}, "timeout_ms"),
        ({"context": []}, "context"),
        ({"replace": {"kind": "edit"}}, "replace.message_id"),
        ({"replace": {"kind": "delete", "messageId": "m"}}, "replace.kind"),
        ({"replace": {"kind": "edit", "messageId": "a\x00"}}, "replace.message_id"),
        ({"chat_id": ""}, "chat_id"),
        ({"chat_id": 5}, "chat_id"),
        ({"userKey": "a\x00"}, "user_key"),
        ({"is_dm": True}, "is_dm"),
        ({"userKey": "a", "user_key": "a"}, "user_key"),
        ({"trigger_history": "none", "triggerHistory": "none"}, "trigger_history"),
    ],
)
def test_a_wrong_value_is_an_input_error_with_its_path(
    fields: dict[str, object], path: str
) -> None:
    assert refusal(fields).path == path


def test_history_is_answered_with_trigger_history() -> None:
    assert refusal({"history": []}).hint == "did you mean 'trigger_history'?"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("none", "none"),
        (
            {"source": "transcript", "maxMessages": 2},
            HistoryWindow(source="transcript", max_messages=2),
        ),
    ],
)
def test_a_window_of_a_call_replaces_the_option(given: object, expected: object) -> None:
    assert parse(trigger_history=given).window == expected


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("thread", "trigger_history"),
        (5, "trigger_history"),
        (False, "trigger_history"),
        ({"source": "thread"}, "trigger_history.max_messages"),
        ({"source": "thread", "max_messages": "20"}, "trigger_history.max_messages"),
        ({"source": "thread", "max_messages": 2.0}, "trigger_history.max_messages"),
        (
            {"source": "thread", "max_messages": 1, "maxMessages": 1},
            "trigger_history.max_messages",
        ),
        ({"source": "thread", "max_messages": 1, "limit": 1}, "trigger_history.limit"),
    ],
)
def test_a_window_of_a_call_is_checked_like_the_option(value: object, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(trigger_history=value)
    assert (caught.value.path, caught.value.code) == (path, "invalid_option")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_value_anywhere_is_taken_or_refused_with_a_type(value: object) -> None:
    for field in ("run", "session", "trigger_history", "user", "timeout_ms", "chat_id", "replace"):
        try:
            parse(**{field: value})
        except (InputError, ConfigError) as error:
            str(error).encode()


@pytest.mark.parametrize("field", ["run", "session", "invoker", "replace", "user", "timeout_ms"])
def test_no_error_shows_a_value(field: str) -> None:
    assert SECRET not in f"{refusal({field: SECRET})!r}"
