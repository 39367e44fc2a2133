"""Time: what is due happens in its order and at its instant, however far the clock
jumps at once.
"""

from ..conftest import Serve
from ..support.make import make_plan
from .stage import DAY, Stage, staged
from .steps import refused


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
