"""Mutants say how they must be found, depart, and count as found by their class and operations alone."""

from typing import Any

import pytest

from stub_server.tools.verify.findings import CLASSES

from ..support.contract import document
from .mutants import every, unseen
from .runs import Outcome, missed

pytestmark = [pytest.mark.check, pytest.mark.defects]


def test_each_mutant_says_how_it_must_be_found() -> None:
    mutants, hidden = every(), unseen()
    for mutant in mutants.values():
        assert mutant.kinds <= {*CLASSES}, mutant.name
        assert mutant.operations <= document().operations.keys(), mutant.name
    promises = {name.partition(" ")[0] for name in mutants if " " in name}
    assert (
        13 == len(promises) == len({name.partition(" ")[0] for name in mutants if " " in name and name not in hidden})
    )
    assert all(hidden.values())


def test_a_mutant_counts_as_found_by_its_class_and_its_operations_alone() -> None:
    def divergence(kind: str, *operations: str, title: str = "") -> dict[str, Any]:
        return {"class": kind, "operations": [*operations], "title": title}

    def wrong(name: str, *divergences: dict[str, Any], code: int = 1) -> int:
        return len(missed(Outcome(code, 1.0, {"divergences": [*divergences]}, ""), [every()[name]], beside=1))

    found, beside = divergence("filter", "listPlans"), divergence("schema", "listPlans")
    name = "ignores listPlans status"
    assert 0 == wrong(name, found) == wrong(name, found, beside)
    assert 1 == wrong(name, found, beside, beside) == wrong(name, beside) == wrong(name)
    assert 1 == wrong(name, divergence("filter", "listPlans", "listOrders"))
    assert 1 == wrong(name, found, code=3)
    assert 0 == wrong("auth-ignored", divergence("auth", "listPlans", title="No credential is needed, everywhere"))
    assert 1 == wrong("auth-ignored", divergence("auth", "listPlans", title="No credential is needed"))
