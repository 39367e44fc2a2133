"""Webhooks: what they listen to, which deliveries events open for them, which keys sign, and who
may touch them.
"""

import threading

import httpx2
import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from ..support.live import NOW, Live
from ..support.make import Maker, customer_body
from ..support.receiver import Receiver
from .hooks import LOGS, WEBHOOKS, Hook, log_of, logs, sent, verified
from .steps import refused, restricted_key

# -- the webhook itself


def test_a_webhook_shows_its_key_once(api: httpx2.Client, hook: Hook, receiver: Receiver) -> None:
    """Created with defaults, read back without its key, which no list, update or log
    shows either.
    """
    made = hook()
    key = made.pop("signing_key")
    assert key.startswith("whsec_")
    assert made == {
        "id": made["id"],
        "name": None,
        "url": receiver.url,
        "description": None,
        "events": ["*"],
        "projectId": None,
        "is_active": True,
        "ordered": False,
        "headers": [],
        "api_version": "v2",
        "last_delivery_at": None,
        "last_delivery_status": None,
        "consecutive_failures": 0,
        "disabled_at": None,
        "disabled_reason": None,
        "metadata": {},
        "createdAt": NOW,
        "updatedAt": NOW,
    }
    log = sent(api, made)
    path = f"{WEBHOOKS}/{made['id']}"
    answers = [
        api.get(path),
        api.put(path, json={"name": "n"}),
        api.get(WEBHOOKS),
        api.get(f"{LOGS}/{log['id']}"),
    ]
    assert all(answer.status_code == 200 and key not in answer.text for answer in answers)


def test_an_address_serves_once_per_project(
    api: httpx2.Client, hook: Hook, make_project: Maker
) -> None:
    """The same address again is refused for the same project, and taken for another."""
    first = hook()
    project = make_project()
    refused(api.post(WEBHOOKS, json={"url": first["url"], "events": ["*"]}), 409, "duplicate_url")
    second = hook(projectId=project["id"].upper())
    assert second["projectId"] == project["id"]
    clash = api.put(f"{WEBHOOKS}/{second['id']}", json={"projectId": None})
    refused(clash, 409, "duplicate_url")
    assert api.put(f"{WEBHOOKS}/{first['id']}", json={"url": first["url"]}).status_code == 200


def test_the_catalogue_names_every_event(api: httpx2.Client, live: Live) -> None:
    """Every type of the contract, once, with what emits it."""
    body = api.get(f"{WEBHOOKS}/events").json()
    contract = live.app.server.document.events
    assert [event["type"] for event in body["events"]] == list(contract)
    assert body["total"] == len(contract)


# -- events become deliveries


def test_an_event_opens_one_delivery_per_listener(
    api: httpx2.Client, hook: Hook, control: httpx2.Client, receiver: Receiver
) -> None:
    """Active listeners of the type get a pending delivery, due now, with the event's exact bytes;
    nobody else.
    """
    receiver.hold = threading.Event()
    every = hook()
    base = every["url"]
    family = hook(url=base + "/a", events=["customer.*"])
    deaf = hook(url=base + "/b", events=["order.paid"])
    off = hook(url=base + "/c", is_active=False)
    assert api.post("/v2/customers", json=customer_body()).status_code == 201
    opened = {
        webhook["id"]: logs(api, webhookId=webhook["id"]) for webhook in (every, family, deaf, off)
    }
    assert [len(opened[w["id"]]) for w in (every, family, deaf, off)] == [1, 1, 0, 0]
    log = opened[every["id"]][0]
    assert (log["status"], log["is_test"], log["event_type"]) == (
        "pending",
        False,
        "customer.created",
    )
    assert (log["next_attempt_at"], log["attempt_count"], log["max_attempts"]) == (NOW, 0, 10)
    assert log["event_id"] == opened[family["id"]][0]["event_id"]
    whole = log_of(api, log["id"])
    event = control.get("/events", params={"type": "customer.created", "limit": 1}).json()[
        "events"
    ][0]
    assert httpx2.Response(200, text=whole["request_body"]).json() == event
    assert event["id"] == log["event_id"]


