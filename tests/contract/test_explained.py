"""Of the refusals that schemathesis provokes, nearly all have a nearest request that succeeds as it
is pasted.
"""

import re
from pathlib import Path

import pytest

from ..conftest import Serve
from ..support.contract import document
from .explained import GOAL, JOURNAL, measure, table

pytestmark = [pytest.mark.check, pytest.mark.turn]


@pytest.mark.parametrize(
    "paths", ["^/v2/(orders|customers|subscriptions)", pytest.param("^/", marks=pytest.mark.night)]
)
def test_nearly_every_refusal_has_a_nearest_request_that_succeeds(
    serve: Serve, tmp_path: Path, paths: str
) -> None:
    """Of some operations; at night of all."""
    live, chosen = serve(journal=JOURNAL), f"--include-path-regex={paths}"
    measured = measure(
        f"{live.url}/s/explained", tmp_path, 150, chosen, phases=("examples", "coverage")
    )
    assert {
        name for name, each in document().operations.items() if re.match(paths, each.path)
    } <= measured.operations
    assert measured.good.total() > 90
    assert measured.share >= GOAL, f"{table(measured)}\n" + "\n".join(measured.reasons)
