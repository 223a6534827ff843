"""Format options: what a caller decides beside the profile."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from vitehub_chat.errors import ConfigError
from vitehub_chat.formatting.profiles import MEDIA_KINDS


def _check_media(_: object, __: object, value: Collection[str] | None) -> None:
    if value is None:
        return
    unknown = [value] if isinstance(value, str) else sorted(map(str, set(value) - MEDIA_KINDS))
    if unknown:
        raise ConfigError(
            f"{', '.join(map(repr, unknown))} is not allowed",
            path="media",
            hint=f"a collection of: {', '.join(sorted(MEDIA_KINDS))}",
        )


@attrs.frozen(kw_only=True)
class FormatOptions:
    """What a caller decides beside the profile.

    Attributes:
        speaker_prefix: Whether user texts begin with their author.
        thinking: Whether a DeepSeek model gets its own reasoning back.
        live_frontier: Whether calls of the last message may still be without result.
        split_results: Whether tool results share no turn with what a user says.
        media: The kinds of media to send, in place of the profile's; None leaves those.
    """

    speaker_prefix: bool = False
    thinking: bool = False
    live_frontier: bool = False
    split_results: bool = False
    media: Collection[str] | None = attrs.field(default=None, validator=_check_media)