def test_a_project_webhook_hears_its_project_alone(
    api: httpx2.Client, hook: Hook, make_project: Maker, make_plan: Maker
) -> None:
    """Events of another project, or of none, are not for it."""
    mine = make_project()
    other = make_project()
    made = hook(projectId=mine["id"])
    make_plan(other["id"])
    api.post("/v2/customers", json=customer_body())
    plan = make_plan(mine["id"])
    (log,) = logs(api, webhookId=made["id"])
    assert log["event_type"] == "plan.created"
    assert plan["id"] in log_of(api, log["id"])["request_body"]


# -- keys


def test_both_keys_sign_until_the_grace_ends(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Old and new verify during the grace, measured on the sandbox clock; the new one
    alone afterwards.
    """
    made = hook()
    response = api.post(
        f"{WEBHOOKS}/{made['id']}/regenerate-key", json={"grace_period_seconds": 60}
    )
    assert response.status_code == 200, response.text
    fresh = response.json()["webhook"]["signing_key"]
    assert "2026-11-20T14:33:05.123Z" in response.json()["warning"]
    assert fresh != made["signing_key"]
    sent(api, made)
    verified(receiver.requests[0], fresh)
    verified(receiver.requests[0], made["signing_key"])
    assert control.post("/clock/advance", json={"seconds": 60}).status_code == 200
    sent(api, made)
    verified(receiver.requests[1], fresh)
    with pytest.raises(WebhookVerificationError):
        verified(receiver.requests[1], made["signing_key"])


# -- restricted keys


def test_a_restricted_key_reaches_its_projects_webhooks_alone(
    api: httpx2.Client, hook: Hook, make_project: Maker
) -> None:
    """Others' webhooks, and those of all projects, are refused by name and left out of lists; so
    are deliveries.
    """
    mine = make_project()["id"]
    other = make_project()["id"]
    everywhere = hook()
    foreign = hook(projectId=other)
    own = hook(projectId=mine)
    deliveries = {webhook["id"]: sent(api, webhook)["id"] for webhook in (everywhere, foreign, own)}
    with restricted_key(api, mine, "webhooks:read", "webhooks:write") as key:
        assert [w["id"] for w in key.get(WEBHOOKS).json()["webhooks"]] == [own["id"]]
        assert [log["id"] for log in logs(key)] == [deliveries[own["id"]]]
        assert key.get(f"{WEBHOOKS}/{own['id']}").status_code == 200
        assert key.get(f"{LOGS}/{deliveries[own['id']]}").status_code == 200
        assert len(key.get(f"{WEBHOOKS}/{own['id']}/logs").json()["logs"]) == 1
        for webhook in (everywhere, foreign):
            refused(key.get(f"{WEBHOOKS}/{webhook['id']}"), 403, "project_not_allowed")
        url = own["url"]
        refused(key.post(WEBHOOKS, json={"url": url, "events": ["*"]}), 403, "project_not_allowed")
        refused(
            key.put(f"{WEBHOOKS}/{own['id']}", json={"projectId": None}), 403, "project_not_allowed"
        )
        made = key.post(WEBHOOKS, json={"url": url + "/2", "events": ["*"], "projectId": mine})
        assert made.status_code == 201
        moved = api.put(f"{WEBHOOKS}/{own['id']}", json={"projectId": make_project()["id"]})
        assert moved.status_code == 200
        refused(key.post(f"{LOGS}/{deliveries[own['id']]}/retry"), 403, "project_not_allowed")
        assert api.delete(f"{WEBHOOKS}/{own['id']}").status_code == 200
        assert [log["id"] for log in logs(key)] == [deliveries[own["id"]]]
