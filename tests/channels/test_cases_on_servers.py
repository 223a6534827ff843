"""The cases of channels, on states that are servers."""

from __future__ import annotations

import itertools

import pytest

from tests.channels.test_turns import (
    test_a_debounced_message_is_run_once_its_line_has_settled,
    test_C12_an_own_message_starts_no_turn_and_makes_no_claim,
    test_C13_a_callable_scope_is_told_what_a_direct_message_is,
    test_C14_the_option_wins_over_the_scope_of_the_channel,
    test_C14_the_scope_of_the_channel_counts_if_the_option_is_unset,
    test_C17_a_dropped_message_is_not_recorded_and_not_answered,
    test_C18_a_refused_message_runs_when_it_comes_again,
    test_C26_an_answer_goes_to_its_thread_when_a_direct_caller_holds_the_lock,
    test_C26_groups_of_one_channel_are_answered_in_their_threads,
    test_parallel_turns_of_a_thread_wait_for_a_slot_as_stored_messages,
    test_waiting_messages_are_answered_together_with_queue,
)
from tests.channels.test_windows import (
    test_A01_without_a_window_the_current_message_is_alone,
    test_A02_a_backfill_has_the_newest_messages_of_the_platform,
    test_A02_a_thread_is_backfilled_once_by_the_bound_of_the_thread_history,
    test_A02_a_thread_is_not_backfilled_again_after_a_restart,
    test_A03_a_current_message_that_the_page_does_not_have_is_last,
    test_A03_the_live_message_takes_the_place_of_that_of_the_page,
    test_A04_a_backfill_that_raises_is_logged_and_the_turn_goes_on,
    test_A05_the_bot_is_assistant_and_everybody_else_is_user_with_a_name,
)
from tests.providers.conftest import postgres, sqld, sqld_servers

pytestmark = [pytest.mark.service, pytest.mark.slow]

_numbers = itertools.count()


@pytest.fixture(params=["sqld", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """Give the URL of a state on a server, with tables of its own."""
    return f"{request.getfixturevalue(request.param).url}#channels{next(_numbers)}_"


@pytest.fixture
def any_url(url: str) -> str:
    """Give the same."""
    return url


__all__ = [
    "postgres",
    "sqld",
    "sqld_servers",
    "test_A01_without_a_window_the_current_message_is_alone",
    "test_A02_a_backfill_has_the_newest_messages_of_the_platform",
    "test_A02_a_thread_is_backfilled_once_by_the_bound_of_the_thread_history",
    "test_A02_a_thread_is_not_backfilled_again_after_a_restart",
    "test_A03_a_current_message_that_the_page_does_not_have_is_last",
    "test_A03_the_live_message_takes_the_place_of_that_of_the_page",
    "test_A04_a_backfill_that_raises_is_logged_and_the_turn_goes_on",
    "test_A05_the_bot_is_assistant_and_everybody_else_is_user_with_a_name",
    "test_C12_an_own_message_starts_no_turn_and_makes_no_claim",
    "test_C13_a_callable_scope_is_told_what_a_direct_message_is",
    "test_C14_the_option_wins_over_the_scope_of_the_channel",
    "test_C14_the_scope_of_the_channel_counts_if_the_option_is_unset",
    "test_C17_a_dropped_message_is_not_recorded_and_not_answered",
    "test_C18_a_refused_message_runs_when_it_comes_again",
    "test_C26_an_answer_goes_to_its_thread_when_a_direct_caller_holds_the_lock",
    "test_C26_groups_of_one_channel_are_answered_in_their_threads",
    "test_a_debounced_message_is_run_once_its_line_has_settled",
    "test_parallel_turns_of_a_thread_wait_for_a_slot_as_stored_messages",
    "test_waiting_messages_are_answered_together_with_queue",
]
