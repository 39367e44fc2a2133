"""Schemathesis, every check on, finds nothing: single requests from the contract's examples and
limits, and chains.
"""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.live import NO_TLS, Live
from ..verify.runs import backend
from .reach import Reach, accepted
from .runner import Run, including, run

pytestmark = pytest.mark.check


@pytest.fixture(scope="module")
def live(small: Live) -> Live:
    """Forks, files and resets of small worlds."""
    return small


@pytest.fixture(scope="module")
def contract(live: Live) -> Any:
    return (
        httpx2.get(f"{live.url}/openapi.json", timeout=30, verify=NO_TLS).raise_for_status().json()
    )


@pytest.fixture(scope="module")
def singles(live: Live, tmp_path_factory: pytest.TempPathFactory, asked: dict[str, str]) -> Run:
    """The phases that do not depend on chance."""
    report = tmp_path_factory.mktemp("singles") / "events.ndjson"
    return run(live.url, ("examples", "coverage"), report, *including(asked.values()))


def test_every_answer_to_a_single_request_keeps_the_contract(singles: Run) -> None:
    """No 5xx, no undocumented status, header or body; nothing valid is refused, nothing
    invalid is taken.
    """
    assert singles.code == 0, singles.output[-20_000:]


def test_every_operation_is_accepted_in_single_requests(
    singles: Run, asked: dict[str, str]
) -> None:
    """A green run of refusals would prove nothing."""
    reach = Reach()
    reach.read(singles.report)
    assert [] == [name for name in asked if not accepted(reach.valid[name])]


def test_chains_of_linked_requests_keep_the_contract(live: Live, tmp_path: Path) -> None:
    """What was created is found, what was deleted is gone; each chain begins in a
    fork of its own.
    """
    chains = run(live.url, ("stateful",), tmp_path / "events.ndjson", "--max-examples=12")
    assert chains.code == 0, chains.output[-20_000:]
    reach = Reach()
    reach.read(chains.report)
    assert len(reach.valid) > 20


@pytest.mark.turn
def test_a_plan_that_is_gone_with_its_project_is_no_lost_creation(
    live: Live, tmp_path: Path
) -> None:
    """Schemathesis takes the 404 for one; the hook knows what was deleted in between."""
    done = chains_of(live.url, tmp_path, "createProject", "createPlan", "deleteProject", "getPlan")
    assert (0, True) == (done.code, "dropped by `filter_failure`" in done.output), done.output[
        -5000:
    ]


@pytest.mark.night
def test_a_lost_creation_is_still_found(tmp_path: Path) -> None:
    with backend(mutants=["create-not-kept"]) as url:
        token = httpx2.get(f"{url}/_sandbox/credentials", timeout=30, verify=NO_TLS).json()["jwt"]
        done = chains_of(url, tmp_path, "createProduct", "getProduct", token=token)
    assert (1, True) == (done.code, "ST302" in done.output), done.output[-5000:]


def chains_of(url: str, folder: Path, *operations: str, token: str = "") -> Run:
    """Chains of these operations alone."""
    report = folder / "events.ndjson"
    return run(
        url,
        ("stateful",),
        report,
        "--seed=1",
        "--max-examples=8",
        *including(operations),
        token=token,
    )
