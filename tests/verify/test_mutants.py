"""Mutants say how they must be found, and there is one of each promise that a run can see."""

import pytest

from stub_server.tools.verify.findings import CLASSES

from ..support.contract import document
from .mutants import every, unseen

pytestmark = [pytest.mark.check, pytest.mark.defects]


def test_each_mutant_says_how_it_must_be_found() -> None:
    mutants, hidden = every(), unseen()
    for mutant in mutants.values():
        assert mutant.kinds <= {*CLASSES}, mutant.name
        assert mutant.operations <= document().operations.keys(), mutant.name
    promises = {name.partition(" ")[0] for name in mutants if " " in name}
    assert (
        13
        == len(promises)
        == len({name.partition(" ")[0] for name in mutants if " " in name and name not in hidden})
    )
    assert all(hidden.values())
