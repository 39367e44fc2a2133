"""Timers alone: in the order of time, taken out before their time, put back, and never another's under one number."""

from hypothesis import given
from hypothesis import strategies as st

from stub_server.kernel.timers import SENDING, Timer, Timers


def timer(due: int, seq: int, job: str = "order.expire") -> Timer:
    """A timer of one merchant."""
    return Timer(due, seq, job, "m", f"subject-{seq}")


def taken(timers: Timers, until: int, most: int) -> list[Timer]:
    """So many attempts at most that are due."""
    found: list[Timer] = []
    while len(found) < most and (attempt := timers.claim(until)) is not None:
        found.append(attempt)
    return found


def test_timers_come_in_the_order_of_time_and_then_of_setting() -> None:
    timers, wanted = Timers(), [timer(5, 3), timer(5, 4), timer(7, 1), timer(9, 2)]
    for each in (wanted[2], wanted[3], wanted[0], wanted[1]):
        timers.put(each)
    assert wanted == timers.pending()
    found = []
    while (following := timers.next(8)) is not None:
        found.append(following)
        timers.discard(following)
    assert wanted[:3] == found
    assert (9, 1, 4) == (timers.next_due(), len(timers), timers.last)


@given(st.lists(st.one_of(st.integers(0, 10), st.integers(0, 400 * 86_400_000), st.none()), max_size=60))
def test_what_is_due_first_comes_first_however_timers_are_set_and_taken(moves: list[int | None]) -> None:
    """None takes out what is first, a number sets a timer of that instant."""
    timers, model = Timers(), list[Timer]()
    for seq, due in enumerate(moves, 1):
        if due is not None:
            timers.put(timer(due, seq))
            model.append(timer(due, seq))
        elif model:
            first = min(model)
            model.remove(first)
            timers.discard(first)
        assert (min(model).due if model else None, sorted(model)) == (timers.next_due(), timers.copy().pending())


def test_putting_and_taking_out_twice_does_it_once() -> None:
    timers, one = Timers(), timer(5, 1)
    timers.put(one)
    timers.put(one)
    assert [one] == timers.pending()
    timers.discard(one)
    timers.discard(one)
    assert (None, 0, []) == (timers.next_due(), len(timers), timers.pending())


def test_a_number_that_is_given_again_names_the_new_timer_alone() -> None:
    """A step was undone, and another one set its timers: what the first had set must not come back with them."""
    timers, undone, other = Timers(), timer(5, 1, "order.pay"), timer(7, 1)
    timers.put(undone)
    timers.discard(undone)
    timers.put(other)
    assert ([other], 7, other) == (timers.pending(), timers.next_due(), timers.next(10))
    twin = timers.copy()
    twin.discard(other)
    assert (None, 7) == (twin.next_due(), timers.next_due())


def test_what_is_regroup_is_still_there_and_can_be_put_back() -> None:
    timers, first, second = Timers(), timer(5, 1), timer(6, 2)
    timers.put(first)
    timers.put(second)
    timers.skip(first)
    assert (6, 2, [first, second]) == (timers.next_due(), len(timers), timers.pending())
    timers.put_back(timers.skipped)
    assert (5, {}) == (timers.next_due(), timers.skipped)
    timers.skip(first)
    timers.discard(first)
    assert ({}, [second]) == (timers.skipped, timers.pending())


def attempt(due: int, seq: int) -> Timer:
    """An attempt to send."""
    return timer(due, seq, SENDING)


def test_attempts_are_claimed_in_the_order_of_time_and_no_job_of_the_clock() -> None:
    timers, first, second, later = Timers(), attempt(5, 2), attempt(5, 3), attempt(9, 1)
    for each in (later, second, first, timer(4, 4)):
        timers.put(each)
    assert (4, 5, 4) == (timers.next_due(), timers.next_attempt(), len(timers))
    assert [first] == taken(timers, 8, 1)
    assert [second] == taken(timers, 8, 10)
    assert ([], 9, 2) == (taken(timers, 8, 10), timers.next_attempt(), timers.attempts_due(8))
    timers.discard(first)
    timers.release(second)
    timers.release(first)
    assert (5, 1, False) == (timers.next_attempt(), timers.attempts_due(8), timers.is_claimed(first))
    assert [second] == taken(timers, 8, 10)


def test_an_attempt_that_was_taken_out_and_put_back_is_claimed_once() -> None:
    """A step was undone and done again."""
    timers, one = Timers(), attempt(5, 1)
    for _ in range(3):
        timers.put(one)
        timers.discard(one)
    timers.put(one)
    assert 1 == timers.attempts_due(5)
    assert ([one], []) == (taken(timers, 5, 10), taken(timers, 5, 10))


def test_attempts_that_are_held_wait_until_they_are_not() -> None:
    timers, one = Timers(), attempt(5, 1)
    timers.put(one)
    taken(timers, 5, 1)
    timers.regroup(one, timers.on_hold)
    assert (None, 0, [one]) == (timers.next_attempt(), timers.attempts_due(5), timers.pending())
    timers.put_back(timers.on_hold)
    assert 5 == timers.next_attempt()
    taken(timers, 5, 1)
    timers.regroup(one, timers.on_hold)
    timers.discard(one)
    timers.put_back(timers.on_hold)
    assert (None, []) == (timers.next_attempt(), timers.pending())


def test_a_copy_has_every_attempt_due_that_somebody_is_at() -> None:
    """Whoever claimed one did so in the original."""
    timers, claimed, held, free = Timers(), attempt(5, 1), attempt(6, 2), attempt(7, 3)
    for each in (claimed, held, free):
        timers.put(each)
    taken(timers, 6, 2)
    timers.regroup(held, timers.on_hold)
    twin = timers.copy()
    assert [claimed, held, free] == taken(twin, 9, 10)
    assert [free] == taken(timers, 9, 10)


def test_an_attempt_with_nothing_to_send_rides_on_the_next_step() -> None:
    timers, one = Timers(), attempt(5, 1)
    timers.put(one)
    taken(timers, 5, 1)
    timers.regroup(one, timers.skipped)
    assert ({1: one}, None, 0) == (timers.skipped, timers.next_attempt(), timers.attempts_due(5))
    timers.put_back(timers.skipped)
    assert (5, None) == (timers.next_attempt(), timers.next_due())
