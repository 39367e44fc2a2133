"""Random sequences of requests never find the server and a small model of it of two minds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .machine import play

# `make model` plays more, and plants more.
SELDOM = {"not reached: money taken back once", "never refused: plan_not_active"}
SEQUENCES = ((100, SELDOM), pytest.param(200, set(), marks=pytest.mark.night))
"""How many are played, and what so many need not meet."""
QUICK = (
    "bills_stay_open",
    "who_pays_again_has_two",
    "time_goes_on_while_suspended",
    "early_payment_moves_the_start",
    "cards_wait",
    "any_refund_ends_it",
)


@pytest.mark.short
def test_twenty_sequences_find_server_and_model_of_one_mind() -> None:
    """The next test plays a hundred."""
    assert play(20).full >= 20


def in_a_process_of_its_own(code: str) -> list[str]:
    """The lines that code prints. Hypothesis draws by the constants of all modules that are loaded."""
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.check
@pytest.mark.parametrize(("sequences", "seldom"), SEQUENCES)
def test_no_sequence_finds_server_and_model_of_two_minds(
    sequences: int, seldom: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Sequences of thirty steps, each looked at after every step and as a whole at its end."""
    played = (
        "import gc; gc.set_threshold(5_000, 50, 10); "  # as in tests/conftest.py: else it takes 7 % of the time
        "from tests.properties.machine import play; from tests.properties.reached import missing; "
        f"tally = play({sequences}); print(tally.line()); print(*missing(tally, {sequences}), sep='; ')"
    )
    line, left = in_a_process_of_its_own(played)[-2:]
    with capsys.disabled():
        print(f"\n{line}")
    assert {*left.split("; ")} - {""} <= seldom


@pytest.fixture(scope="module")
def found() -> dict[str, str | None]:
    """What is found of each defect. They are planted in a process of their own: what is patched stays there."""
    command = [sys.executable, "-m", "tests.properties.planted", *QUICK]
    told = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stdout + told.stderr
    return dict(json.loads(told.stdout))


@pytest.mark.night
@pytest.mark.parametrize("name", QUICK)
def test_a_defect_in_a_rule_is_found(name: str, found: dict[str, str | None]) -> None:
    assert found[name] is not None
