"""The past is not sent again, and what happens anew is: forks, worlds that begin with open
deliveries, and resuming.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from ..support.estate import client
from ..support.live import NO_TLS, Live
from ..support.make import HELD, Json, created
from ..support.receiver import Receiver
from .hooks import CREATED, LOGS, WEBHOOKS, Hook, advance, clients, drain, event, log_of, logs, only

SCENARIO = """\
description: A merchant whose receiver is down.
merchant: { name: Loja, city: Recife }
months: 3
projects: [{ slug: ingles-sem-medo, status: active, share: 1 }]
customers: 90
orders: 400
webhooks:
  - { key: down, behaviour: flaky, days_old: 20, name: Fora, url: "%s", events: ["order.*", "customer.created"] }
"""


@contextmanager
def forked(
    live: Live, control: httpx2.Client, **body: object
) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """The API and the control surface of a fork of the test's sandbox; it is dropped afterwards."""
    path = control.base_url.path.strip("/").split("/")[1]
    made = created(control.post(f"/sandboxes/{path}/fork", json=body))["sandbox"]
    name = made["name"]
    url = f"{live.url}/s/{name}/_sandbox"
    try:
        with (
            client(live, name, made["credentials"]["jwt"]) as api,
            httpx2.Client(base_url=url, timeout=60, verify=NO_TLS) as own,
        ):
            yield api, own
    finally:
        live.forget(name)


def ids(receiver: Receiver) -> list[str]:
    """The ids of the events that arrived."""
    return [request.headers["webhook-id"] for request in receiver.requests]


def test_a_fork_tells_nobody_until_it_is_resumed(
    live: Live, api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    """Its parent's open deliveries stay the parent's, and its own events wait, while the
    clock goes on. The first event of all is no exception.
    """
    assert 200 == control.post("/reset", json={"scenario": "empty"}).status_code
    receiver.status = 500
    made = hook(events=CREATED)
    event(api)
    drain(control)
    with forked(live, control) as (twin, own):
        event(twin)
        drained = drain(own)
        assert (True, {"due": 0, "in_flight": 0, "held": 1}) == (
            drained["complete"],
            drained["deliveries"],
        )
        assert advance(own, days=1)["complete"]
        assert {"due": 0, "in_flight": 0, "held": 2} == own.get("/health").json()["deliveries"]
        assert 1 == len(receiver.requests)
        assert {"retrying", "pending"} == {
            log["status"] for log in logs(twin, webhookId=made["id"])
        }
        receiver.status = 200
        assert 2 == own.post("/webhooks/drain", json=HELD).json()["released"]
        assert drain(own)["complete"]
        assert 3 == len(receiver.requests)
        assert {"delivered"} == {log["status"] for log in logs(twin, webhookId=made["id"])}
        assert 0 == own.post("/webhooks/drain", json=HELD).json()["released"]
        event(twin)
        assert drain(own)["complete"]
        assert 4 == len(receiver.requests)
    assert "retrying" == only(api, made)["status"]


def test_seeded_webhooks_are_answered_in_every_world(
    live: Live, api: httpx2.Client, control: httpx2.Client
) -> None:
    """Their receivers are the server's own: also in a fork that is silent, at once, and with
    nothing sent.
    """
    (seeded,) = [w for w in api.get(WEBHOOKS).json()["webhooks"] if w["name"] == "ERP"]
    order = api.get(
        "/v2/orders", params={"status": "pending", "paymentMethod": "pix", "limit": 1}
    ).json()["orders"][0]
    for deliver in (False, True):
        with forked(live, control, deliver=deliver) as (twin, own):
            before = len(logs(twin, webhookId=seeded["id"], event_type="order.paid", limit="100"))
            assert own.post(f"/orders/{order['id']}/pay").status_code == 200
            found = logs(twin, webhookId=seeded["id"], event_type="order.paid", limit="100")
            assert before + 1 == len(found)
            (log,) = [log for log in found if log["createdAt"] == own.get("/clock").json()["now"]]
            assert log["status"] in ("delivered", "retrying")
            assert 1 == log["attempt_count"]
            assert log_of(twin, log["id"])["request_headers"]["webhook-id"] == log["event_id"]


def test_a_world_begins_without_sending_its_past(
    serve: Callable[..., Live], receiver: Receiver, tmp_path: Path
) -> None:
    """A scenario's webhook at a real address: its past was lived, what was still open is held, and
    news is sent.
    """
    file = tmp_path / "down.yaml"
    file.write_text(SCENARIO % receiver.url, encoding="utf-8")
    with clients(serve(scenario=str(file))) as (api, control):
        (webhook,) = api.get(WEBHOOKS).json()["webhooks"]
        total = api.get(LOGS, params={"status": "retrying"}).json()["pagination"]["total"]
        assert total > 0
        advance(control, days=1)
        past = {log["event_id"] for log in open_ones(api)}
        assert past
        event(api)
        drained = drain(control)
        assert drained["complete"]
        assert drained["deliveries"]["held"] > 0
        assert not past & set(ids(receiver))
        news = logs(api, webhookId=webhook["id"], event_type="customer.created")[0]
        assert "delivered" == news["status"]
        sent = len(receiver.requests)
        resumed = control.post("/webhooks/drain", json=HELD).json()["released"]
        assert drained["deliveries"]["held"] == resumed
        assert drain(control)["complete"]
        assert sent + resumed == len(receiver.requests)
        assert past <= set(ids(receiver))


def open_ones(api: httpx2.Client) -> list[Json]:
    """Deliveries that will be attempted again."""
    return logs(api, status="retrying", limit="100")
