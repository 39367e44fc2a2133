"""How the clock is moved and where a world begins: by any unit, to an instant, from an instant."""

from typing import Any

import httpx2
import pytest

from .stage import Stage
from .steps import done, refused


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
