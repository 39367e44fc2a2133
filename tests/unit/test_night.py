"""The page of a night."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from ..night.__main__ import PAGE, ROOT, Part, Ran, page, run

NIGHT = datetime(2026, 11, 28, 3, 30, tzinfo=UTC)


@pytest.mark.check
@pytest.mark.turn
def test_a_night_says_on_a_page_what_ran_and_what_it_found() -> None:
    ended = subprocess.run([sys.executable, "-m", "tests.night", "size"], cwd=ROOT, capture_output=True, check=False)
    text = PAGE.read_text(encoding="utf-8")
    assert (0, b"") == (ended.returncode, ended.stderr)
    assert "Everything passed." in text
    assert "| size | how much there is to understand | passed |" in text
    assert "nodes" in text.partition("## size")[2]


def test_what_failed_is_named_and_shown() -> None:
    part = Part("broken", "fails", [sys.executable, "-c", "print('it broke'); raise SystemExit(3)"])
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    ran = run(part)
    text = page([ran, Ran(Part("fine", "works", []), 0, 60.0, ["12 passed"])], NIGHT)
    assert "Failed: broken." in text
    assert "| broken | fails | **failed** (exit code 3) |" in text
    assert "it broke" in text
    assert "| fine | works | passed | 1.0 |" in text
