"""Fault rules on deliveries: lost, twice, late, or with a signature that is not valid, and said so
in the log.
"""

from typing import Any

import httpx2
import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from ..support.make import Json, created, done, make_order
from ..support.receiver import Receiver
from .hooks import CREATED, Hook, advance, drain, event, only, verified
from .steps import refused


def shown_rule(control: httpx2.Client, fault: Json) -> Json:
    """A rule as the list of them shows it."""
    listed = done(control.get("/faults", params={"limit": 100}))["faults"]
    return next(each for each in listed if each["id"] == fault["id"])


def rule(control: httpx2.Client, then: Json, **rest: Any) -> Json:
    """A new fault rule."""
    return dict(created(control.post("/faults", json={"then": then, **rest}))["fault"])


def simulated(log: Json) -> list[str | None]:
    """What each attempt says of fault rules."""
    return [attempt.get("simulated") for attempt in log["attempts"]]


def test_a_dropped_delivery_does_not_arrive_and_is_tried_again(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """The first attempt is lost on its way; the next one, when the schedule says, arrives."""
    made = hook(events=CREATED)
    fault = rule(control, {"webhook_drop": True}, when={"times": 1})
    event(api)
    drain(control)
    log = only(api, made)
    assert ("retrying", "connection_failed", None) == (
        log["status"],
        log["error"],
        log["response_status"],
    )
    assert [] == receiver.requests
    advance(control, seconds=5)
    log = only(api, made)
    assert "delivered" == log["status"]
    assert [f"fault:{fault['id']}", None] == simulated(log)
    assert 1 == len(receiver.requests)


def test_a_duplicate_arrives_twice_with_one_id(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Both are signed and the same; the log has one attempt, which says that it was simulated."""
    made = hook(events=CREATED)
    fault = rule(control, {"webhook_duplicate": True})
    event(api)
    drain(control)
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    for request in (first, second):
        verified(request, made["signing_key"])
    log = only(api, made)
    assert ("delivered", [f"fault:{fault['id']}"]) == (log["status"], simulated(log))


def test_a_bad_signature_has_the_right_form_and_is_not_valid(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    made = hook(events=CREATED)
    fault = rule(control, {"webhook_bad_signature": True})
    event(api)
    drain(control)
    (request,) = receiver.requests
    assert request.headers["webhook-signature"].startswith("v1,")
    with pytest.raises(WebhookVerificationError, match="No matching signature found"):
        verified(request, made["signing_key"])
    log = only(api, made)
    assert [f"fault:{fault['id']}"] == simulated(log)
    assert request.headers["webhook-signature"] == log["attempts"][0]["signature"]


@pytest.mark.parametrize(
    ("match", "acts"),
    [
        ({"event": "customer.*"}, True),
        ({"event": "order.*"}, False),
        ({"url": "http://127.0.0.1:*"}, True),
        ({"url": "https://*"}, False),
        ({"event": "*", "body": {"$.data.customer.email": "*@example.com"}}, True),
        ({"event": "*", "body": {"$.data.customer.email": "*@elsewhere.example"}}, False),
        ({"body": {"$.type": "customer.created"}}, True),
    ],
)
def test_a_rule_means_deliveries_by_event_address_and_payload(
    api: httpx2.Client,
    hook: Hook,
    receiver: Receiver,
    control: httpx2.Client,
    match: Json,
    acts: bool,
) -> None:
    made = hook(events=CREATED)
    fault = rule(control, {"webhook_drop": True}, match=match)
    event(api)
    drain(control)
    assert [f"fault:{fault['id']}" if acts else None] == simulated(only(api, made))
    shown = shown_rule(control, fault)
    assert (int(acts), int(acts)) == (shown["seen"], shown["hits"])


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"then": {"webhook_drop": True, "status": 503}}, {"then.status"}),
        (
            {"then": {"webhook_duplicate": True}, "match": {"operationId": "createOrder"}},
            {"match.operationId"},
        ),
        (
            {"then": {"status": 503}, "match": {"event": "order.*", "path": "/v2/*"}},
            {"match.path", "then.status"},
        ),
        (
            {"preset": "flaky", "match": {"url": "https://*"}},
            {"then.status", "then.code", "then.headers"},
        ),
    ],
)
def test_a_rule_that_mixes_requests_and_deliveries_is_refused(
    control: httpx2.Client, body: Json, wrong: set[str]
) -> None:
    found = refused(control.post("/faults", json=body), 409, "fault_conflict")
    assert dict.fromkeys(wrong, "fault_conflict") == found
    assert [] == done(control.get("/faults"))["faults"]


def test_a_rule_without_an_address_leaves_the_seeded_webhooks_alone(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    """Their past is theirs: only a rule that names an address is about them."""
    done(control.patch("/clock", json={"frozen": True}))
    rule = control.post(
        "/faults", json={"match": {"event": "order.paid"}, "then": {"webhook_drop": True}}
    ).json()
    order = make_order(api)
    done(control.post(f"/orders/{order['id']}/pay"))
    done(control.post("/clock/advance", json={"minutes": 1}))
    (url,) = [
        hook["url"] for hook in done(api.get("/v2/webhooks"))["webhooks"] if hook["name"] == "ERP"
    ]
    (fault,) = [
        each for each in done(control.get("/faults"))["faults"] if each["id"] == rule["fault"]["id"]
    ]
    assert 0 == fault["hits"]
    named = {"match": {"event": "order.paid", "url": url}, "then": {"webhook_drop": True}}
    rule = control.post("/faults", json=named).json()
    done(control.post(f"/orders/{make_order(api)['id']}/pay"))
    done(control.post("/clock/advance", json={"minutes": 1}))
    (fault,) = [
        each for each in done(control.get("/faults"))["faults"] if each["id"] == rule["fault"]["id"]
    ]
    assert fault["hits"] >= 1
