"""`--write-overlay`: what is written closes what was found, and nothing is written
that does not.
"""

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.tools.verify.correcting import correct
from stub_server.tools.verify.findings import Finding, Said

from .mutants import every
from .reports import finding, ledger
from .runs import backend, shown, verify

pytestmark = [pytest.mark.check, pytest.mark.turn]
CLOSED = ("operation-missing", "other-success-status", "header-missing",
          "exceeds createProject long_description maxLength", "opens listOrders")  # fmt: skip


def only(*operations: str) -> list[str]:
    return [part for operation in sorted(operations) for part in ("--only", operation)]


@pytest.mark.parametrize("names", [CLOSED[:1], pytest.param(CLOSED[1:], marks=pytest.mark.night)])
def test_a_second_run_with_the_written_overlay_is_silent(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "corrections.yaml"
    departing = {name for mutant in names for name in every()[mutant].operations}
    operations = only(*departing)
    with backend(mutants=names) as url:
        first = verify(url, *operations, "--write-overlay", str(file))
        assert len(first.divergences) == len(names), first.output
        assert [] == [shown(each) for each in first.divergences if each["overlay"] is None]
        checked = CliRunner().invoke(main, ["check", "--overlay", str(file)])
        assert 0 == checked.exit_code, checked.output
        left = departing - every()["operation-missing"].operations | {"getProject"}
        second = verify(url, *only(*left), "--overlay", str(file))
        assert second.report["divergences"] == [], second.output


def test_a_proof_that_was_cut_says_nothing_about_overlays() -> None:
    loose = finding("laxer", target=Said(201, ""), expected=Said(422, ""))
    found = ledger([loose, finding("uniqueness")], ["createCustomer"])
    found.divergences = found.merge()

    async def cut(file: Path, names: Collection[str]) -> Collection[Finding] | None:
        return None

    asyncio.run(correct(found, cut))
    assert {"laxer": False, "uniqueness": True} == {
        it.kind: it.is_tried for it in found.divergences
    }
    assert [None, None] == [each.overlay for each in found.divergences]
