"""Deliveries that are sent by themselves: after the answer, again when they fail, and no further
than they may go.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import httpx2
import pytest

from stub_server.domain.deliveries import SCHEDULES

from ..support.live import NOW, Live
from ..support.make import Json, created
from ..support.receiver import Receiver
from .hooks import (
    CREATED,
    WEBHOOKS,
    Hook,
    advance,
    clients,
    drain,
    event,
    logs,
    only,
    sent,
    verified,
)
from .steps import refused

START = datetime.fromisoformat(NOW)


def after(seconds: float) -> str:
    """The instant so long after the start."""
    return (
        (START + timedelta(seconds=seconds))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def instants(log: Json) -> list[float]:
    """When each attempt was made, in seconds since the start."""
    return [
        (datetime.fromisoformat(attempt["at"]) - START).total_seconds()
        for attempt in log["attempts"]
    ]


def planned(name: str) -> list[float]:
    """When the attempts of a schedule are due, in seconds since the event."""
    waits = SCHEDULES[name]
    return [sum(waits[: number + 1]) / 1000 for number in range(len(waits))]


def test_an_event_arrives_signed(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """By itself, as a test by hand does; the independent verifier accepts it."""
    made = hook(events=CREATED)
    customer = event(api)
    assert drain(control)["complete"]
    (request,) = receiver.requests
    payload = verified(request, made["signing_key"])
    assert (payload["type"], payload["data"]["customer"]) == ("customer.created", customer)
    log = only(api, made)
    assert (log["status"], log["next_attempt_at"]) == ("delivered", None)
    assert ["automatic"] == [attempt["trigger"] for attempt in log["attempts"]]


def test_a_failed_delivery_is_tried_again_on_the_sandbox_clock(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Ten times in the steps of the schedule, the same bytes under the same id; then
    it has failed.
    """
    receiver.status = 500
    made = hook(events=CREATED)
    event(api)
    drain(control)
    log = only(api, made)
    assert (log["status"], log["next_attempt_at"], log["max_attempts"]) == (
        "retrying",
        after(5),
        10,
    )
    moved = advance(control, days=4)
    assert moved["complete"]
    log = only(api, made)
    assert planned("standard") == instants(log)
    assert (log["status"], log["next_attempt_at"], log["error"]) == ("failed", None, "http_5xx")
    made_on_the_way = [job["at"] for job in moved["fired"] if job["job"] == "webhook.attempt"]
    assert [after(seconds) for seconds in planned("standard")[1:]] == made_on_the_way
    assert 1 == len({request.body for request in receiver.requests})
    assert 1 == len({request.headers["webhook-id"] for request in receiver.requests})
    for request in receiver.requests:
        verified(request, made["signing_key"])
    shown = api.get(f"{WEBHOOKS}/{made['id']}").json()["webhook"]
    assert (shown["consecutive_failures"], shown["is_active"]) == (1, True)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("text", "seconds"),
    [("120", 120), ("2", 5), ("999999999", 86_400), ("soon", 5), ("-3", 5)],
    ids=["later", "sooner", "too late", "words", "negative"],
)
def test_a_receiver_may_ask_for_time(
    api: httpx2.Client,
    hook: Hook,
    receiver: Receiver,
    control: httpx2.Client,
    status: int,
    text: str,
    seconds: int,
) -> None:
    """Retry-After counts up to a day, and never brings an attempt forward."""
    receiver.status = status
    receiver.headers = {"retry-after": text}
    made = hook(events=CREATED)
    event(api)
    drain(control)
    assert after(seconds) == only(api, made)["next_attempt_at"]


