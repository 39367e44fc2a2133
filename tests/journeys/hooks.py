"""The steps that journeys of webhooks share."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx2
from standardwebhooks.webhooks import Webhook

from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body, done, list_of, object_of, typed
from ..support.receiver import Received, Receiver

WEBHOOKS = "/v2/webhooks"
LOGS = "/v2/webhooks/logs"
Hook = Callable[..., Json]


def logs(api: httpx2.Client, **query: str) -> list[Json]:
    """The deliveries that match."""
    return list_of(done(api.get(LOGS, params=query)), "logs")


def log_of(api: httpx2.Client, ident: str) -> Json:
    """One delivery, whole."""
    return object_of(done(api.get(f"{LOGS}/{ident}")), "log")


def sent(api: httpx2.Client, webhook: Json, **body: str) -> Json:
    """The delivery of a test."""
    response = api.post(f"{WEBHOOKS}/{webhook['id']}/test", json=body or None)
    return object_of(done(response), "log")


def verified(request: Received, key: str) -> Json:
    """What the independent verifier reads out of a request."""
    return typed(dict, Webhook(key).verify(request.body.decode(), request.headers))


def arrived(receiver: Receiver, count: int, seconds: float = 15.0) -> list[Received]:
    """What a receiver was sent, once so much has come."""
    deadline = time.monotonic() + seconds
    while len(receiver.requests) < count:
        assert time.monotonic() < deadline, (
            f"{len(receiver.requests)} of {count} deliveries arrived"
        )
        time.sleep(0.005)
    return receiver.requests


def drain(control: httpx2.Client, **body: float) -> Json:
    """Wait until nothing is due; answers how things stand then."""
    return done(control.post("/webhooks/drain", json=body))


def advance(control: httpx2.Client, **body: float | str) -> Json:
    """Move the clock."""
    return done(control.post("/clock/advance", json=body))


@contextmanager
def clients(
    server: Live, headers: dict[str, str] | None = None
) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """The API and the control surface of a server's default world, until the block ends."""
    url = f"{server.url}/_sandbox"
    with httpx2.Client(base_url=url, headers=headers, timeout=60, verify=NO_TLS) as control:
        bearer = {"Authorization": f"Bearer {created(control.post('/tokens', json={}))['token']}"}
        with httpx2.Client(base_url=server.url, headers=bearer, timeout=60, verify=NO_TLS) as api:
            yield api, control


CREATED = ["customer.created"]


def event(api: httpx2.Client) -> Json:
    """Something happens: a new customer."""
    return object_of(created(api.post("/v2/customers", json=customer_body())), "customer")


def only(api: httpx2.Client, webhook: Json) -> Json:
    """The one delivery to a webhook, whole."""
    (log,) = logs(api, webhookId=webhook["id"])
    return log_of(api, log["id"])
