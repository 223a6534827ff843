"""What two processes do that share a thread, on states that are servers.

With a file it is one of the homes of the tests themselves.
"""

from __future__ import annotations

import pytest

from tests.conversation.homes import PROCESSES_ON_SERVERS
from tests.conversation.test_debounce import (
    test_C07_what_comes_in_the_wait_is_answered_together_what_comes_later_by_itself,
    test_C08_a_message_alone_runs_after_the_wait_and_not_before,
)
from tests.conversation.test_leases import (
    test_C22_a_holder_that_lost_its_lease_writes_nothing_more,
)
from tests.conversation.test_repeats import test_C19_a_repeat_after_the_end_gets_the_recorded_answer
from tests.conversation.test_strategies import (
    test_C01_serial_gives_every_message_its_own_run_in_order,
    test_C02_queue_answers_what_waits_in_one_run,
    test_C18_a_refused_message_runs_when_it_is_sent_again,
    test_drop_and_reject_refuse_at_once_while_a_turn_runs,
    test_parallel_turns_share_no_lock,
)

pytestmark = pytest.mark.parametrize("set_scene", PROCESSES_ON_SERVERS, indirect=True)

__all__ = [
    "test_C01_serial_gives_every_message_its_own_run_in_order",
    "test_C02_queue_answers_what_waits_in_one_run",
    "test_C07_what_comes_in_the_wait_is_answered_together_what_comes_later_by_itself",
    "test_C08_a_message_alone_runs_after_the_wait_and_not_before",
    "test_C18_a_refused_message_runs_when_it_is_sent_again",
    "test_C19_a_repeat_after_the_end_gets_the_recorded_answer",
    "test_C22_a_holder_that_lost_its_lease_writes_nothing_more",
    "test_drop_and_reject_refuse_at_once_while_a_turn_runs",
    "test_parallel_turns_share_no_lock",
]
