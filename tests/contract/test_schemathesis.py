"""Schemathesis, every check on, finds nothing: single requests from the contract's examples and limits, and chains."""

from pathlib import Path

import pytest

from ..support.contract import document
from ..support.live import Live
from .runner import Run, never_accepted, operations_of, run


@pytest.fixture(scope="module")
def url(live: Live) -> str:
    """A sandbox that only these runs use."""
    return f"{live.url}/s/schemathesis"


@pytest.fixture(scope="module")
def singles(url: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The phases that do not depend on chance."""
    return run(url, ("examples", "coverage"), tmp_path_factory.mktemp("singles") / "events.ndjson")


def test_every_answer_to_a_single_request_keeps_the_contract(singles: Run) -> None:
    """No 5xx, no undocumented status, header or body; nothing valid is refused, nothing invalid is taken."""
    assert singles.code == 0, singles.output[-20_000:]


def test_nearly_every_operation_is_reached_by_single_requests(singles: Run, url: str) -> None:
    """A green run of refusals would prove nothing. What needs a record of its own to end is left to the chains."""
    endings = {"DELETE /v2/plans/{planId}", "DELETE /v2/projects/{projectId}", "DELETE /v2/products/{productId}"}
    operations = operations_of(url)
    assert len(operations) == len(document().operations)
    assert set(never_accepted(operations, singles.rates)) <= endings


def test_chains_of_linked_requests_keep_the_contract(url: str, tmp_path: Path) -> None:
    """What was created is found, what was deleted is gone; each chain begins in a fresh world."""
    chains = run(url, ("stateful",), tmp_path / "events.ndjson", "--max-examples=12")
    assert chains.code == 0, chains.output[-20_000:]
    assert len(chains.rates) > 20
