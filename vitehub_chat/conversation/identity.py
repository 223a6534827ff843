"""Identity: whose message it is, as the owner of rows and sessions."""

from __future__ import annotations

from vitehub_chat.conversation import events
from vitehub_chat.conversation.asking import call_guarded
from vitehub_chat.conversation.invocation import build_context, describe_run, resolve_invoker
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import TurnRequest


async def find_user_key(policy: ChatPolicy, request: TurnRequest) -> str | None:
    """Return the user key of a request: its own, else what `identity` says, else None.

    An `identity` that raises means none, and is told in the log.
    """
    if request.user_key is not None or policy.identity is None:
        return request.user_key
    invoker = resolve_invoker(request)
    try:
        context = build_context(request, invoker, describe_run(request, invoker), None)
        named = await call_guarded(policy.identity, context)
    except Exception as error:  # noqa: BLE001 - told in the log; the message must not be lost
        events.identity_failed(error)
        return None
    return named if isinstance(named, str) and named else None
