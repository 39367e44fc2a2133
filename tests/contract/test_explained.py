"""Of the refusals that schemathesis provokes, nearly all have a nearest request that succeeds as it is pasted."""

from pathlib import Path

import pytest

from ..conftest import Serve
from ..support.contract import document
from .explained import GOAL, JOURNAL, measure, table

pytestmark = pytest.mark.check


def test_nearly_every_refusal_has_a_nearest_request_that_succeeds(serve: Serve, tmp_path: Path) -> None:
    live = serve(journal=JOURNAL)
    measured = measure(f"{live.url}/s/explained", tmp_path, 150, phases=("examples", "coverage"))
    assert document().operations.keys() <= measured.operations
    assert measured.good.total() > 90
    assert measured.share >= GOAL, f"{table(measured)}\n" + "\n".join(measured.reasons)
