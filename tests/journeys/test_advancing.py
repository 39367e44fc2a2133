"""Time that passes with deliveries on the way: each in its turn, at its own instant, while others
are served.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import httpx2
import pytest

from stub_server.webhooks.courier import Courier

from ..support.live import NOW
from ..support.make import make_order
from ..support.receiver import Received, Receiver
from .hooks import CREATED, Hook, advance, arrived, drain, event, logs
from .steps import refused

START = datetime.fromisoformat(NOW)


@pytest.fixture(autouse=True)
def nobody_else(control: httpx2.Client) -> None:
    """The sandbox has nothing but what a test makes."""
    assert control.post("/reset", json={"scenario": "empty"}).status_code == 200


def after(seconds: float) -> str:
    """The instant so long after the start."""
    return (
        (START + timedelta(seconds=seconds))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def told(receiver: Receiver) -> list[tuple[str, str]]:
    """The types of the events that arrived and when they happened, in the order of arrival."""
    found = []
    for request in receiver.requests:
        payload = httpx2.Response(200, content=request.body).json()
        found.append((payload["type"], payload["timestamp"]))
    return found


def test_what_happens_on_the_way_arrives_in_the_order_of_its_time(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Orders expire, and retries of what failed before fall due between them."""
    receiver.decide = lambda request, number: 500 if number == 1 else 200
    made = hook(events=["order.created", "order.expired"])
    first = make_order(api)
    advance(control, hours=23)
    make_order(api)
    advance(control, days=2)
    by_type = [kind for kind, _ in told(receiver)]
    assert [
        "order.created",
        "order.created",
        "order.created",
        "order.expired",
        "order.expired",
    ] == by_type
    expired = [
        log for log in logs(api, webhookId=made["id"]) if log["event_type"] == "order.expired"
    ]
    assert {after(86_400), after(86_400 + 23 * 3600)} == {log["delivered_at"] for log in expired}
    assert first["id"] in receiver.requests[3].body.decode()


def test_a_write_from_a_handler_belongs_to_its_instant(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """What a receiver does there happens then, and is told before the clock goes on."""
    make_order(api)

    def decide(request: Received, number: int) -> int:
        if b"order.expired" in request.body:
            event(api)
        return 200

    receiver.decide = decide
    hook(events=["order.expired", *CREATED])
    advance(control, days=10)
    assert [("order.expired", after(86_400)), ("customer.created", after(86_400))] == told(receiver)


def test_a_call_waits_only_so_long_and_the_rest_goes_on(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Then it is not complete and counts what is left; other clock calls are refused until it is,
    and reads are not.
    """
    make_order(api)
    hook(events=["order.expired"])
    receiver.hold = threading.Event()
    moved = advance(control, days=3, wait_seconds=0.05)
    assert (False, 1, after(86_400)) == (moved["complete"], moved["remaining"], moved["now"])
    clock = control.get("/clock").json()
    assert (False, 1, after(86_400)) == (clock["complete"], clock["remaining"], clock["now"])
    for answer in (
        control.post("/clock/advance", json={"seconds": 1}),
        control.patch("/clock", json={"to": after(9 * 86_400)}),
        control.patch("/clock", json={"frozen": True}),
        control.patch("/clock", json={"to": after(9 * 86_400), "frozen": True}),
        control.patch("/clock", json={"frozen": False}),
    ):
        refused(answer, 409, "clock_advancing")
        assert "4" == answer.headers["Retry-After"]
        told = answer.json()["message"]
        assert all(
            way in told
            for way in ("/drain", "`wait_seconds`", "/_sandbox/clock shows", "/_sandbox/reset")
        )
    assert "expired" == api.get("/v2/orders?limit=1").json()["orders"][0]["status"]
    assert not drain(control, wait_seconds=0)["complete"]
    receiver.hold.set()
    drained = drain(control)
    assert (True, after(3 * 86_400), 0) == (
        drained["complete"],
        drained["now"],
        drained["deliveries"]["due"],
    )
    assert control.get("/clock").json()["complete"]
    assert advance(control, seconds=1)["complete"]


def test_a_drain_of_a_world_that_is_reset_says_that_it_has_not_waited(
    api: httpx2.Client,
    hook: Hook,
    receiver: Receiver,
    control: httpx2.Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drains = threading.Event()
    ended = Courier.ended

    async def watched(courier: Courier) -> None:
        drains.set()
        await ended(courier)

    monkeypatch.setattr(Courier, "ended", watched)
    hook(events=["order.created"])
    receiver.hold = threading.Event()
    make_order(api)
    arrived(receiver, 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(control.post, "/webhooks/drain")
        assert drains.wait(20)
        assert control.post("/reset").status_code == 200
        receiver.hold.set()
        refused(waiting.result(), 503, "sandbox_unavailable")
