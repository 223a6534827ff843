"""What the providers of each wire shape refuse, as a list of complaints about request fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from vitehub_chat.formatting.profiles import Profile

Fields = Mapping[str, Any]
Entries = Sequence[Mapping[str, Any]]

_ID_FORMS = {
    "any": re.compile(r".*", re.DOTALL),
    "alnum9": re.compile(r"[A-Za-z0-9]{9}"),
    "safe64": re.compile(r"[A-Za-z0-9_-]{1,64}"),
}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def complaints(profile: Profile, fields: Fields) -> list[str]:
    """Return everything that the provider of a profile would refuse."""
    return list(_CHECKS[profile.shape](profile, fields))


def _check_chat(profile: Profile, fields: Fields) -> Iterator[str]:
    messages: Entries = fields["messages"]
    yield from _check_list_order(profile, messages)
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            yield from _complain(not waiting, "result without a call")
            answered = waiting.pop(0) if waiting else None
            yield from _complain(answered != message["tool_call_id"], "result out of order")
            yield from _complain(not message["content"].strip(), "blank result")
            continue
        yield from _complain(bool(waiting), "call without a result")
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        yield from _check_ids(profile, waiting, seen)
        for call in message.get("tool_calls", ()):
            yield from _check_arguments(call["function"]["arguments"])
        yield from _check_content(message)
        name = message.get("name")
        yield from _complain(name is not None and not _NAME.fullmatch(name), "bad name")
    yield from _complain(bool(waiting), "call without a result")


def _check_ollama(profile: Profile, fields: Fields) -> Iterator[str]:
    messages: Entries = fields["messages"]
    yield from _check_list_order(profile, messages)
    waiting: list[str] = []
    for message in messages:
        yield from _complain(not isinstance(message["content"], str), "content is no text")
        if message["role"] == "tool":
            yield from _complain(not waiting, "result without a call")
            answered = waiting.pop(0) if waiting else None
            yield from _complain(answered != message["tool_name"], "result out of order")
            continue
        yield from _complain(bool(waiting), "call without a result")
        calls = [call["function"] for call in message.get("tool_calls", ())]
        waiting = [call["name"] for call in calls]
        bad = [call for call in calls if not isinstance(call["arguments"], dict)]
        yield from _complain(bool(bad), "arguments are no object")
        says = bool(message["content"].strip() or message.get("images") or calls)
        yield from _complain(not says, "empty message")
    yield from _complain(bool(waiting), "call without a result")


def _check_responses(profile: Profile, fields: Fields) -> Iterator[str]:
    waiting: list[str] = []
    seen: set[str] = set()
    is_answering = False
    for item in fields["input"]:
        if item["type"] == "function_call_output":
            is_answering = True
            yield from _complain(not waiting, "result without a call")
            answered = waiting.pop(0) if waiting else None
            yield from _complain(answered != item["call_id"], "result out of order")
            continue
        yield from _complain(is_answering and bool(waiting), "call without a result")
        is_answering = False
        if item["type"] == "function_call":
            yield from _check_ids(profile, [item["call_id"]], seen)
            yield from _check_arguments(item["arguments"])
            waiting.append(item["call_id"])
        elif item["type"] == "message":
            allowed = {"user", "assistant", "developer"}
            yield from _complain(item["role"] not in allowed, "role out of place")
            yield from _complain(item["role"] == "user" and bool(waiting), "user before a result")
            yield from _check_content(item)
    yield from _complain(bool(waiting), "call without a result")


def _check_anthropic(profile: Profile, fields: Fields) -> Iterator[str]:
    turns: Entries = fields["messages"]
    yield from _check_alternation([turn["role"] for turn in turns], "assistant")
    blocks = [turn["content"] for turn in turns]
    yield from _check_texts(blocks)
    yield from _check_block_pairs(
        profile,
        blocks,
        call=lambda block: block["id"] if block["type"] == "tool_use" else None,
        result=lambda block: block["tool_use_id"] if block["type"] == "tool_result" else None,
    )
    yield from _check_final_text(turns)


def _check_bedrock(profile: Profile, fields: Fields) -> Iterator[str]:
    turns: Entries = fields["messages"]
    yield from _check_alternation([turn["role"] for turn in turns], "assistant")
    blocks = [turn["content"] for turn in turns]
    yield from _check_texts(blocks)
    yield from _check_block_pairs(
        profile,
        blocks,
        call=lambda block: block["toolUse"]["toolUseId"] if "toolUse" in block else None,
        result=lambda block: block["toolResult"]["toolUseId"] if "toolResult" in block else None,
    )
    yield from _check_final_text(turns)
    names = [block["document"]["name"] for turn in blocks for block in turn if "document" in block]
    yield from _complain(len(names) != len(set(names)), "document name used twice")


def _check_gemini(profile: Profile, fields: Fields) -> Iterator[str]:
    turns: Entries = fields["contents"]
    yield from _check_alternation([turn["role"] for turn in turns], "model")
    blocks = [turn["parts"] for turn in turns]
    yield from _check_texts(blocks)
    for before, turn in pairwise([[], *blocks, []]):
        calls = [part["functionCall"]["name"] for part in before if "functionCall" in part]
        results = [part["functionResponse"]["name"] for part in turn if "functionResponse" in part]
        yield from _complain(calls != results, "calls and results differ")
        leading = turn[: len(results)]
        misplaced = any("functionResponse" not in part for part in leading)
        yield from _complain(misplaced, "results do not stand first")
    signed = [part for turn in blocks for part in turn if "thoughtSignature" in part]
    yield from _complain(any("functionCall" not in part for part in signed), "signed no call")
    yield from _complain(profile.merge != "blocks", "neighbours apart")


def _check_block_pairs(
    profile: Profile,
    turns: Sequence[Entries],
    *,
    call: Callable[[Mapping[str, Any]], str | None],
    result: Callable[[Mapping[str, Any]], str | None],
) -> Iterator[str]:
    seen: set[str] = set()
    for before, turn in pairwise([[], *turns, []]):
        calls = [found for block in before if (found := call(block)) is not None]
        results = [found for block in turn if (found := result(block)) is not None]
        yield from _check_ids(profile, calls, seen)
        yield from _complain(calls != results, "calls and results differ")
        leading = [result(block) for block in turn[: len(results)]]
        yield from _complain(None in leading, "results do not stand first")


def _check_list_order(profile: Profile, messages: Entries) -> Iterator[str]:
    roles = [message["role"] for message in messages]
    said = roles[1:] if roles[:1] == ["system"] else roles
    yield from _complain(not said, "nothing is said")
    yield from _complain(profile.user_first and said[:1] != ["user"], "user does not begin")
    if profile.later_system == "note":
        yield from _complain("system" in said, "later system message")
    for pair in pairwise(said):
        alike = pair[0] == pair[1] and pair[0] in {"user", "assistant"}
        yield from _complain(profile.merge == "text" and alike, "neighbours of one role")
        yield from _complain(profile.filler and pair == ("tool", "user"), "user behind a tool")


def _check_alternation(roles: Sequence[str], assistant: str) -> Iterator[str]:
    yield from _complain(roles[:1] != ["user"], "user does not begin")
    yield from _complain(not set(roles) <= {"user", assistant}, "unknown role")
    yield from _complain(any(a == b for a, b in pairwise(roles)), "neighbours of one role")


def _check_texts(turns: Sequence[Entries]) -> Iterator[str]:
    yield from _complain(not all(turns), "empty turn")
    texts = [block["text"] for turn in turns for block in turn if "text" in block]
    yield from _complain(not all(text.strip() for text in texts), "blank text")


def _check_final_text(turns: Entries) -> Iterator[str]:
    if turns[-1]["role"] == "assistant":
        texts = [block["text"] for block in turns[-1]["content"] if "text" in block]
        yield from _complain(bool(texts) and texts[-1] != texts[-1].rstrip(), "trailing space")


def _check_content(message: Mapping[str, Any]) -> Iterator[str]:
    content = message["content"]
    if content is None:
        yield from _complain(not message.get("tool_calls"), "empty message")
    elif isinstance(content, str):
        yield from _complain(not content.strip(), "blank text")
    else:
        yield from _complain(not content, "empty message")
        yield from _complain(message["role"] != "user", "media of a role other than the user")


def _check_arguments(arguments: str) -> Iterator[str]:
    yield from _complain(not isinstance(json.loads(arguments), dict), "arguments are no object")


def _check_ids(profile: Profile, ids: Sequence[str], seen: set[str]) -> Iterator[str]:
    form = _ID_FORMS[profile.tool_ids]
    for call_id in ids:
        yield from _complain(call_id in seen, "call id used twice")
        yield from _complain(not form.fullmatch(call_id), "call id of another form")
        seen.add(call_id)


def _complain(is_wrong: bool, complaint: str) -> Iterator[str]:  # noqa: FBT001
    if is_wrong:
        yield complaint


_CHECKS: Mapping[str, Callable[[Profile, Fields], Iterator[str]]] = {
    "chat": _check_chat,
    "ollama": _check_ollama,
    "responses": _check_responses,
    "anthropic": _check_anthropic,
    "gemini": _check_gemini,
    "bedrock": _check_bedrock,
}
