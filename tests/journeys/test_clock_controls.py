"""How the clock is moved and where a world begins: by any unit, to an instant, from an instant."""

import httpx2
import pytest

from ..support.make import done
from .steps import refused


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


def test_a_clock_that_is_only_told_how_long_to_wait_stays_as_it_is(
    control: httpx2.Client,
) -> None:
    before = done(control.get("/clock"))["frozen"]
    assert before is done(control.patch("/clock", json={"wait_seconds": 1}))["frozen"]
