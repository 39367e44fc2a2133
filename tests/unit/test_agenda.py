"""The agenda: in the order of time, whatever comes when, near or far."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stub_server.kernel.agenda import Agenda

FAR = 400 * 86_400_000
MOVES = st.lists(st.one_of(st.integers(-FAR, FAR), st.integers(-10, 10), st.none()), max_size=60)


@pytest.mark.check
@given(MOVES)
def test_what_is_due_first_comes_first(moves: list[int | None]) -> None:
    """None takes out what is first, a number adds an entry of that instant."""
    agenda: Agenda[tuple[int, int]] = Agenda()
    model: list[tuple[int, int]] = []
    for number, due in enumerate(moves):
        if due is not None:
            agenda.add((due, number))
            model.append((due, number))
        elif model:
            model.sort()
            assert model.pop(0) == agenda.pop()
        assert min(model, default=None) == agenda.first()
        twin = agenda.copy()
        assert sorted(model) == [twin.pop() for _ in model]
    agenda.clear()
    assert agenda.first() is None


@given(st.lists(st.integers(0, FAR)), st.integers(0, FAR))
def test_quiet_says_so_only_when_nothing_is_due(dues: list[int], until: int) -> None:
    agenda: Agenda[tuple[int]] = Agenda()
    for due in dues:
        agenda.add((due,))
    if agenda.is_quiet(until):
        assert all(due > until for due in dues)
    agenda.first()
    assert agenda.is_quiet(until) == all(due > until for due in dues)
