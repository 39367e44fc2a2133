"""Timers alone: in the order of time, taken out before their time, put back, and never another's
under one number.
"""

from hypothesis import given
from hypothesis import strategies as st

from stub_server.core.timers import SENDING, Timer, Timers


def timer(due: int, seq: int, job: str = "order.expire") -> Timer:
    """A timer of one merchant."""
    return Timer(due, seq, job, "m", f"subject-{seq}")


def taken(timers: Timers, until: int, most: int) -> list[Timer]:
    """So many attempts at most that are due."""
    found: list[Timer] = []
    while len(found) < most and (attempt := timers.claim(until)) is not None:
        found.append(attempt)
    return found


@given(
    st.lists(
        st.one_of(st.integers(0, 10), st.integers(0, 400 * 86_400_000), st.none()), max_size=60
    )
)
def test_what_is_due_first_comes_first_however_timers_are_set_and_taken(
    moves: list[int | None],
) -> None:
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
        assert (min(model).due if model else None, sorted(model)) == (
            timers.next_due(),
            timers.copy().pending(),
        )


def attempt(due: int, seq: int) -> Timer:
    """An attempt to send."""
    return timer(due, seq, SENDING)


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
