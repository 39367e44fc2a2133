"""Schemathesis, every check on, finds nothing in the control surface: single requests, and chains
by its links.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.live import NO_TLS, Live
from .__main__ import CONTRACTS
from .chains import DECLARED
from .reach import Reach, accepted, declared_links, is_taken, unreached
from .runner import Run, including, run

pytestmark = [pytest.mark.check, pytest.mark.turn]

BASE, SETTINGS = CONTRACTS["control"]


@pytest.fixture(scope="module")
def live(small: Live) -> Live:
    """Forks, files and resets of small worlds."""
    return small


@pytest.fixture(scope="module")
def contract(live: Live) -> Any:
    return (
        httpx2.get(f"{live.url}{BASE}/openapi.json", timeout=30, verify=NO_TLS)
        .raise_for_status()
        .json()
    )


@pytest.fixture(scope="module")
def singles(live: Live, tmp_path_factory: pytest.TempPathFactory, asked: dict[str, str]) -> Run:
    """The phases that do not depend on chance, and where all is asked a little of the one
    that does.
    """
    report = tmp_path_factory.mktemp("control") / "events.ndjson"
    phases = ("examples", "coverage", *(("fuzzing",) if len(asked) > 8 else ()))
    options = ("--max-examples=5", *including(asked.values()))
    return run(live.url, phases, report, *options, base=BASE, more=SETTINGS)


def test_every_answer_to_a_single_request_keeps_the_contract(singles: Run) -> None:
    """No 5xx, no undocumented status, header or body; nothing valid is refused, nothing
    invalid is taken.
    """
    assert singles.code == 0, singles.output[-20_000:]


def test_every_control_is_accepted_in_single_requests(
    singles: Run, contract: Any, asked: dict[str, str]
) -> None:
    """But for those that are left out of the run, each with its reason."""
    reach = Reach()
    reach.read(singles.report)
    left_out = {name for name, status in unreached(contract) if status == "every"}
    assert left_out & {*asked} == {
        name for name in asked if not accepted(reach.valid.get(name, Counter()))
    }


@pytest.mark.night
def test_chains_of_linked_requests_keep_the_contract(live: Live, tmp_path: Path) -> None:
    """What was made is found, what was deleted is gone; each chain begins in a fork of its own."""
    report = tmp_path / "events.ndjson"
    chains = run(
        live.url, ("stateful",), report, "--max-examples=12", base=BASE, more=SETTINGS + DECLARED
    )
    assert chains.code == 0, chains.output[-20_000:]
    reach = Reach()
    reach.read(chains.report)
    assert len(reach.valid) > 10


@pytest.mark.night
@pytest.mark.parametrize("begun", ["rotateSandbox", "cancelOrder"])
def test_a_chain_begins_with_what_is_not_refused(
    live: Live, contract: Any, tmp_path: Path, begun: str
) -> None:
    """Of what is made up for these, nothing is there, or always the same that they refuse."""
    links = [link for link in declared_links(contract) if link.source == begun]
    asked = {name for link in links for name in (link.source, link.target)}
    chains = run(
        live.url,
        ("stateful",),
        tmp_path / "events.ndjson",
        "--max-examples=8",
        *including(asked),
        base=BASE,
        more=SETTINGS + DECLARED,
    )
    reach = Reach()
    reach.read(chains.report)
    assert [] == [link.name for link in links if not is_taken(link, reach)]
