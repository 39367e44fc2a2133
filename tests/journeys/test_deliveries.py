"""Deliveries by hand: tests and retries make one real attempt each, and say what came of it."""

import time
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from stub_server.webhooks import network

from ..support.live import NOW
from ..support.make import created, customer_body
from ..support.receiver import Receiver
from .hooks import LOGS, WEBHOOKS, Hook, drain, event, log_of, logs, sent, verified


def test_a_test_arrives_signed(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """One attempt, accepted by the independent verifier, reported whole; also to an
    inactive webhook.
    """
    made = hook(
        events=["order.paid"], is_active=False, headers=[{"name": "X-Loja", "value": "matriz"}]
    )
    log = sent(api, made)
    (request,) = receiver.requests
    payload = verified(request, made["signing_key"])
    assert payload["data"]["test"]["webhookId"] == made["id"]
    assert (log["event_type"], log["event_id"]) == ("webhook.test", payload["id"])
    assert (log["status"], log["is_test"], log["attempt_count"], log["max_attempts"]) == (
        "delivered",
        True,
        1,
        1,
    )
    assert (log["response_status"], log["response_body"], log["error"]) == (
        200,
        '{"received":true}',
        None,
    )
    assert (log["last_attempt_at"], log["delivered_at"], log["next_attempt_at"]) == (NOW, NOW, None)
    assert log["request_body"].encode() == request.body
    assert log["request_headers"].items() <= request.headers.items()
    assert request.headers["x-loja"] == "matriz"
    (attempt,) = log["attempts"]
    assert (attempt["number"], attempt["trigger"]) == (1, "test")
    assert attempt["signature"] == request.headers["webhook-signature"]
    assert log_of(api, log["id"]) == log
    shown = api.get(f"{WEBHOOKS}/{made['id']}").json()["webhook"]
    assert (shown["last_delivery_status"], shown["last_delivery_at"]) == ("delivered", NOW)
    assert (shown["is_active"], shown["updatedAt"]) == (False, made["updatedAt"])
    newest = control.get("/events", params={"type": "webhook.test"}).json()["events"][0]
    assert newest == payload


@pytest.mark.promise("nothing-request-costs-more-length")
def test_nobody_waits_for_what_an_exchange_costs(
    api: httpx2.Client, hook: Hook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver may send TLS records without an end that are no answer: others waited for all."""
    begin = network.request_of

    def dear(*exchanged: Any) -> Any:
        time.sleep(1)
        return begin(*exchanged)

    monkeypatch.setattr(network, "request_of", dear)
    hook(events=["customer.created"])
    created(api.post("/v2/customers", json=customer_body()))
    served = 0
    while not receiver.requests:
        assert 200 == api.get("/v2/customers?limit=1").status_code
        served += 1
    assert served > 5


def test_a_refusing_endpoint_is_a_200_with_the_failure(
    api: httpx2.Client, hook: Hook, receiver: Receiver
) -> None:
    """The failure is in the log, and does not count against the webhook."""
    receiver.status = 503
    receiver.body = b"down"
    receiver.headers = {"retry-after": "120"}
    made = hook()
    log = sent(api, made)
    assert (log["status"], log["error"], log["response_status"]) == ("failed", "http_5xx", 503)
    assert (log["response_body"], log["response_headers"]["retry-after"]) == ("down", "120")
    assert log["delivered_at"] is None
    shown = api.get(f"{WEBHOOKS}/{made['id']}").json()["webhook"]
    assert (shown["last_delivery_status"], shown["consecutive_failures"]) == ("failed", 0)


def test_a_retry_sends_the_same_bytes_again(
    api: httpx2.Client, hook: Hook, receiver: Receiver
) -> None:
    """Same event id and body, a further attempt; a delivered one may be replayed, and may
    then fail.
    """
    receiver.status = 500
    made = hook()
    first = sent(api, made)
    receiver.status = 200
    path = f"{LOGS}/{first['id']}/retry"
    second = api.post(path).json()["log"]
    assert (second["status"], second["attempt_count"], second["event_id"]) == (
        "delivered",
        2,
        first["event_id"],
    )
    assert [attempt["trigger"] for attempt in second["attempts"]] == ["test", "manual"]
    assert receiver.requests[0].body == receiver.requests[1].body
    verified(receiver.requests[1], made["signing_key"])
    receiver.status = 404
    third = api.post(path).json()["log"]
    assert (third["status"], third["error"], third["delivered_at"]) == (
        "failed",
        "http_4xx",
        second["delivered_at"],
    )
    assert len(third["attempts"]) == 3
    assert [log["id"] for log in logs(api, webhookId=made["id"])] == [first["id"]]


def test_a_failed_retry_leaves_the_schedule_as_it_is(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """The next automatic attempt comes when it was due, and the one after that as long later as the
    schedule says.
    """
    receiver.status = 500
    made = hook(events=["customer.created"])
    event(api)
    drain(control)
    (first,) = logs(api, webhookId=made["id"])
    assert ("retrying", 1) == (first["status"], first["attempt_count"])
    kept = api.post(f"{LOGS}/{first['id']}/retry").json()["log"]
    assert ("retrying", 2, first["next_attempt_at"]) == (
        kept["status"],
        kept["attempt_count"],
        kept["next_attempt_at"],
    )
    control.post("/clock/advance", json={"seconds": 5})
    drain(control)
    third = log_of(api, first["id"])
    assert ["automatic", "manual", "automatic"] == [
        attempt["trigger"] for attempt in third["attempts"]
    ]
    assert first["next_attempt_at"] == third["last_attempt_at"]
    waits = datetime.fromisoformat(third["next_attempt_at"]) - datetime.fromisoformat(
        third["last_attempt_at"]
    )
    assert timedelta(minutes=5) == waits
    receiver.status = 200
    done = api.post(f"{LOGS}/{first['id']}/retry").json()["log"]
    assert ("delivered", None) == (done["status"], done["next_attempt_at"])
    control.post("/clock/advance", json={"days": 4})
    assert 4 == len(receiver.requests)


@pytest.mark.promise("attempts-kept")
def test_of_very_many_attempts_the_newest_are_told(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """A loop of retries by hand made a delivery grow without end."""
    first = sent(api, hook())
    path = f"{LOGS}/{first['id']}/retry"
    for _ in range(104):
        log = api.post(path).json()["log"]
    assert (105, 100) == (log["attempt_count"], len(log["attempts"]))
    assert [*range(6, 106)] == [attempt["number"] for attempt in log["attempts"]]
    assert control.get("/invariants").json()["ok"]
