"""Timers alone: in the order of time, taken out before their time, put back, and never another's under one number."""

from stub_server.kernel.timers import Timer, Timers


def timer(due: int, seq: int, job: str = "order.expire") -> Timer:
    """A timer of one merchant."""
    return Timer(due, seq, job, "m", f"subject-{seq}")


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


def test_what_is_set_aside_is_still_there_and_can_be_put_back() -> None:
    timers, first, second = Timers(), timer(5, 1), timer(6, 2)
    timers.put(first)
    timers.put(second)
    timers.set_aside(first)
    assert (6, 2, [first, second]) == (timers.next_due(), len(timers), timers.pending())
    timers.put_back()
    assert (5, {}) == (timers.next_due(), timers.aside)
    timers.set_aside(first)
    timers.discard(first)
    assert ({}, [second]) == (timers.aside, timers.pending())
