"""Asking: what the application's own functions say about a request."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.invocation import build_context, describe_run, resolve_invoker
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import TurnRequest


async def passes_filter(policy: ChatPolicy, request: TurnRequest) -> bool:
    """Tell whether the filter lets a message through; what it raises is raised."""
    if policy.filter is None:
        return True
    invoker = resolve_invoker(request)
    context = build_context(request, invoker, describe_run(request, invoker), None)
    answer = policy.filter(request.current, context)
    return bool(await answer if inspect.isawaitable(answer) else answer)


async def call_guarded(function: Callable[..., Awaitable[Any] | Any], *arguments: Any) -> Any:
    """Call a function of the application that may be async.

    Raises:
        ChatError: It cancelled itself (`turn_failed`).
        Exception: Whatever it raises.
    """
    with guarded():
        answer = function(*arguments)
        return await answer if inspect.isawaitable(answer) else answer
