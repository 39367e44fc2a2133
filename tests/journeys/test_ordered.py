"""Webhooks that are told in order: an event waits while an earlier one is tried again."""

import time
from datetime import datetime
from operator import itemgetter

import httpx2
import pytest

from ..support.live import NOW
from ..support.make import Json
from ..support.receiver import Received, Receiver
from .hooks import CREATED, LOGS, WEBHOOKS, Hook, advance, arrived, drain, event, logs
from .steps import done

EVENTS = 4


@pytest.fixture(autouse=True)
def nobody_else(control: httpx2.Client) -> None:
    """The sandbox has nothing but what a test makes."""
    assert control.post("/reset", json={"scenario": "empty"}).status_code == 200


def happened(control: httpx2.Client) -> list[str]:
    """The ids of the events so far, in their order."""
    return [found["id"] for found in control.get("/events", params={"type": CREATED[0]}).json()["events"]][::-1]


def ids(receiver: Receiver) -> list[str]:
    """The ids of the events that arrived."""
    return [request.headers["webhook-id"] for request in receiver.requests]


def waiting(control: httpx2.Client) -> Json:
    """How things stand when nothing is due."""
    drained = drain(control)
    assert drained["complete"]
    found: Json = drained["deliveries"]
    return found


def test_later_events_wait_for_one_that_is_tried_again(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Then they are sent at once, in the order in which they happened."""
    receiver.decide = lambda request, number: 200 if number > 2 else 503
    made = hook(events=CREATED, ordered=True)
    for _ in range(EVENTS):
        event(api)
    assert {"due": 0, "in_flight": 0, "held": EVENTS - 1} == waiting(control)
    first, *others = happened(control)
    assert [first] == ids(receiver)
    assert advance(control, seconds=5)["complete"]
    assert [first, first] == ids(receiver)
    event(api)
    assert {"due": 0, "in_flight": 0, "held": EVENTS} == waiting(control)
    assert advance(control, minutes=5)["complete"]
    assert [first, first, first, *others, happened(control)[-1]] == ids(receiver)
    delivered = {log["delivered_at"] for log in logs(api, webhookId=made["id"])}
    assert [305.0] == [(datetime.fromisoformat(at) - datetime.fromisoformat(NOW)).total_seconds() for at in delivered]


def test_one_that_is_given_up_lets_the_next_go(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Each in its turn has all its attempts; the third one that fails disables the webhook, as ever."""
    receiver.status = 500
    made = hook(events=CREATED, ordered=True)
    for _ in range(EVENTS):
        event(api)
    for days in range(1, 13):
        assert advance(control, days=1)["complete"], days
    assert [ident for ident in happened(control)[:3] for _ in range(10)] == ids(receiver)
    assert "too_many_failures" == api.get(f"{WEBHOOKS}/{made['id']}").json()["webhook"]["disabled_reason"]
    statuses = sorted(map(itemgetter("status"), logs(api, webhookId=made["id"])))
    assert ["canceled", "failed", "failed", "failed"] == statuses
    assert {"due": 0, "in_flight": 0, "held": 0} == waiting(control)


def test_one_is_told_at_a_time(api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client) -> None:
    """In the order of the events, however many are due."""
    under_way: list[int] = []
    most: list[int] = []

    def decide(request: Received, number: int) -> int:
        under_way.append(number)
        most.append(len(under_way))
        time.sleep(0.005)
        under_way.remove(number)
        return 200

    receiver.decide = decide
    hook(events=CREATED, ordered=True)
    for _ in range(20):
        event(api)
    arrived(receiver, 20)
    assert (1, happened(control)) == (max(most), ids(receiver))


@pytest.mark.parametrize("how", ["by hand", "no longer in order"])
def test_what_waits_goes_on_when_nobody_has_to_wait_any_more(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client, how: str
) -> None:
    """The first one was delivered by hand, or the webhook is told in any order from now on."""
    receiver.decide = lambda request, number: 200 if number > 1 else 500
    made = hook(events=CREATED, ordered=True)
    event(api)
    event(api)
    assert 1 == waiting(control)["held"]
    if how == "by hand":
        (retried,) = logs(api, status="retrying")
        assert "delivered" == done(api.post(f"{LOGS}/{retried['id']}/retry"))["log"]["status"]
    else:
        assert done(api.put(f"{WEBHOOKS}/{made['id']}", json={"ordered": False}))["webhook"]["ordered"] is False
    assert 0 == waiting(control)["held"]
    first, second = happened(control)
    assert [first, *([first] if how == "by hand" else []), second] == ids(receiver)


def test_receivers_that_the_sandbox_plays_are_told_in_order_too(
    api: httpx2.Client, hook: Hook, control: httpx2.Client
) -> None:
    """The first attempt is lost on the way."""
    rule = {"match": {"event": CREATED[0]}, "when": {"times": 1}, "then": {"webhook_drop": True}}
    assert 201 == control.post("/faults", json=rule).status_code
    made = hook(url="https://loja.example.com/hook", events=CREATED, ordered=True)
    event(api)
    event(api)
    assert ["pending", "retrying"] == sorted(log["status"] for log in logs(api, webhookId=made["id"]))
    advance(control, seconds=5)
    first, second = happened(control)
    by_event = {log["event_id"]: log["attempt_count"] for log in logs(api, webhookId=made["id"], status="delivered")}
    assert {first: 2, second: 1} == by_event


def test_without_it_nobody_waits(api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client) -> None:
    receiver.decide = lambda request, number: 200 if number > 1 else 500
    made = hook(events=CREATED)
    assert made["ordered"] is False
    event(api)
    drain(control)
    event(api)
    assert 0 == waiting(control)["held"]
    assert happened(control) == ids(receiver)
