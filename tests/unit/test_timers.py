"""Timers alone: how many are due is known however many lie ahead."""

from time import thread_time

import pytest

from stub_server.core.timers import SENDING, Timer, Timers


@pytest.mark.promise("nothing-request-costs-more-length")
def test_counting_what_is_due_does_not_look_at_what_lies_ahead() -> None:
    """Each health check walked through all attempts of a sandbox."""
    seconds = []
    for ahead in (10, 100_000):
        timers = Timers()
        for number in range(ahead):
            timers.put(Timer(max(0, number - 4), number, SENDING, "merchant", "delivery"))
        began = thread_time()
        assert {5} == {timers.attempts_due(0) for _ in range(100)}
        seconds.append(thread_time() - began)
    assert seconds[1] < 20 * seconds[0]
