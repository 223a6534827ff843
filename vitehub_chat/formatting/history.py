"""History for a provider: messages as the request fields that one profile accepts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from vitehub_chat.formatting.normaliser.pipeline import normalise
from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.formatting.payload import Payload, Placement, build_payload
from vitehub_chat.formatting.profiles import Profile, Shape, find_profile
from vitehub_chat.formatting.reading import read_turns
from vitehub_chat.formatting.turns import Turn
from vitehub_chat.formatting.wire_anthropic import write_anthropic
from vitehub_chat.formatting.wire_bedrock import write_bedrock
from vitehub_chat.formatting.wire_chat import write_chat
from vitehub_chat.formatting.wire_gemini import write_gemini
from vitehub_chat.formatting.wire_ollama import write_ollama
from vitehub_chat.formatting.wire_responses import write_responses
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import check_not_empty
from vitehub_chat.model.parts import TextPart

_WRITERS: Final[Mapping[Shape, Callable[[Sequence[Turn]], dict[str, Any]]]] = {
    "chat": write_chat,
    "ollama": write_ollama,
    "responses": write_responses,
    "anthropic": write_anthropic,
    "gemini": write_gemini,
    "bedrock": write_bedrock,
}


def format_history(
    messages: Sequence[Message],
    profile: str | Profile,
    *,
    system: str | None = None,
    summary: str | None = None,
    current: Message | None = None,
    speaker_prefix: bool = False,
    thinking: bool = False,
    live_frontier: bool = False,
    split_results: bool = False,
    media: Collection[str] | None = None,
    summary_placement: Placement = "system",
    wrap_current: bool = True,
    not_shown: int = 0,
    profiles: Mapping[str, Profile] | None = None,
) -> dict[str, Any]:
    """Return the request fields in which one provider takes these messages, as JSON.

    The same arguments give the same fields in every process.

    `messages` come in order, without the current one. `system`, `summary`, `current`,
    `summary_placement`, `wrap_current` and `not_shown` are those of `build_payload`;
    `speaker_prefix`, `thinking`, `live_frontier`, `split_results` and `media` are those of
    `FormatOptions`. `profiles` are further ones by name.

    Raises:
        ConfigError: An unknown profile (all known ones are listed) or kind of media.
        InputError: The current message is blank (`empty_message`), or nobody but the system says
            anything (`no_user_message`).
    """
    chosen = find_profile(profile, profiles)
    options = FormatOptions(
        speaker_prefix=speaker_prefix,
        thinking=thinking,
        live_frontier=live_frontier,
        split_results=split_results,
        media=media,
    )
    if current is not None:
        check_not_empty(current, "current")
    payload = build_payload(
        messages,
        system=system,
        summary=summary,
        current=current,
        summary_placement=summary_placement,
        wrap_current=wrap_current,
        not_shown=not_shown,
    )
    return write_turns(normalise(payload_turns(payload), chosen, options), chosen)


def payload_turns(payload: Payload) -> tuple[Turn, ...]:
    """Return a payload as turns; a system slot is the first of them."""
    turns = read_turns(payload.messages)
    if payload.system is None:
        return turns
    return (Turn("system", (TextPart(payload.system),)), *turns)


def write_turns(turns: Sequence[Turn], profile: Profile) -> dict[str, Any]:
    """Put normalised turns into the wire shape of a profile."""
    return _WRITERS[profile.shape](turns)
