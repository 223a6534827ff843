"""Profiles: what each provider accepts, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from vitehub_chat.errors import ConfigError

MediaKind = Literal["image", "audio", "file"]
Shape = Literal["chat", "ollama", "responses", "anthropic", "gemini", "bedrock"]

_BLOCK_SHAPES: Final = frozenset({"anthropic", "gemini", "bedrock"})

MEDIA_KINDS: Final[frozenset[str]] = frozenset({"image", "audio", "file"})


@attrs.frozen(kw_only=True)
class Profile:
    """What one provider accepts.

    Attributes:
        name: Its name.
        shape: The wire shape of its request fields.
        later_system: A system message behind others stays one (`native`), or becomes a `note` in
            a user text.
        merge: Neighbours of one role stay apart (`none`), become one text (`text`), or one turn
            of several blocks, tool results among them (`blocks`).
        user_first: Whether a user has to speak first.
        filler: Whether an assistant has to speak between a tool result and a user.
        tool_ids: The form of call ids: `any`, `alnum9` (9 letters or digits), `safe64` (1 to 64
            letters, digits, `_` and `-`).
        media: The kinds of media that users may send.
        assistant_media: Whether media may also stand in answers.
        author_names: Whether the author of a user message has a field of its own.
        reasoning: The form in which reasoning goes back: `thinking` blocks, the verbatim `item`,
            reasoning `content`, the `signature` of a call, or not at all.
        reasoning_providers: Whose reasoning may go back.
        trim_end: Whether a final assistant text must not end in white space.
    """

    name: str
    shape: Shape = "chat"
    later_system: Literal["native", "note"] = "native"
    merge: Literal["none", "text", "blocks"] = "none"
    user_first: bool = False
    filler: bool = False
    tool_ids: Literal["any", "alnum9", "safe64"] = "any"
    media: frozenset[MediaKind] = frozenset()
    assistant_media: bool = False
    author_names: bool = False
    reasoning: Literal["thinking", "item", "content", "signature"] | None = None
    reasoning_providers: frozenset[str] = frozenset()
    trim_end: bool = False

    def __attrs_post_init__(self) -> None:
        """Refuse rules that the wire shape cannot hold.

        Raises:
            ConfigError: `merge` or `later_system` does not go with `shape`.
        """
        takes_blocks = self.shape in _BLOCK_SHAPES
        if takes_blocks != (self.merge == "blocks"):
            hint = "use 'blocks'" if takes_blocks else "use 'none' or 'text'"
            raise ConfigError(
                f"profile {self.name!r}: {self.merge!r} does not go with shape {self.shape!r}",
                path="merge",
                hint=hint,
            )
        if takes_blocks and self.later_system == "native":
            raise ConfigError(
                f"profile {self.name!r}: shape {self.shape!r} takes no later system message",
                path="later_system",
                hint="use 'note'",
            )


_BUILT_IN = (
    Profile(name="openai_chat", media=frozenset({"image", "audio", "file"}), author_names=True),
    Profile(name="groq", media=frozenset({"image"}), author_names=True),
    Profile(
        name="deepseek",
        merge="text",
        author_names=True,
        reasoning="content",
        reasoning_providers=frozenset({"deepseek"}),
    ),
    Profile(
        name="mistral",
        later_system="note",
        merge="text",
        user_first=True,
        filler=True,
        tool_ids="alnum9",
        media=frozenset({"image"}),
    ),
    Profile(name="strict", later_system="note", merge="text", user_first=True, filler=True),
    Profile(name="ollama", shape="ollama", media=frozenset({"image"})),
    Profile(
        name="openai_responses",
        shape="responses",
        media=frozenset({"image", "file"}),
        reasoning="item",
        reasoning_providers=frozenset({"openai", "openai_responses"}),
    ),
    Profile(
        name="anthropic",
        shape="anthropic",
        later_system="note",
        merge="blocks",
        user_first=True,
        tool_ids="safe64",
        media=frozenset({"image", "file"}),
        reasoning="thinking",
        reasoning_providers=frozenset({"anthropic"}),
        trim_end=True,
    ),
    Profile(
        name="gemini",
        shape="gemini",
        later_system="note",
        merge="blocks",
        user_first=True,
        media=frozenset({"image", "audio", "file"}),
        assistant_media=True,
        reasoning="signature",
        reasoning_providers=frozenset({"gemini", "google", "google-gla", "google-vertex"}),
    ),
    Profile(
        name="bedrock",
        shape="bedrock",
        later_system="note",
        merge="blocks",
        user_first=True,
        tool_ids="safe64",
        media=frozenset({"image", "file"}),
        reasoning="thinking",
        reasoning_providers=frozenset({"bedrock"}),
        trim_end=True,
    ),
)

PROFILES: Final[Mapping[str, Profile]] = {profile.name: profile for profile in _BUILT_IN}
"""The built-in profiles by name."""


def find_profile(profile: str | Profile, more: Mapping[str, Profile] | None = None) -> Profile:
    """Return a profile by name; a `Profile` is returned as it is.

    Args:
        profile: A name or a profile.
        more: Further profiles by name; one of a built-in name replaces it.

    Raises:
        ConfigError: No profile has that name; the error lists all that there are.
    """
    if isinstance(profile, Profile):
        return profile
    known = {**PROFILES, **(more or {})}
    found = known.get(profile)
    if found is None:
        raise ConfigError(
            f"unknown profile {profile!r}",
            path="profile",
            hint=f"known: {', '.join(sorted(known))}",
        )
    return found
