"""Deliveries by hand: tests and retries make one real attempt each, and say what came of it."""

import threading
import time
from collections.abc import Callable

import httpx2
import pytest

from ..support.contract import document, schemas, violations
from ..support.live import NO_TLS, NOW, Live
from ..support.make import Json, Maker, created, customer_body
from ..support.receiver import Receiver
from .hooks import LOGS, WEBHOOKS, Hook, log_of, logs, sent, verified
from .steps import refused


def test_a_test_arrives_signed(api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client) -> None:
    """One attempt, accepted by the independent verifier, reported whole; also to an inactive webhook."""
    made = hook(events=["order.paid"], is_active=False, headers=[{"name": "X-Loja", "value": "matriz"}])
    log = sent(api, made)
    (request,) = receiver.requests
    payload = verified(request, made["signing_key"])
    assert payload["data"]["test"]["webhookId"] == made["id"]
    assert (log["event_type"], log["event_id"]) == ("webhook.test", payload["id"])
    assert (log["status"], log["is_test"], log["attempt_count"], log["max_attempts"]) == ("delivered", True, 1, 1)
    assert (log["response_status"], log["response_body"], log["error"]) == (200, '{"received":true}', None)
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


def test_a_test_reaches_nobody_else(api: httpx2.Client, hook: Hook, receiver: Receiver) -> None:
    """Another webhook that listens to everything hears nothing of it."""
    made = hook()
    other = hook(url=receiver.url + "/other")
    sent(api, made)
    assert [request.path for request in receiver.requests] == ["/hook"]
    assert logs(api, webhookId=other["id"]) == []


def test_a_test_can_be_of_every_type(api: httpx2.Client, hook: Hook, receiver: Receiver, make_project: Maker) -> None:
    """Each type's payload keeps the contract, for a webhook of all projects and for one of an empty project."""
    project = make_project()["id"]  # before anybody listens to it
    everywhere, bound = hook(), hook(projectId=project)
    for event_type, entry in document().events.items():
        schema = schemas().compile(entry["schema"], request=False)
        for made in (everywhere, bound):
            log = sent(api, made, event_type=event_type)
            payload = verified(receiver.requests[-1], made["signing_key"])
            assert (log["event_type"], payload["type"]) == (event_type, event_type)
            assert violations(schema, payload) == []


def test_a_test_shows_the_latest_record(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client, make_plan: Maker
) -> None:
    """The payload is about real data; the webhook of one project sees none that is not of that project."""
    assert control.post("/clock/advance", json={"seconds": 1}).status_code == 200
    customer = api.post("/v2/customers", json=customer_body()).json()["customer"]
    plan, newer = make_plan(), make_plan()
    made, bound = hook(is_active=False), hook(projectId=plan["projectId"], is_active=False)

    def shown(webhook: Json, event_type: str) -> Json:
        sent(api, webhook, event_type=event_type)
        data: Json = verified(receiver.requests[-1], webhook["signing_key"])["data"]
        return data

    assert shown(made, "customer.updated")["customer"] == customer
    assert shown(bound, "customer.updated")["customer"]["id"] != customer["id"]
    assert shown(made, "plan.updated")["plan"]["id"] in (plan["id"], newer["id"])
    assert shown(bound, "plan.updated")["plan"]["id"] == plan["id"]


def test_a_sample_is_no_event(api: httpx2.Client, hook: Hook, control: httpx2.Client) -> None:
    """Nothing happened, so the event log does not say that an order was paid."""
    before = control.get("/events").json()["pagination"]["total"]
    sent(api, hook(), event_type="order.paid")
    assert control.get("/events").json()["pagination"]["total"] == before


def test_a_refusing_endpoint_is_a_200_with_the_failure(api: httpx2.Client, hook: Hook, receiver: Receiver) -> None:
    """The failure is in the log, and does not count against the webhook."""
    receiver.status, receiver.body, receiver.headers = 503, b"down", {"retry-after": "120"}
    made = hook()
    log = sent(api, made)
    assert (log["status"], log["error"], log["response_status"]) == ("failed", "http_5xx", 503)
    assert (log["response_body"], log["response_headers"]["retry-after"]) == ("down", "120")
    assert log["delivered_at"] is None
    shown = api.get(f"{WEBHOOKS}/{made['id']}").json()["webhook"]
    assert (shown["last_delivery_status"], shown["consecutive_failures"]) == ("failed", 0)


def test_a_retry_sends_the_same_bytes_again(api: httpx2.Client, hook: Hook, receiver: Receiver) -> None:
    """Same event id and body, a further attempt; a delivered one may be replayed, and may then fail."""
    receiver.status = 500
    made = hook()
    first = sent(api, made)
    receiver.status = 200
    path = f"{LOGS}/{first['id']}/retry"
    second = api.post(path).json()["log"]
    assert (second["status"], second["attempt_count"], second["event_id"]) == ("delivered", 2, first["event_id"])
    assert [attempt["trigger"] for attempt in second["attempts"]] == ["test", "manual"]
    assert receiver.requests[0].body == receiver.requests[1].body
    verified(receiver.requests[1], made["signing_key"])
    receiver.status = 404
    third = api.post(path).json()["log"]
    assert (third["status"], third["error"], third["delivered_at"]) == ("failed", "http_4xx", second["delivered_at"])
    assert len(third["attempts"]) == 3
    assert [log["id"] for log in logs(api, webhookId=made["id"])] == [first["id"]]


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


