"""Random sequences of requests never find the server and a small model of it of two minds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .machine import play

# `make model` plays more, and plants more.
SEQUENCES = 200
QUICK = (
    "bills_stay_open",
    "who_pays_again_has_two",
    "time_goes_on_while_suspended",
    "early_payment_moves_the_start",
    "cards_wait",
    "any_refund_ends_it",
)


def test_twenty_sequences_find_server_and_model_of_one_mind() -> None:
    """The two hundred of below in a tenth of the time, for the short run."""
    assert play(20).full >= 20


@pytest.mark.check
def test_no_sequence_finds_server_and_model_of_two_minds(capsys: pytest.CaptureFixture[str]) -> None:
    """Two hundred sequences of thirty steps, each looked at after every step and as a whole at its end.

    In a process of their own: Hypothesis draws by the constants of all modules that are loaded.
    """
    played = (
        "from tests.properties.machine import play; from tests.properties.reached import missing; "
        f"tally = play({SEQUENCES}); print(tally.line()); print(missing(tally, {SEQUENCES}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", played], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300
    )
    assert told.returncode == 0, told.stdout + told.stderr
    line, left = told.stdout.splitlines()[-2:]
    with capsys.disabled():
        print(f"\n{line}")
    assert left == "[]"


@pytest.fixture(scope="module")
def found() -> dict[str, str | None]:
    """What is found of each defect. They are planted in a process of their own: what is patched stays there."""
    command = [sys.executable, "-m", "tests.properties.planted", *QUICK]
    told = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stdout + told.stderr
    return dict(json.loads(told.stdout))


@pytest.mark.check
@pytest.mark.parametrize("name", QUICK)
def test_a_defect_in_a_rule_is_found(name: str, found: dict[str, str | None]) -> None:
    assert found[name] is not None
