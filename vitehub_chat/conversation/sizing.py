"""Sizing: counting messages once, although every turn needs their sizes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import attrs

from vitehub_chat import plugins
from vitehub_chat.conversation import events
from vitehub_chat.errors import ConfigError
from vitehub_chat.formatting.cleaning import close_current, frame_summary, gap_line, open_current
from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.model.estimates import CountKey, DescribedTool, EstimatorChoice
from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.model.messages import Message
from vitehub_chat.selection.tokens import BUILT_IN, estimator_for
from vitehub_chat.selection.tokens_counter import TokenCounter
from vitehub_chat.selection.views import FixedTexts

MAX_COUNTS: Final = 50_000
"""How many sizes are kept; the least used ones go."""


def counter_for(choice: EstimatorChoice, /, *, path: str = "context.estimator") -> TokenCounter:
    """Return the counter that a choice means; a name may be one of another distribution.

    May import and read files, which an event loop must not wait for.

    Raises:
        ConfigError: The name is unknown, or the choice is no estimator.
        MissingDependencyError: It needs an extra that is not installed.
    """
    if not isinstance(choice, str) or choice in BUILT_IN:
        return estimator_for(choice, path=path)
    made = plugins.token_estimators.get(choice, path=path)()
    if isinstance(made, str):
        raise ConfigError("must build an estimator, not a name", path=path)
    counter = estimator_for(made, path=path)
    if counter.name != choice and counter.name in BUILT_IN:
        events.tokens_fallback(wanted=choice, used=counter.name)
    return counter


class CountCache:
    """Sizes of messages by estimator, its version and a digest of the content; holds no text."""

    def __init__(self, most: int = MAX_COUNTS) -> None:
        self._most = most
        self._sizes: OrderedDict[CountKey, int] = OrderedDict()
        self._lock = ForkSafeLock()

    def __len__(self) -> int:
        return len(self._sizes)

    def count(self, counter: TokenCounter, message: Message, runes_per_token: float) -> int:
        """Return the size of the content of a message, counted only if that is not known."""
        key = counter.key(message, runes_per_token=runes_per_token)
        if key is None:
            return counter.count_content(message, runes_per_token=runes_per_token)
        with self._lock:
            known = self._sizes.get(key)
            if known is not None:
                self._sizes.move_to_end(key)
                return known
        size = counter.count_content(message, runes_per_token=runes_per_token)
        with self._lock:
            self._sizes[key] = size
            while len(self._sizes) > self._most:
                self._sizes.popitem(last=False)
        return size

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._sizes.clear()


@attrs.frozen(kw_only=True)
class Sizer:
    """Sizes by the rules of one policy."""

    counter: TokenCounter
    policy: ContextPolicy
    cache: CountCache

    def message(self, message: Message) -> int:
        """Return the size of a message with its overhead."""
        overhead = self.policy.message_overhead
        content = self.cache.count(self.counter, message, self.policy.runes_per_token)
        return content + (self.counter.message_overhead if overhead is None else overhead)

    def messages(self, messages: Sequence[Message]) -> int:
        """Return the size of messages together."""
        return sum(map(self.message, messages))

    def text(self, text: str) -> int:
        """Return the size of a text."""
        return self.counter.count_text(text) if text else 0

    def tools(self, tools: Sequence[DescribedTool]) -> int:
        """Return the size of what a model is told of tools."""
        return self.counter.count_tools(tools) if tools else 0

    def fixed_texts(self, *, wraps: bool) -> FixedTexts:
        """Return what the texts around a summary cost; `wraps`: the current message is marked."""
        given = self.policy.frame_overhead
        if given is not None:
            return FixedTexts(frame=0, wrapper=0, gap=_nothing, given=given)
        said = 0
        if self.policy.summary_placement == "user":
            said = self.counter.message_overhead
        return FixedTexts(
            frame=self.text(frame_summary("-")) + said,
            wrapper=self.text(close_current(open_current(""))) if wraps else 0,
            gap=lambda count: self.text(gap_line(count)) + said,
        )


def _nothing(_count: int) -> int:
    return 0
