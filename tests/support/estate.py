"""One of everything that a merchant can own, made over HTTP: what requests about existing things
are aimed at.
"""

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2

from stub_server.engine.tables.store import MOST_MERCHANTS

from . import make
from .contract import document
from .live import NO_TLS, Live
from .make import Json, created, done, object_of, typed

SCOPES = tuple(scope["name"] for scope in document().scopes)
ASSIGNABLE = tuple(scope["name"] for scope in document().scopes if scope["assignable"])
ELSEWHERE = "203.0.113.7"
_serial = itertools.count(1)


def client(live: Live, sandbox: str, token: str | None) -> httpx2.Client:
    """The API of a sandbox with a credential; to be closed by the caller."""
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return httpx2.Client(
        base_url=f"{live.url}/s/{sandbox}", headers=headers, timeout=60, verify=NO_TLS
    )


def token(live: Live, sandbox: str, merchant_id: str, scopes: Sequence[str] = ("*",)) -> str:
    """A JWT of a merchant. One that is named for the first time owns nothing."""
    body = {"merchant_id": merchant_id, "scopes": list(scopes)}
    made = created(
        httpx2.post(f"{live.url}/s/{sandbox}/_sandbox/tokens", json=body, timeout=60, verify=NO_TLS)
    )
    return typed(str, made["token"])


def emptied(live: Live, sandbox: str, seed: int = 42) -> None:
    """A sandbox without seeded records: what its clock passes then is what the tests put there."""
    body = {"scenario": "empty", "seed": seed}
    done(
        httpx2.post(f"{live.url}/s/{sandbox}/_sandbox/reset", json=body, timeout=60, verify=NO_TLS)
    )


def with_room(live: Live, street: str) -> str:
    """A sandbox that has room for one more merchant: the first of a street, or the next one where
    that is full.
    """
    for number in itertools.count(1):
        sandbox = street if number == 1 else f"{street}-{number}"
        world = live.app.sandboxes.find(sandbox)
        if world is None:
            emptied(live, sandbox)
            return sandbox
        if len(world.stores) < MOST_MERCHANTS:
            return sandbox
    raise AssertionError("streets have no end")


def webhook_body(receiver: str, **changes: Any) -> Json:
    """What createWebhook accepts: an address of its own on a receiver, for tests alone."""
    return {"url": f"{receiver}/{next(_serial)}", "events": ["webhook.test"]} | changes


@dataclass(frozen=True, slots=True)
class Estate:
    """A merchant, his clients and the ids of what he owns; `ids` by the names of the contract's
    path parameters.
    """

    live: Live
    sandbox: str
    merchant_id: str
    receiver: str
    api: httpx2.Client
    control: httpx2.Client
    ids: dict[str, str]

    def with_scopes(self, *scopes: str) -> httpx2.Client:
        """The API with a JWT of these scopes."""
        return client(
            self.live, self.sandbox, token(self.live, self.sandbox, self.merchant_id, scopes)
        )

    def key(self, **changes: Any) -> Json:
        """A new API key with every assignable scope, its private half included."""
        body = {"name": "Chave", "scopes": list(ASSIGNABLE)} | changes
        return object_of(created(self.api.post("/api-keys", json=body)), "api_key")

    def with_key(self, **changes: Any) -> httpx2.Client:
        """The API with a new API key."""
        return client(self.live, self.sandbox, self.key(**changes)["private_key"])

    def close(self) -> None:
        """Let go of the connections."""
        self.api.close()
        self.control.close()


def estate(live: Live, sandbox: str, receiver: str) -> Estate:
    """A new merchant with one of everything. `receiver` is an address that answers webhooks."""
    merchant_id = str(uuid4())
    with ExitStack() as opened:  # what is refused here leaves no connection open
        api = opened.enter_context(client(live, sandbox, token(live, sandbox, merchant_id)))
        address = f"{live.url}/s/{sandbox}/_sandbox"
        control = opened.enter_context(httpx2.Client(base_url=address, timeout=60, verify=NO_TLS))
        plan = make.make_plan(api)
        webhook = created(
            api.post("/v2/webhooks", json=webhook_body(receiver, projectId=plan["projectId"]))
        )["webhook"]
        log = done(api.post(f"/v2/webhooks/{webhook['id']}/test"))["log"]
        key = created(api.post("/api-keys", json={"name": "Chave", "scopes": ["orders:read"]}))[
            "api_key"
        ]
        order = make.make_order(api, plan)
        done(control.post(f"/orders/{order['id']}/pay"))
        product = created(
            api.post("/v2/products", json={"projectId": plan["projectId"], "name": "Curso"})
        )["product"]
        ids = {
            "projectId": plan["projectId"],
            "planId": plan["id"],
            "productId": product["id"],
            "orderId": order["id"],
            "customerId": make.make_customer(api)["id"],
            "apiKeyId": key["id"],
            "publicKey": key["public_key"],
            "webhookId": webhook["id"],
            "logId": log["id"],
            "subscriptionId": api.get("/v2/subscriptions").json()["subscriptions"][0]["id"],
        }
        opened.pop_all()
        return Estate(live, sandbox, merchant_id, receiver, api, control, ids)
