"""Time: what is due happens in its order and at its instant, however far the clock
jumps at once.
"""

from datetime import datetime, timedelta

from ..conftest import Serve
from ..support.contract import document
from ..support.make import make_plan
from .stage import DAY, Stage, staged
from .steps import refused


def at(text: str) -> datetime:
    """A date-time of the service."""
    return datetime.fromisoformat(text)


def test_jobs_are_done_in_the_order_of_their_time(stage: Stage) -> None:
    """However they were set; those that a job sets on the way take their place; each
    tells what it caused.
    """
    for magic in (
        "succeed_with_delay",
        "refund_after_payment",
        "expire_with_delay",
        "succeed_immediately",
        None,
    ):
        stage.order("pending", make_plan(stage.api, interval="day"), magic)
    unpaid = stage.subscription("active", interval="day")
    start = at(stage.now())
    fired = stage.advance(10 * DAY)
    times = [at(job["at"]) for job in fired]
    assert times == sorted(times)
    assert start <= times[0] <= times[-1] <= start + timedelta(days=10)
    jobs = {job["job"] for job in fired}
    assert {
        "order.pay",
        "order.refund",
        "order.expire",
        "subscription.renew",
        "subscription.end",
    } <= jobs
    ends = [job for job in fired if job["resource"] == unpaid["id"]]
    assert ["subscription.renew", "subscription.end", "subscription.expire"] == [
        job["job"] for job in ends
    ]
    for type_ in (type_ for job in fired for type_ in job["events"]):
        assert {"clock", "simulation"} & set(document().events[type_]["emitted_by"]), type_


def test_autopay_pays_every_order_so_long_after_it_was_made(serve: Serve, sink: str) -> None:
    """Renewals too: a subscription lives on by itself. A magic e-mail keeps its own will."""
    with staged(serve(autopay=90), "auto", sink) as stage:
        order = stage.order("pending", make_plan(stage.api, interval="week"))
        stubborn = stage.order("pending", None, "fill_never")
        stage.advance(89.999)
        assert stage.get_order(order["id"])["status"] == "pending"
        stage.advance(0.001)
        assert stage.get_order(order["id"])["status"] == "paid"
        stage.advance(70 * DAY)
        held = stage.subscription_of(order["id"])
        assert ("active", 10) == (held["status"], held["cycle"])
        assert stage.get_order(stubborn["id"])["status"] == "expired"


def test_the_clock_goes_forward_only_and_not_too_far(stage: Stage) -> None:
    for path, send in (("/clock/advance", stage.control.post), ("/clock", stage.control.patch)):
        refused(send(path, json={"to": stage.after(-1)}), 409, "clock_moves_forward_only")
        refused(send(path, json={"to": stage.after(3651 * DAY)}), 409, "clock_too_far")
