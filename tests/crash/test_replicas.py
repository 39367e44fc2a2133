"""Two servers on one PostgreSQL lose nothing that they have acknowledged, whatever happens to them
and to it.
"""

import pytest

from .replicas import harassed

pytestmark = [pytest.mark.check, pytest.mark.turn]


@pytest.mark.night
def test_what_was_acknowledged_is_there_whatever_happens_to_servers_and_database() -> None:
    """`make crash` does so hundreds of times."""
    done = harassed(4, 1)
    assert [] == done.wrong
    assert len(done.events) >= 5
    assert done.acknowledged > 50
    assert done.statuses["503"]