def test_a_retry_goes_to_the_new_address(api: httpx2.Client, hook: Hook, receiver: Receiver) -> None:
    """Address and headers are the webhook's of today."""
    made = hook()
    log = sent(api, made)
    change = {"url": receiver.url + "/new", "headers": [{"name": "X-A", "value": "1"}]}
    api.put(f"{WEBHOOKS}/{made['id']}", json=change)
    again = api.post(f"{LOGS}/{log['id']}/retry").json()["log"]
    assert again["url"] == receiver.url + "/new"
    assert (receiver.requests[1].path, receiver.requests[1].headers["x-a"]) == ("/hook/new", "1")


def test_gone_switches_the_webhook_off(api: httpx2.Client, hook: Hook, receiver: Receiver) -> None:
    """A 410 to a retry disables and cancels what is open; switching on again forgets it. A test never disables."""
    made = hook()
    path = f"{WEBHOOKS}/{made['id']}"
    receiver.decide = lambda request, number: 500 if b"customer.created" in request.body else 410
    log = sent(api, made)
    assert api.get(path).json()["webhook"]["is_active"] is True
    api.post("/v2/customers", json=customer_body())
    api.post(f"{LOGS}/{log['id']}/retry")
    shown = api.get(path).json()["webhook"]
    assert (shown["is_active"], shown["disabled_reason"], shown["disabled_at"]) == (False, "gone", NOW)
    assert {entry["status"] for entry in logs(api, webhookId=made["id"])} == {"failed", "canceled"}
    back = api.put(path, json={"is_active": True}).json()["webhook"]
    assert (back["is_active"], back["disabled_reason"], back["disabled_at"]) == (True, None, None)
    assert back["consecutive_failures"] == 0


def test_a_webhook_deleted_during_the_attempt(api: httpx2.Client, hook: Hook, receiver: Receiver) -> None:
    """The server answers others meanwhile; the delivery stays canceled and keeps the attempt."""
    made = hook()
    receiver.hold = threading.Event()
    answers: list[Json] = []
    thread = threading.Thread(target=lambda: answers.append(sent(api, made)))
    thread.start()
    assert receiver.arrived.wait(5)
    assert logs(api, webhookId=made["id"])[0]["status"] == "pending"
    assert api.delete(f"{WEBHOOKS}/{made['id']}").status_code == 200
    receiver.hold.set()
    thread.join(10)
    (log,) = answers
    assert (log["status"], log["response_status"], len(log["attempts"])) == ("canceled", 200, 1)
    assert log_of(api, log["id"]) == log
    refused(api.post(f"{LOGS}/{log['id']}/retry"), 409, "webhook_deleted")


def test_a_server_open_to_others_does_not_post_to_itself(serve: Callable[..., Live], receiver: Receiver) -> None:
    """Bound to more than loopback, the server is no way into its own machine; the log says what was blocked."""
    server = serve(host="0.0.0.0", admin_key="k", secret=b"s")  # noqa: S104 - the test itself listens on loopback
    admin = {"X-Sandbox-Admin-Key": "k"}
    token = httpx2.post(f"{server.url}/_sandbox/tokens", json={}, headers=admin, verify=NO_TLS).json()["token"]
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, verify=NO_TLS) as api:
        made = created(api.post(WEBHOOKS, json={"url": receiver.url, "events": ["*"]}))["webhook"]
        log = sent(api, made)
    assert (log["status"], log["error"], log["response_status"]) == ("failed", "blocked", None)
    assert receiver.requests == []


def test_two_attempts_at_once_are_both_kept(api: httpx2.Client, hook: Hook, receiver: Receiver) -> None:
    """Retries that overlap each add their attempt."""
    log = sent(api, hook())
    receiver.hold = threading.Event()
    threads = [threading.Thread(target=api.post, args=(f"{LOGS}/{log['id']}/retry",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 5
    while len(receiver.requests) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    receiver.hold.set()
    for thread in threads:
        thread.join(10)
    assert [attempt["number"] for attempt in log_of(api, log["id"])["attempts"]] == [1, 2, 3]


def test_a_foreign_page_reaches_no_private_address_by_an_event(
    api: httpx2.Client, receiver: Receiver, control: httpx2.Client
) -> None:
    """Whoever chose the address decides; a page of this machine that chooses it anew may."""
    abroad = {"Origin": "https://elsewhere.example"}
    made = created(api.post(WEBHOOKS, json={"url": receiver.url, "events": ["customer.created"]}, headers=abroad))
    created(api.post("/v2/customers", json=customer_body()))
    assert 200 == control.post("/webhooks/drain").status_code
    (log,) = logs(api, webhookId=made["webhook"]["id"])
    assert "blocked" == log_of(api, log["id"])["attempts"][0]["error"]
    assert [] == receiver.requests
    changed = api.put(f"{WEBHOOKS}/{made['webhook']['id']}", json={"url": f"{receiver.url}/own"})
    assert 200 == changed.status_code
    created(api.post("/v2/customers", json=customer_body()))
    assert 200 == control.post("/webhooks/drain").status_code
    assert ["/hook/own"] == [request.path for request in receiver.requests]
