"""Of the refusals that schemathesis provokes, nearly all have a nearest request that succeeds as it is pasted."""

from pathlib import Path

from ..support.live import Live
from .explained import GOAL, measure, table


def test_nearly_every_refusal_has_a_nearest_request_that_succeeds(live: Live, tmp_path: Path) -> None:
    measured = measure(f"{live.url}/s/explained", tmp_path, 150, phases=("examples", "coverage"))
    assert measured.good.total() > 100
    assert measured.share >= GOAL, f"{table(measured)}\n" + "\n".join(measured.reasons)
