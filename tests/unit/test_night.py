"""The page of a night."""

import sys
from datetime import UTC, datetime

from ..night.__main__ import PAGE, Part, Ran, page, run

NIGHT = datetime(2026, 11, 28, 3, 30, tzinfo=UTC)


def test_what_failed_is_named_and_shown() -> None:
    part = Part("broken", "fails", [sys.executable, "-c", "print('it broke'); raise SystemExit(3)"])
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    ran = run(part)
    text = page([ran, Ran(Part("fine", "works", []), 0, 60.0, ["12 passed"])], NIGHT)
    assert "Failed: broken." in text
    assert "| broken | fails | **failed** (exit code 3) |" in text
    assert "it broke" in text
    assert "| fine | works | passed | 1.0 |" in text
