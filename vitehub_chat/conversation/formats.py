"""Formats: a stored conversation as the request fields that one provider accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final, TypedDict

from vitehub_chat import plugins
from vitehub_chat.conversation.retention import age_limit
from vitehub_chat.errors import ConfigError
from vitehub_chat.formatting.history import format_history
from vitehub_chat.formatting.payload import Placement
from vitehub_chat.formatting.profiles import PROFILES, Profile
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import to_model_messages
from vitehub_chat.model.policies import ChatPolicy, SessionPolicy
from vitehub_chat.model.ui_messages import read_messages
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import SessionRequest, WindowRequest, WindowRows

EVERYTHING: Final = 2**31 - 1
"""More rows than a conversation has."""


class FormatKeywords(TypedDict, total=False):
    """What a caller may decide beside the profile, see `format_history`."""

    system: str | None
    summary: str | None
    current: Mapping[str, Any] | Message | None
    speaker_prefix: bool
    thinking: bool
    live_frontier: bool
    split_results: bool
    media: Collection[str] | None
    summary_placement: Placement
    wrap_current: bool


async def format_rows(
    state: AgentState,
    key: ConversationKey,
    profile: str | Profile,
    *,
    session_id: str | None,
    policy: ChatPolicy,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the rows that a model may see in the wire shape of a profile.

    Raises:
        ConfigError: The profile or an option is unknown.
        InputError: Nobody but the system says anything, or the current message cannot be one.
    """
    for name in options:
        if name not in FormatKeywords.__annotations__:
            raise ConfigError.unknown_name(name, FormatKeywords.__annotations__, path=name)
    chosen = await find_format(profile)
    window = await _read(state, key, session_id, policy)
    given = {**_defaults(policy, window), **options}
    if given.get("current") is not None:
        (current,) = to_model_messages(read_messages([given["current"]]))
        given["current"] = current
    rows = [row.message for row in window.shown]
    return format_history(to_model_messages(rows), chosen, **given)


async def find_format(profile: str | Profile) -> Profile:
    """Return a profile, a built-in one or one of another distribution.

    Raises:
        ConfigError: No profile has that name; the error lists all that there are.
    """
    if isinstance(profile, Profile):
        return profile
    if profile in PROFILES:
        return PROFILES[profile]
    return await asyncio.to_thread(_find_installed, profile)


def _find_installed(name: str) -> Profile:
    if not plugins.formats.knows(name):
        known = sorted({*PROFILES, *plugins.formats.names()})
        raise ConfigError(
            f"unknown profile {name!r}", path="profile", hint=f"known: {', '.join(known)}"
        )
    made = plugins.formats.get(name, path="profile")()
    if not isinstance(made, Profile):
        raise ConfigError(f"{name!r} of the group {plugins.formats.group!r} builds no profile")
    return made


async def _read(
    state: AgentState, key: ConversationKey, session_id: str | None, policy: ChatPolicy
) -> WindowRows:
    window = policy.window
    request = WindowRequest(
        limit=EVERYTHING if window is None else window.max_messages,
        whole_conversation=session_id is None,
        not_older_than=age_limit(policy.prune, state.clock.now()),
        from_anchor=True,
    )
    session = None
    if session_id is not None:
        asked = SessionRequest(conversation=key, policy=SessionPolicy(), base=session_id)
        session = await state.sessions.resolve(asked)
    return await state.transcripts.window(key, session=session, window=request)


def _defaults(policy: ChatPolicy, window: WindowRows) -> dict[str, Any]:
    """Return the summary of the session, and where the agent puts it."""
    found: dict[str, Any] = {}
    if window.rolling is not None and window.rolling.summary:
        found["summary"] = window.rolling.summary
    if policy.context is not None:
        found["summary_placement"] = policy.context.summary_placement
        found["wrap_current"] = policy.context.wrap_current
    return found
