"""The states of a webhook and of a delivery: every move by each of its triggers."""

import threading
import time
from collections.abc import Callable, Iterator

import httpx2
import pytest

from ..support.contract import document
from ..support.make import Json, done, list_of, make_customer, object_of
from ..support.receiver import Received, Receiver, receiving
from .stage import Stage

HOOK = document().lifecycles["Webhook"]
LOG = document().lifecycles["WebhookLogEntry"]


@pytest.fixture
def target() -> Iterator[Receiver]:
    """A receiver whose answers the test decides."""
    with receiving() as receiver:
        yield receiver


def try_out(stage: Stage, webhook: Json) -> Json:
    """The delivery of a test."""
    return object_of(done(stage.api.post(f"/v2/webhooks/{webhook['id']}/test")), "log")


def retry(stage: Stage, log: Json) -> httpx2.Response:
    """One more attempt."""
    return stage.api.post(f"/v2/webhooks/logs/{log['id']}/retry")


TRIGGERS = [(m.from_, m.to, by) for m in HOOK.moves for by in m.by]


@pytest.mark.parametrize(("from_", "to", "by"), TRIGGERS)
def test_every_move_of_a_webhook_happens_and_is_no_event(
    stage: Stage, target: Receiver, from_: str, to: str, by: str
) -> None:
    born = to if from_ == "new" else from_
    webhook = stage.webhook(url=target.url, is_active=born == "active")
    path = f"/v2/webhooks/{webhook['id']}"
    if by == "updateWebhook":
        done(stage.api.put(path, json={"is_active": to == "active"}))
    elif by == "deleteWebhook":
        done(stage.api.delete(path))
    elif by == "retryWebhook":
        log = try_out(stage, webhook)
        target.status = 410
        done(retry(stage, log))
    elif by == "clock":
        target.status = 410
        done(stage.api.put(path, json={"events": ["customer.created"]}))
        make_customer(stage.api)
        stage.drain()
    if to == "deleted":
        assert stage.api.get(path).status_code == 404
    else:
        shown = done(stage.api.get(path))["webhook"]
        assert (to == "active") is shown["is_active"]
        assert ("gone" if by in ("retryWebhook", "clock") else None) == shown["disabled_reason"]
    assert set(stage.events(webhook["id"])) <= {"webhook.test"}


# -- deliveries


def sent(status: int) -> Callable[[Stage, Receiver], Json]:
    """A test whose receiver answers so."""

    def send(stage: Stage, target: Receiver) -> Json:
        target.status = status
        return try_out(stage, stage.webhook(url=target.url))

    return send


def retried(before: int, after: int) -> Callable[[Stage, Receiver], Json]:
    """The same, retried when the receiver answers otherwise."""

    def send(stage: Stage, target: Receiver) -> Json:
        log = sent(before)(stage, target)
        target.status = after
        done(retry(stage, log))
        return log

    return send


def opened(stage: Stage, webhook: Json) -> Json:
    """The delivery of a new event to a webhook that listens to new customers."""
    make_customer(stage.api)
    (log,) = deliveries(stage, webhook, 1)
    return log


def deliveries(stage: Stage, webhook: Json, most: int) -> list[Json]:
    """The newest deliveries of new customers to a webhook."""
    query: dict[str, str | int] = {"event_type": "customer.created", "limit": most}
    return list_of(done(stage.api.get(f"/v2/webhooks/{webhook['id']}/logs", params=query)), "logs")


def automatic(before: int | None, after: int) -> Callable[[Stage, Receiver], Json]:
    """A delivery that is answered so, first and then on the clock; None holds the first
    attempt back.
    """

    def send(stage: Stage, target: Receiver) -> Json:
        target.status = after if before is None else before
        log = opened(stage, stage.webhook(url=target.url, events=["customer.created"]))
        stage.drain()
        if before is not None:
            assert (
                done(stage.api.get(f"/v2/webhooks/logs/{log['id']}"))["log"]["status"] == "retrying"
            )
            target.status = after
            stage.advance(5)
        return log

    return send


def by_hand(status: int, *, first: bool) -> Callable[[Stage, Receiver], Json]:
    """A delivery that is retried by hand while its first attempt waits for an answer, or when that
    has failed.
    """

    def send(stage: Stage, target: Receiver) -> Json:
        release = threading.Event()

        def decide(request: Received, number: int) -> int:
            if number == 1:
                if first:
                    release.wait(10)
                return 503
            return status

        target.decide = decide
        log = opened(stage, stage.webhook(url=target.url, events=["customer.created"]))
        while not target.requests:  # the first attempt leaves by itself, and is not to be overtaken
            time.sleep(0.001)
        if not first:
            stage.drain()
        done(retry(stage, log))
        release.set()
        stage.drain()
        return log

    return send


