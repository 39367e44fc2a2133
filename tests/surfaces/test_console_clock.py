"""The page of the clock: what is due on a line of time, and every way forward; back by undo."""

import httpx2
import pytest

from ..support.console import Console
from ..support.live import NOW
from ..support.make import Json, Maker, done


def clock_of(control: httpx2.Client) -> Json:
    """The clock, as the control tells it."""
    return done(control.get("/clock"))


def test_it_shows_what_is_due_with_a_way_to_each(
    console: Console, control: httpx2.Client, make_order: Maker
) -> None:
    make_order()
    page = console.open("/console/clock")
    timers = control.get("/timers", params={"limit": 25}).json()["timers"]
    assert 25 == len(timers)
    for timer in timers:
        assert timer["id"] in page.response.text
    assert "20 Nov 2026, 11:32:05 frozen" in page.text
    assert 25 == len([form for form in page.forms if form.label == "Forward to it"])
    later = console.open("/console/clock?page=2")
    assert timers[0]["due"] not in [
        form.values.get("to") for form in later.forms if form.label == "Forward to it"
    ]


@pytest.mark.parametrize(
    ("label", "until"),
    [
        ("An hour", "2026-11-20T15:32:05.123Z"),
        ("A day", "2026-11-21T14:32:05.123Z"),
        ("A month", "2026-12-20T14:32:05.123Z"),
    ],
)
def test_a_click_moves_it_forward_and_undo_brings_it_back(
    console: Console, control: httpx2.Client, label: str, until: str
) -> None:
    moved = console.send(console.open("/console/clock"), label)
    assert until == clock_of(control)["now"]
    assert "Advance the clock : done." in moved.text
    assert "What happened on the way" in moved.text
    console.send(moved, "Undo")
    assert NOW == clock_of(control)["now"]


def test_it_goes_to_the_next_due_to_any_job_and_to_a_date(
    console: Console, control: httpx2.Client
) -> None:
    due = clock_of(control)["next_due"]
    page = console.send(console.open("/console/clock"), "To the next due")
    assert due == clock_of(control)["now"]
    third = [form for form in page.forms if form.label == "Forward to it"][2].values["to"]
    page = console.send(page, "To this date", to=third)
    assert third == clock_of(control)["now"]
    page = console.send(page, "To this date", to="2027-01-02T00:04")
    assert "2027-01-02T03:04:00.000Z" == clock_of(control)["now"]
    page = console.send(page, "To this date", to="2027-01-02T00:04:05.5")
    assert "2027-01-02T03:04:05.500Z" == clock_of(control)["now"]
    for wrong in (
        "tomorrow",
        "2026-01-01T00:00",
        "9" * 30,
        "2027-02-31T00:00",
        "\N{ARABIC-INDIC DIGIT TWO}",
    ):
        assert "was refused with 4" in console.send(page, "To this date", to=wrong).text, wrong
    for wrong in ("x", "-1", "9" * 14, "1.5"):
        assert "was refused with 4" in console.send(page, "A month", months=wrong).text, wrong


def test_it_freezes_and_runs(console: Console, control: httpx2.Client) -> None:
    page = console.send(console.open("/console/clock"), "Let it run")
    assert clock_of(control)["frozen"] is False
    assert "running" in page.text
    console.send(page, "Freeze")
    assert clock_of(control)["frozen"] is True


def test_a_move_leads_to_what_it_did(
    console: Console, control: httpx2.Client, make_order: Maker
) -> None:
    """From the page of the clock to the record, and to its event with the job that caused it."""
    order = make_order()
    control.post("/clock/advance", json={"days": 1, "wait_seconds": 5})
    page = console.open("/console/events?type=order.expired&resource_id=" + order["id"])
    (link,) = [link for link in page.links if "/console/events/evt_" in link]
    event = console.follow(page, link)
    assert "order.expire job" in event.text
    assert any(link.endswith(f"/console/data/orders/{order['id']}") for link in event.links)


def test_an_empty_sandbox_says_what_to_do(console: Console, control: httpx2.Client) -> None:
    assert 200 == control.post("/reset", json={"scenario": "empty"}).status_code
    page = console.open("/console/clock")
    assert "No job is scheduled" in page.text
    assert not [form for form in page.forms if "To the next due" in form.label]
    assert "No events yet" in console.open("/console/events").text
    assert "No webhooks yet" in console.open("/console/webhooks").text
    assert "No inbox is in use" in console.open("/console/inboxes").text
