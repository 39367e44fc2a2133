"""The soak, short: nobody gets an answer that he should not get, and the invariants hold.

`make soak` runs it long.
"""

import pytest

from .clients import GOOD, KINDS
from .report import table
from .run import quantile, soak

pytestmark = pytest.mark.check

SECONDS = 20


@pytest.mark.promise("all-at-once")
@pytest.mark.night
def test_a_shared_server_survives_everybody_at_once() -> None:
    outcome = soak(SECONDS)
    assert [] == outcome.failures
    assert 64 == sum(kind.clients for kind in KINDS.values())
    quiet = {"slow"}  # they get no answer that anybody reads
    assert set(KINDS) - quiet == {kind for kind, _ in outcome.tally.statuses}
    print(
        f"p99 {quantile(outcome.times(GOOD), 0.99):.1f} ms, memory"
        f" {outcome.memory[-1][1] / 1024**2:.0f} MiB"
    )
    assert table(outcome).row_count == len(KINDS)