def delivered_after_all(stage: Stage, target: Receiver) -> Json:
    """An attempt by hand finds the receiver gone while the first one waits for its answer, which is
    a success.
    """
    release = threading.Event()

    def decide(request: Received, number: int) -> int:
        if number == 1:
            release.wait(10)
            return 200
        return 410

    target.decide = decide
    log = opened(stage, stage.webhook(url=target.url, events=["customer.created"]))
    while not target.requests:  # the first attempt leaves by itself, and is not to be overtaken
        time.sleep(0.001)
    assert done(retry(stage, log))["log"]["status"] == "failed"
    release.set()
    stage.drain()
    return log


def called_off(before: str, by: str) -> Callable[[Stage, Receiver], Json]:
    """A delivery that waits while its webhook is switched off or deleted, or found gone by a retry
    or by another.
    """

    def end(stage: Stage, target: Receiver) -> Json:
        release = threading.Event()
        gone = False

        def decide(request: Received, number: int) -> int:
            # the attempt that waits was begun before anything was gone
            if before == "pending" and number == 2:
                release.wait(10)
                return 500
            if gone:
                return 410
            return 200 if b"webhook.test" in request.body else 500

        target.decide = decide
        webhook = stage.webhook(url=target.url, events=["customer.created"])
        tested = try_out(stage, webhook)
        log = opened(stage, webhook)
        while len(target.requests) < 2:
            time.sleep(0.001)
        if before == "retrying":
            stage.drain()
        path = f"/v2/webhooks/{webhook['id']}"
        assert before == done(stage.api.get(f"/v2/webhooks/logs/{log['id']}"))["log"]["status"]
        if by == "deleteWebhook":
            done(stage.api.delete(path))
        elif by == "updateWebhook":
            done(stage.api.put(path, json={"is_active": False}))
        elif by == "clock":
            gone = True
            make_customer(stage.api)
            while done(stage.api.get(path))["webhook"]["is_active"]:
                time.sleep(0.001)
        else:
            gone = True
            done(retry(stage, tested))
        release.set()
        stage.drain()
        return log

    return end


def found_gone(stage: Stage, target: Receiver) -> Json:
    """A delivery that waits behind one whose answer says that the receiver is gone."""
    release = threading.Event()

    def decide(request: Received, number: int) -> int:
        release.wait(10)
        return 410

    target.decide = decide
    webhook = stage.webhook(url=target.url, events=["customer.created"])
    first = opened(stage, webhook)
    make_customer(stage.api)
    # Those of one instant stand in the order of their ids.
    (log,) = [found for found in deliveries(stage, webhook, 2) if found["id"] != first["id"]]
    assert "pending" == log["status"]
    release.set()
    stage.drain()
    return log


ROADS: dict[tuple[str, str, str], Callable[[Stage, Receiver], Json]] = {
    ("pending", "delivered", "sendTestWebhook"): sent(204),
    ("pending", "failed", "sendTestWebhook"): sent(500),
    ("pending", "delivered", "clock"): automatic(None, 202),
    ("pending", "retrying", "clock"): automatic(None, 500),
    ("pending", "failed", "clock"): automatic(None, 410),
    ("pending", "canceled", "clock"): found_gone,
    ("pending", "canceled", "updateWebhook"): called_off("pending", "updateWebhook"),
    ("pending", "canceled", "deleteWebhook"): called_off("pending", "deleteWebhook"),
    ("pending", "canceled", "retryWebhook"): called_off("pending", "retryWebhook"),
    ("pending", "delivered", "retryWebhook"): by_hand(200, first=True),
    ("pending", "failed", "retryWebhook"): by_hand(410, first=True),
    ("retrying", "delivered", "clock"): automatic(500, 200),
    ("retrying", "failed", "clock"): automatic(500, 410),
    ("retrying", "canceled", "clock"): called_off("retrying", "clock"),
    ("retrying", "canceled", "updateWebhook"): called_off("retrying", "updateWebhook"),
    ("retrying", "canceled", "deleteWebhook"): called_off("retrying", "deleteWebhook"),
    ("retrying", "canceled", "retryWebhook"): called_off("retrying", "retryWebhook"),
    ("retrying", "delivered", "retryWebhook"): by_hand(200, first=False),
    ("retrying", "failed", "retryWebhook"): by_hand(410, first=False),
    ("failed", "delivered", "retryWebhook"): retried(503, 200),
    ("failed", "delivered", "clock"): delivered_after_all,
    ("failed", "failed", "retryWebhook"): retried(503, 302),
    ("delivered", "delivered", "retryWebhook"): retried(200, 201),
    ("delivered", "failed", "retryWebhook"): retried(200, 404),
}


def test_every_trigger_of_every_move_has_a_road() -> None:
    assert set(ROADS) == {(m.from_, m.to, by) for m in LOG.moves for by in m.by if m.from_ != "new"}


@pytest.mark.parametrize(("from_", "to", "by"), ROADS)
def test_every_move_of_a_delivery_happens(
    stage: Stage, target: Receiver, from_: str, to: str, by: str
) -> None:
    log = ROADS[from_, to, by](stage, target)
    assert to == done(stage.api.get(f"/v2/webhooks/logs/{log['id']}"))["log"]["status"]
