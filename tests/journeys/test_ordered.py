"""Webhooks that are told in order: an event waits while an earlier one is tried again."""

from datetime import datetime

import httpx2
import pytest

from ..support.live import NOW
from ..support.make import Json, done, object_of
from ..support.receiver import Receiver
from .hooks import CREATED, LOGS, WEBHOOKS, Hook, advance, drain, event, logs

EVENTS = 4


@pytest.fixture(autouse=True)
def nobody_else(control: httpx2.Client) -> None:
    """The sandbox has nothing but what a test makes."""
    assert control.post("/reset", json={"scenario": "empty"}).status_code == 200


def happened(control: httpx2.Client) -> list[str]:
    """The ids of the events so far, in their order."""
    return [
        found["id"]
        for found in control.get("/events", params={"type": CREATED[0]}).json()["events"]
    ][::-1]


def ids(receiver: Receiver) -> list[str]:
    """The ids of the events that arrived."""
    return [request.headers["webhook-id"] for request in receiver.requests]


def waiting(control: httpx2.Client) -> Json:
    """How things stand when nothing is due."""
    drained = drain(control)
    assert drained["complete"]
    return object_of(drained, "deliveries")


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
    assert [305.0] == [
        (datetime.fromisoformat(at) - datetime.fromisoformat(NOW)).total_seconds()
        for at in delivered
    ]


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
        assert (
            done(api.put(f"{WEBHOOKS}/{made['id']}", json={"ordered": False}))["webhook"]["ordered"]
            is False
        )
    assert 0 == waiting(control)["held"]
    first, second = happened(control)
    assert [first, *([first] if how == "by hand" else []), second] == ids(receiver)


def test_what_waits_is_delivered_though_its_webhook_moves_to_a_simulated_receiver(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """The one that is tried again waits for the courier; the ones after it do not."""
    receiver.status = 503
    made = hook(events=CREATED, ordered=True)
    event(api)
    assert waiting(control) == {"due": 0, "in_flight": 0, "held": 0}
    done(api.put(f"{WEBHOOKS}/{made['id']}", json={"url": "https://shop.example.org/hooks"}))
    event(api)
    assert advance(control, hours=1)["complete"]
    assert waiting(control) == {"due": 0, "in_flight": 0, "held": 0}
    assert ["delivered"] * 2 == [log["status"] for log in logs(api, webhookId=made["id"])]
    assert 1 == len(receiver.requests)


def test_what_waits_is_delivered_though_its_webhook_leaves_a_simulated_receiver(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    """To an inbox, which gets events of the seeded past too."""
    assert control.post("/reset", json={"scenario": "default"}).status_code == 200
    (first,) = logs(api, status="retrying")
    made = first["webhookId"]
    others = logs(api, webhookId=made, status="pending", sort="createdAt")
    inbox = str(control.base_url.join("inbox/shop"))
    done(api.put(f"{WEBHOOKS}/{made}", json={"url": inbox}))
    assert advance(control, to=first["next_attempt_at"])["complete"]
    assert waiting(control)["due"] == 0
    messages = control.get("/inbox/shop").json()["messages"]
    sent = [first["event_id"], *(log["event_id"] for log in others)]
    assert 2 <= len(sent)
    assert sent == [message["event_id"] for message in messages[::-1]][: len(sent)]
