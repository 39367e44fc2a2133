"""Random sequences of requests never find the server and a small model of it of two minds."""

import subprocess
import sys
from pathlib import Path

import pytest

from .machine import play


@pytest.mark.short
def test_twenty_sequences_find_server_and_model_of_one_mind() -> None:
    """The next test plays more."""
    assert play(20).full >= 20


def in_a_process_of_its_own(code: str) -> list[str]:
    """The lines that code prints.

    Hypothesis draws by the constants of all modules that are loaded.
    """
    command = [sys.executable, "-c", code]
    ran = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.check
@pytest.mark.parametrize("sequences", [25, pytest.param(200, marks=pytest.mark.night)])
def test_no_sequence_finds_server_and_model_of_two_minds(
    sequences: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sequences of thirty steps, each looked at after every step and at its end; two hundred reach
    every rule.
    """
    played = (
        # as in tests/conftest.py: else it takes 7 % of the time
        "import gc; gc.set_threshold(5_000, 50, 10); from tests.properties.machine import play;"
        f" from tests.properties.reached import missing; tally = play({sequences});"
        f" print(tally.line()); print(*missing(tally, {sequences}), sep='; ')"
    )
    line, left = in_a_process_of_its_own(played)[-2:]
    with capsys.disabled():
        print(f"\n{line}")
    assert sequences < 200 or left == ""
