"""Schemathesis, every check on, finds nothing: single requests from the contract's examples and limits, and chains."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.live import Live
from .reach import Reach, accepted, operations
from .runner import Run, run


@pytest.fixture(scope="module")
def contract(live: Live) -> Any:
    return httpx2.get(f"{live.url}/openapi.json", timeout=30).raise_for_status().json()


@pytest.fixture(scope="module")
def singles(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The phases that do not depend on chance."""
    return run(live.url, ("examples", "coverage"), tmp_path_factory.mktemp("singles") / "events.ndjson")


def test_every_answer_to_a_single_request_keeps_the_contract(singles: Run) -> None:
    """No 5xx, no undocumented status, header or body; nothing valid is refused, nothing invalid is taken."""
    assert singles.code == 0, singles.output[-20_000:]


def test_every_operation_is_accepted_in_single_requests(singles: Run, contract: Any) -> None:
    """A green run of refusals would prove nothing."""
    reach = Reach()
    reach.read(singles.report)
    assert [] == [name for name, _ in operations(contract) if not accepted(reach.valid[name])]


def test_chains_of_linked_requests_keep_the_contract(live: Live, tmp_path: Path) -> None:
    """What was created is found, what was deleted is gone; each chain begins in a fork of its own."""
    chains = run(live.url, ("stateful",), tmp_path / "events.ndjson", "--max-examples=12")
    assert chains.code == 0, chains.output[-20_000:]
    reach = Reach()
    reach.read(chains.report)
    assert len(reach.valid) > 20
