"""The pipeline: all steps of the normaliser, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from vitehub_chat.formatting.normaliser.authors import name_authors
from vitehub_chat.formatting.normaliser.blanks import drop_blanks
from vitehub_chat.formatting.normaliser.ends import fill_after_results, let_user_begin, trim_end
from vitehub_chat.formatting.normaliser.expanding import expand, keep_sayable
from vitehub_chat.formatting.normaliser.media import name_unshown
from vitehub_chat.formatting.normaliser.merging import merge
from vitehub_chat.formatting.normaliser.pairing import pair, separate_ids
from vitehub_chat.formatting.normaliser.reasoning import keep_own_reasoning
from vitehub_chat.formatting.normaliser.system_notes import place_system
from vitehub_chat.formatting.normaliser.tool_ids import fit_ids
from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.formatting.profiles import Profile
from vitehub_chat.formatting.turns import Turn


def normalise(
    turns: Sequence[Turn], profile: Profile, options: FormatOptions | None = None
) -> tuple[Turn, ...]:
    """Return turns that the provider of a profile accepts; repeating changes nothing.

    A leading system turn is the system slot. No visible text of a user or an assistant is lost,
    and every result stands directly behind its call.

    Raises:
        InputError: Nobody but the system says anything (`no_user_message`).
    """
    options = options or FormatOptions()
    turns = _paired(turns, options)
    turns = fit_ids(turns, profile.tool_ids)
    turns = name_unshown(turns, profile, options)
    turns = name_authors(turns, profile, options)
    turns = keep_own_reasoning(turns, profile, options)
    turns = place_system(turns, profile)
    if profile.filler or options.split_results:
        # Merging would hide where a result ends and what a user says begins.
        turns = fill_after_results(turns)
    turns = merge(turns, profile)
    if profile.user_first:
        turns = let_user_begin(turns)
    return trim_end(turns) if profile.trim_end else turns


def _paired(turns: Sequence[Turn], options: FormatOptions) -> tuple[Turn, ...]:
    # Ids are told apart while parts stand as they were said: then the nearest earlier call counts.
    expanded = expand(separate_ids(keep_sayable(turns)))
    return pair(drop_blanks(expanded), live_frontier=options.live_frontier)
