"""Defects of behaviour that every schema lets through turn the contract tests red."""

from pathlib import Path

import pytest

from .__main__ import PHASES, server
from .planted import DEFECTS
from .runner import run

pytestmark = pytest.mark.check

# The controls that move money: what a payer, a bank or the end of a period does.
CONTROLS = "^/(orders|subscriptions)/"
# The operations that show a defect, and which of our checks says it: none is found by a neighbour's luck.
SHOWN = {
    "delete_nothing": ("^/v2/plans", "", "what_is_deleted_is_gone"),
    "lose_creates": ("^/v2/projects", "", "what_is_written_is_read"),
    "lose_updates": ("^/v2/customers", "", "what_is_written_is_read"),
    "ignore_filter": ("^/v2/plans", "", "filters_and_orders_are_kept"),
    "pay_twice": (CONTROLS, "/_sandbox", "moves_are_those_of_the_contract"),
    "suspend_archived": ("^/v2/projects", "", "moves_are_those_of_the_contract"),
}


def test_every_defect_has_a_check() -> None:
    assert set(SHOWN) == set(DEFECTS)


@pytest.mark.parametrize("name", SHOWN)
def test_a_defect_that_keeps_the_schemas_is_found(name: str, tmp_path: Path) -> None:
    pattern, base, check = SHOWN[name]
    with server("tests.contract.planted", name) as url:
        found = run(
            url,
            PHASES[:3],
            tmp_path / "events.ndjson",
            f"--include-path-regex={pattern}",
            "--max-examples=10",
            "--max-failures=1",  # what it says first is what the defect is known by
            base=base,
        )
    assert (found.code, check in found.output) == (1, True), found.output[-5000:]
