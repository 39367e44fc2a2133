"""The laws of states, moves and changes: what they say of each other, of the schemas and
of the events.
"""

import pytest

from stub_server.domain.lifecycle import path
from stub_server.server.resolver import snake

from ..support.contract import document

API = document()
LIFECYCLES = API.lifecycles


@pytest.mark.parametrize("resource", LIFECYCLES)
def test_a_lifecycle_is_well_formed(resource: str) -> None:
    lifecycle = LIFECYCLES[resource]
    moves = [(move.from_, move.to) for move in lifecycle.moves]
    assert len({(move.from_, move.to, move.name) for move in lifecycle.moves}) == len(moves)
    assert all(lifecycle.sets.values())
    for move in lifecycle.moves:
        is_alone = move.from_ != move.to and moves.count((move.from_, move.to)) == 1
        assert (move.name is None) == is_alone
        assert move.by
    for state in lifecycle.states:
        assert path(lifecycle, "new", state), f"{state} is never reached"


def test_every_event_is_raised_by_a_move_or_another_change() -> None:
    """And each tells of the resource that has changed; a test tells of none."""
    raised: dict[str, set[str]] = {}
    for name, lifecycle in LIFECYCLES.items():
        for move in lifecycle.moves:
            for event in move.events:
                raised.setdefault(event, set()).add(name)
    for (record, _), events in API.changes.items():
        for event in events:
            raised.setdefault(event, set()).add(str(record))
    assert raised == {name: {str(event["record"])} for name, event in API.events.items()}


def test_a_change_that_moves_no_state_raises_the_event_of_its_name() -> None:
    for (name, change), events in API.changes.items():
        assert (f"{snake(name or 'Webhook')}.{change}",) == events