def test_three_exhausted_events_disable_the_webhook_in_their_time(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """The third event to use up its attempts disables it at that instant, whatever was changed
    meanwhile; what came later is called off then.
    """
    receiver.status = 500
    made = hook(events=CREATED)
    for _ in range(3):
        event(api)
        advance(control, seconds=60)
    advance(control, hours=1)
    event(api)
    advance(control, seconds=planned("standard")[-1] + 90 - 3_780)  # two have used them up
    assert 200 == api.put(f"{WEBHOOKS}/{made['id']}", json={"name": "Failing"}).status_code
    advance(control, days=5)
    shown = api.get(f"{WEBHOOKS}/{made['id']}").json()["webhook"]
    assert (shown["is_active"], shown["disabled_reason"]) == (False, "too_many_failures")
    assert after(120 + planned("standard")[-1]) == shown["disabled_at"]
    late, *others = logs(api, webhookId=made["id"])
    assert {"failed"} == {log["status"] for log in others}
    assert (late["status"], late["attempt_count"], late["updatedAt"]) == (
        "canceled",
        9,
        shown["disabled_at"],
    )
    assert 39 == len(receiver.requests)


def test_what_is_sent_follows_the_webhook_of_that_moment(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """A retry goes to the address, with the headers and under the keys that the webhook has when it
    is due.
    """
    receiver.status = 500
    made = hook(events=CREATED)
    event(api)
    drain(control)
    path = f"{WEBHOOKS}/{made['id']}"
    api.put(path, json={"url": receiver.url + "/new", "headers": [{"name": "X-A", "value": "1"}]})
    key = api.post(f"{path}/regenerate-key", json={"grace_period_seconds": 0}).json()["webhook"][
        "signing_key"
    ]
    receiver.status = 200
    advance(control, seconds=5)
    request = receiver.requests[-1]
    assert ("/hook/new", "1") == (request.path, request.headers["x-a"])
    verified(request, key)
    assert ("delivered", receiver.url + "/new") == (
        only(api, made)["status"],
        only(api, made)["url"],
    )


@pytest.mark.check
@pytest.mark.parametrize(("name", "attempts"), [("fast", 4), ("none", 1)])
def test_the_server_may_have_another_schedule(
    serve: Callable[..., Live], receiver: Receiver, name: str, attempts: int
) -> None:
    receiver.status = 500
    server = serve(webhook_schedule=name, scenario="empty")
    with clients(server) as (api, control):
        made = created(api.post(WEBHOOKS, json={"url": receiver.url, "events": CREATED}))["webhook"]
        event(api)
        advance(control, days=1)
        log = only(api, made)
        assert (planned(name), "failed", attempts) == (
            instants(log),
            log["status"],
            log["max_attempts"],
        )


def test_a_delivery_reaches_nothing_of_this_server(
    live: Live, api: httpx2.Client, control: httpx2.Client, hook: Hook, credentials: Json
) -> None:
    """Neither its API, with a credential of the webhook's, nor the control surface of any world."""
    bearer = [{"name": "Authorization", "value": f"Bearer {credentials['jwt']}"}]
    mine = str(api.base_url).rstrip("/")
    targets = [
        f"{mine}/v2/webhooks",
        f"{mine}/_sandbox/reset",
        f"{live.url}/s/somewhere-new/v2/orders",
    ]
    hooks = [hook(url=url, events=CREATED, headers=bearer) for url in targets]
    event(api)
    drain(control)
    for made in hooks:
        log = only(api, made)
        assert (403, "http_4xx") == (log["response_status"], log["error"])
        assert "delivery_not_allowed" in log["response_body"]
    assert live.app.sandboxes.find("somewhere-new") is None
    refused(api.get("/v2/orders", headers={"webhook-id": "x"}), 403, "delivery_not_allowed")


@pytest.mark.promise("private-webhooks-allowed")
@pytest.mark.check
def test_a_server_in_a_private_network_may_send_into_it(
    serve: Callable[..., Live], receiver: Receiver
) -> None:
    """Events, test sends and certificates reach it; link-local addresses, and what foreign pages
    ask for, do not.
    """
    anywhere = "0.0.0.0"  # noqa: S104 - a setting; the server of a test is bound to 127.0.0.1
    server = serve(
        host=anywhere, admin_key="k", secret=b"s", scenario="empty", allow_private_webhooks=True
    )
    foreign = {"Origin": "https://stranger.example"}
    with clients(server, {"X-Sandbox-Admin-Key": "k"}) as (api, control):
        made = created(api.post(WEBHOOKS, json={"url": receiver.url, "events": CREATED}))["webhook"]
        event(api)
        drain(control)
        assert "delivered" == only(api, made)["status"]
        assert "delivered" == sent(api, made)["status"]
        report = control.post("/certify", json={"webhookId": made["id"]}).json()["certificate"]
        assert "passed" == report["rules"][0]["result"], report
        count = len(receiver.requests)
        metadata = created(
            api.post(WEBHOOKS, json={"url": "http://169.254.169.254/", "events": CREATED})
        )["webhook"]
        assert "blocked" == sent(api, metadata)["error"]
        abroad = api.post(f"{WEBHOOKS}/{made['id']}/test", headers=foreign).json()["log"]
        assert "blocked" == abroad["error"]
        assert count == len(receiver.requests)
