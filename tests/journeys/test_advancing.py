"""Time that passes with deliveries on the way: each in its turn, at its own instant, while others are served."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import httpx2
import pytest

from stub_server.delivery import advancing
from stub_server.delivery.courier import Courier

from ..support.live import NOW, Live
from ..support.make import Json, make_order
from ..support.receiver import Received, Receiver, receiving
from .hooks import CREATED, WEBHOOKS, Hook, advance, arrived, clients, drain, event, logs, only
from .steps import refused

START = datetime.fromisoformat(NOW)


@pytest.fixture(autouse=True)
def nobody_else(control: httpx2.Client) -> None:
    """The sandbox has nothing but what a test makes."""
    assert control.post("/reset", json={"scenario": "empty"}).status_code == 200


def after(seconds: float) -> str:
    """The instant so long after the start."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
    assert ["order.created", "order.created", "order.created", "order.expired", "order.expired"] == by_type
    expired = [log for log in logs(api, webhookId=made["id"]) if log["event_type"] == "order.expired"]
    assert {after(86_400), after(86_400 + 23 * 3600)} == {log["delivered_at"] for log in expired}
    assert first["id"] in receiver.requests[3].body.decode()


def test_the_clock_stands_where_a_delivery_is(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """A receiver that asks from its handler sees the sandbox at that instant, with what happened until then."""
    order = make_order(api)
    seen: list[tuple[str, str, str]] = []

    def decide(request: Received, number: int) -> int:
        now = control.get("/clock").json()
        seen.append((now["now"], api.get(f"/v2/orders/{order['id']}").json()["status"], str(now["complete"])))
        return 500 if number == 1 else 200

    receiver.decide = decide
    hook(events=["order.expired"])
    assert after(10 * 86_400) == advance(control, days=10)["now"]
    assert [(after(86_400), "expired", "False"), (after(86_405), "expired", "False")] == seen


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


def test_several_webhooks_are_told_side_by_side(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """None of two receivers answers before both have been asked: one after the other, neither ever would."""
    order = make_order(api)
    meeting = threading.Barrier(2, timeout=10)

    def decide(request: Received, number: int) -> int:
        meeting.wait()
        return 200

    with receiving() as other:
        receiver.decide = other.decide = decide
        webhooks = [hook(url=url, events=["order.expired"]) for url in (receiver.url, other.url)]
        assert advance(control, days=2)["complete"]
        for webhook in webhooks:
            assert ("delivered", after(86_400)) == (only(api, webhook)["status"], only(api, webhook)["delivered_at"])
            assert order["id"] in only(api, webhook)["request_body"]


def test_one_webhook_is_told_one_after_the_other(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Of several deliveries at one instant none begins before the one before it was answered."""
    under_way: list[int] = []
    most: list[int] = []

    def decide(request: Received, number: int) -> int:
        under_way.append(number)
        most.append(len(under_way))
        time.sleep(0.01)
        under_way.remove(number)
        return 200

    receiver.decide = decide
    for _ in range(4):
        make_order(api)
    hook(events=["order.expired"])
    advance(control, days=2)
    assert [1, 1, 1, 1] == most


def test_a_call_waits_only_so_long_and_the_rest_goes_on(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Then it is not complete and counts what is left; other clock calls are refused until it is, and reads are not."""
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
        assert all(way in told for way in ("/drain", "`wait_seconds`", "/_sandbox/clock shows", "/_sandbox/reset"))
    assert "expired" == api.get("/v2/orders?limit=1").json()["orders"][0]["status"]
    assert not drain(control, wait_seconds=0)["complete"]
    receiver.hold.set()
    drained = drain(control)
    assert (True, after(3 * 86_400), 0) == (drained["complete"], drained["now"], drained["deliveries"]["due"])
    assert control.get("/clock").json()["complete"]
    assert advance(control, seconds=1)["complete"]


@pytest.mark.parametrize("call", ["patch", "freeze"])
def test_the_other_clock_calls_wait_as_long(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client, call: str
) -> None:
    """Setting and freezing the clock go the same way, and the clock is frozen when it has come there."""
    make_order(api)
    hook(events=["order.expired"])
    assert control.patch("/clock", json={"frozen": False}).status_code == 200
    receiver.hold = threading.Event()
    to = after(3 * 86_400)
    if call == "patch":
        answer = control.patch("/clock", json={"to": to, "wait_seconds": 0})
    else:
        answer = control.patch("/clock", json={"to": to, "wait_seconds": 0, "frozen": True})
    clock = answer.json()
    assert (200, False, 1, False) == (answer.status_code, clock["complete"], clock["remaining"], clock["frozen"])
    receiver.hold.set()
    assert drain(control)["complete"]
    clock = control.get("/clock").json()
    assert call == ("freeze" if clock["frozen"] else "patch")
    assert to <= clock["now"]


def test_a_world_that_is_reset_while_its_clock_advances(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """The new one stands where it began, and its clock can be moved."""
    make_order(api)
    hook(events=["order.expired"])
    receiver.hold = threading.Event()
    assert not advance(control, days=3, wait_seconds=0)["complete"]
    assert control.post("/reset").status_code == 200
    assert after(1) == advance(control, seconds=1)["now"]
    receiver.hold.set()
    assert drain(control)["complete"]
    assert after(1) == control.get("/clock").json()["now"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/clock/advance", {"days": 3}),
        ("PATCH", "/clock", {"to": after(3 * 86_400), "frozen": True}),
    ],
)
def test_a_call_that_waits_in_a_world_that_is_reset_says_that_it_has_not_done_it(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client, method: str, path: str, body: Json
) -> None:
    make_order(api)
    hook(events=["order.expired"])
    receiver.hold = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(control.request, method, path, json=body)
        arrived(receiver, 1)
        assert control.post("/reset").status_code == 200
        receiver.hold.set()
        refused(waiting.result(), 503, "sandbox_unavailable")


def test_a_drain_of_a_world_that_is_reset_says_that_it_has_not_waited(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    drains, ended = threading.Event(), Courier.ended

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


def test_a_receiver_that_never_answers_costs_its_time_only(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt on the way has a shorter limit, and is recorded as timed out at its instant."""
    monkeypatch.setattr(advancing, "TIMEOUT", 0.1)
    make_order(api)
    made = hook(events=["order.expired"])
    receiver.hold = threading.Event()
    assert advance(control, days=1, seconds=10)["complete"]
    log = only(api, made)
    assert ("retrying", 2) == (log["status"], log["attempt_count"])
    assert {"timeout"} == {attempt["error"] for attempt in log["attempts"]}
    assert [after(86_400), after(86_405)] == [attempt["at"] for attempt in log["attempts"]]
    receiver.hold.set()


def test_a_switched_off_webhook_lets_the_clock_go_on(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """What waits for one webhook is called off with it, and the clock comes where it was to go."""
    for _ in range(3):
        make_order(api)
    made = hook(events=["order.expired"])
    receiver.hold = threading.Event()
    assert not advance(control, days=3, wait_seconds=0)["complete"]
    arrived(receiver, 1)
    assert api.put(f"{WEBHOOKS}/{made['id']}", json={"is_active": False}).status_code == 200
    receiver.hold.set()
    assert drain(control)["complete"]
    assert after(3 * 86_400) == control.get("/clock").json()["now"]
    assert {"canceled"} == {log["status"] for log in logs(api, webhookId=made["id"])}
    assert 1 == len(receiver.requests)


def test_a_running_clock_runs_on_from_where_it_has_come(serve: Callable[..., Live], receiver: Receiver) -> None:
    """It stands while deliveries are made on the way, and then goes on from its goal."""
    server = serve(now=None, scenario="empty")
    with clients(server) as (api, control):
        make_order(api)
        assert api.post(WEBHOOKS, json={"url": receiver.url, "events": ["order.expired"]}).status_code == 201
        seen: list[str] = []

        def decide(request: Received, number: int) -> int:
            seen.append(control.get("/clock").json()["now"])
            time.sleep(0.02)
            seen.append(control.get("/clock").json()["now"])
            return 200

        receiver.decide = decide
        moved = advance(control, days=2)
        assert 1 == len(set(seen))
        time.sleep(0.01)
        assert control.get("/clock").json()["now"] > moved["now"] > seen[0]


def test_how_long_to_wait_may_stand_beside_either_way_to_move(control: httpx2.Client) -> None:
    """By how much, or to when; both at once are refused as ever, and so is a wait that is too long."""
    assert after(60) == advance(control, minutes=1, wait_seconds=1)["now"]
    assert after(120) == advance(control, to=after(120), wait_seconds=0)["now"]
    for body in ({"to": after(180), "seconds": 1, "wait_seconds": 1}, {"seconds": 1, "wait_seconds": 31}):
        refused(control.post("/clock/advance", json=body), 422, "validation_error")
    refused(control.post("/webhooks/drain", json={"wait_seconds": -1}), 422, "validation_error")
    assert after(120) == control.get("/clock").json()["now"]
