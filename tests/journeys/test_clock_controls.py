"""How the clock is moved and where a world begins: by any unit, to an instant, from an instant."""

from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from .stage import Stage
from .steps import done, refused


@pytest.mark.parametrize(
    ("by", "passed"),
    [
        ({"days": 40}, timedelta(days=40)),
        ({"hours": 1.5}, timedelta(minutes=90)),
        ({"minutes": 0.0001}, timedelta(milliseconds=6)),
        ({"seconds": 0.001}, timedelta(milliseconds=1)),
        (
            {"days": 1, "hours": 2, "minutes": 3, "seconds": 4.005},
            timedelta(1, 2 * 3600 + 3 * 60 + 4, 5_000),
        ),
        ({"seconds": 0}, timedelta(0)),
    ],
)
def test_the_clock_advances_by_any_unit_and_several_add_up(
    stage: Stage, by: dict[str, float], passed: timedelta
) -> None:
    start = datetime.fromisoformat(stage.now())
    now = done(stage.control.post("/clock/advance", json=by))["now"]
    assert start + passed == datetime.fromisoformat(now) == datetime.fromisoformat(stage.now())


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ({}, {"body": "min"}),
        ({"days": -1}, {"days": "min"}),
        ({"hours": "2"}, {"hours": "type"}),
        ({"days": 3651}, {"days": "max"}),
        ({"weeks": 1}, {"weeks": "unknown_field"}),
        ({"to": "2030-01-01T00:00:00Z", "days": 1}, {"body": "invalid"}),
        ({"to": "tomorrow"}, {"to": "format"}),
    ],
)
def test_what_the_clock_cannot_be_advanced_by_is_refused(
    stage: Stage, by: dict[str, Any], expected: dict[str, str]
) -> None:
    """`to` stands alone; the rest is a number of units, and there is no other unit."""
    start = stage.now()
    assert expected == refused(
        stage.control.post("/clock/advance", json=by), 422, "validation_error"
    )
    assert start == stage.now()


@pytest.mark.parametrize(
    "now", ["1969-12-31T23:59:59Z", "9000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"]
)
def test_a_world_begins_neither_too_early_nor_too_late(control: httpx2.Client, now: str) -> None:
    assert {"now": "clock_too_far"} == refused(
        control.post("/reset", json={"now": now}), 409, "clock_too_far"
    )


@pytest.mark.parametrize("now", ["1970-01-01T00:00:00Z", "8999-12-31T23:59:59.999Z"])
def test_the_first_and_the_last_instant_serve(control: httpx2.Client, now: str) -> None:
    """Its records keep every law there too."""
    shown = done(control.post("/reset", json={"now": now}))["now"]
    assert shown[:19] == now[:19]
    assert done(control.get("/invariants"))["ok"] is True
