"""Replies: what people see before an answer, and instead of one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from vitehub_chat.conversation import events
from vitehub_chat.conversation.asking import call_guarded
from vitehub_chat.errors import ChatError
from vitehub_chat.model.ids import pick
from vitehub_chat.model.policies import UNSET, ReplyPolicy, Unset

APOLOGY = "Sorry, something went wrong. Please try again."
MAX_WAIT = timedelta(seconds=30)


async def find_placeholder(reply: ReplyPolicy, context: Mapping[str, Any]) -> str | Unset | None:
    """Return what is posted before the answer: text, None for nothing, UNSET for the usual.

    The loading text wins. Of several texts one is drawn. A callable gets the context; what it
    returns besides text and None counts as unset, and so does raising.
    """
    if reply.loading is not None:
        return reply.loading
    given = reply.placeholder
    if callable(given):
        try:
            given = await call_guarded(_ask, given, context)
        except Exception as error:  # noqa: BLE001 - a decoration must not fail the turn
            events.fallback_failed(error)
            return UNSET
        return given if given is None or isinstance(given, str) else UNSET
    if isinstance(given, str) or given is None or given is UNSET:
        return given
    return pick(given) if isinstance(given, Sequence) and given else None


async def find_error_text(
    reply: ReplyPolicy, error: BaseException, limit: timedelta | None
) -> str | None:
    """Return what people see instead of an answer that failed; None is nothing.

    An error with a text `public_message` shows that. A callable gets the error and decides within
    the timeout of the turn or 30 s; raising or being late gives the apology.
    """
    given = reply.error_text
    if given is None:
        return None
    if callable(given):
        wait = MAX_WAIT if limit is None else min(limit, MAX_WAIT)
        try:
            async with asyncio.timeout(wait.total_seconds()):
                text = await call_guarded(_ask, given, error)
            return str(text) if text else None
        except Exception as failure:  # noqa: BLE001 - the first error is the one to report
            events.fallback_failed(failure)
            return APOLOGY
    return _public_text(error) or (given if isinstance(given, str) else APOLOGY)


def _public_text(error: BaseException) -> str | None:
    """Return what an error says for everybody to read, if it does."""
    try:
        text = getattr(error, "public_message", None)
    except Exception as failure:  # noqa: BLE001 - the first error is the one to report
        events.fallback_failed(failure)
        return None
    return str(text) if isinstance(text, str) and text.strip() else None


def error_code(error: BaseException) -> str:
    """Return the code of an error, `internal` for one that is not ours."""
    return error.code if isinstance(error, ChatError) else "internal"


async def _ask(function: Any, argument: object) -> object:
    """Call a function of the application, with the argument if it takes one."""
    try:
        inspect.signature(function).bind(argument)
    except TypeError:
        answer = function()
    except ValueError:
        answer = function(argument)
    else:
        answer = function(argument)
    return await answer if inspect.isawaitable(answer) else answer
