"""The steps that journeys of webhooks share."""

from collections.abc import Callable

import httpx2
from standardwebhooks.webhooks import Webhook

from ..support.make import Json
from ..support.receiver import Received

WEBHOOKS = "/v2/webhooks"
LOGS = "/v2/webhooks/logs"
Hook = Callable[..., Json]
Restricted = Callable[..., httpx2.Client]


def logs(api: httpx2.Client, **query: str) -> list[Json]:
    """The deliveries that match."""
    found: list[Json] = api.get(LOGS, params=query).json()["logs"]
    return found


def log_of(api: httpx2.Client, ident: str) -> Json:
    """One delivery, whole."""
    response = api.get(f"{LOGS}/{ident}")
    assert response.status_code == 200, response.text
    found: Json = response.json()["log"]
    return found


def sent(api: httpx2.Client, webhook: Json, **body: str) -> Json:
    """The delivery of a test."""
    response = api.post(f"{WEBHOOKS}/{webhook['id']}/test", json=body or None)
    assert response.status_code == 200, response.text
    found: Json = response.json()["log"]
    return found


def verified(request: Received, key: str) -> Json:
    """What the independent verifier reads out of a request."""
    payload: Json = Webhook(key).verify(request.body.decode(), request.headers)
    return payload
