"""Writes what this server stores: two exports, a recording, a `--store` directory, and what it
answered then.
"""

import atexit
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import httpx2
import orjson

from ..support.live import NOW
from ..support.make import Json, created, customer_body, make_plan, order_body
from ..support.processes import Process

Clients = tuple[httpx2.Client, httpx2.Client]
LISTS = (
    "customers",
    "projects",
    "plans",
    "products",
    "orders",
    "subscriptions",
    "webhooks",
    "webhooks/logs",
)
FILES = {
    "export": "history=true",
    "no-secrets": "history=true&secrets=false",
    "recording": "requests=true",
}
STEP = 6  # in which the customer still has her first name
KEY = "stored"
LAST = customer_body(name="Caio Pires", document="52998224725")  # sent with the key


def done(response: httpx2.Response) -> Json:
    """The body of a success."""
    assert response.is_success, f"{response.request.method} {response.request.url}: {response.text}"
    return response.json() if response.content else {}


def answers(api: httpx2.Client, control: httpx2.Client) -> Json:
    """What the sandbox answers: lists now and at a step, steps, snapshots, events."""
    past = {"X-Sandbox-As-Of": str(STEP)}
    return {
        "now": {name: done(api.get(f"/v2/{name}?limit=100")) for name in LISTS},
        "then": {name: done(api.get(f"/v2/{name}?limit=100", headers=past)) for name in LISTS},
        "api_keys": done(api.get("/api-keys?limit=100")),
        "steps": done(control.get("/steps?limit=100"))["steps"],
        "events": done(control.get("/events?limit=100"))["events"],
        "snapshots": done(control.get("/snapshots"))["snapshots"],
        "clock": done(control.get("/health"))["now"],
    }


def live(api: httpx2.Client, control: httpx2.Client) -> None:
    """A life of every kind of record, with deliveries, a snapshot, a rewind and a saved reply."""
    inbox = str(control.base_url).rstrip("/") + "/inbox/shop"
    done(control.put("/inbox/shop/answer", json={"status": 500, "times": 1}))
    plan = make_plan(api)  # steps 1 and 2
    created(
        api.post("/v2/webhooks", json={"url": inbox, "events": ["order.paid", "customer.updated"]})
    )
    created(
        api.post("/v2/products", json={"projectId": plan["projectId"], "name": "Curso de violão"})
    )
    created(api.post("/api-keys", json={"name": "Chave", "scopes": ["customers:read"]}))
    customer = created(api.post("/v2/customers", json=customer_body(document="34712695846")))[
        "customer"
    ]
    done(api.put(f"/v2/customers/{customer['id']}", json={"name": "Marina Duarte Lima"}))
    done(control.post("/webhooks/drain", json={}))
    order = created(api.post("/v2/orders/pix", json=order_body(plan["projectId"], plan["id"])))
    created(control.post("/snapshots", json={"name": "pending", "description": "Nobody has paid."}))
    done(control.post(f"/orders/{order['id']}/pay"))
    done(control.post("/webhooks/drain", json={}))
    done(control.post("/clock/advance", json={"days": 40}))
    newest = done(control.get("/steps?limit=1"))["steps"][0]["step"]
    created(api.post("/v2/customers", json=customer_body(name="Bia Rocha")))
    done(control.post("/rewind", json={"to_step": newest}))
    done(api.put(f"/v2/customers/{customer['id']}", json={"metadata": {"since": "2026"}}))
    created(api.post("/v2/customers", json=LAST, headers={"Idempotency-Key": KEY}))
    done(control.post("/webhooks/drain", json={}))


@cache
def written() -> Path:
    """The folder with everything, which is written once for a process."""
    folder = Path(mkdtemp(prefix="stored-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = server_of("--store", str(folder / "store"))
    with opened(server) as (api, control):
        live(api, control)
        with server.api("other") as other:
            created(other.post("/v2/customers", json=customer_body(name="Davi Reis")))
        found = answers(api, control)
        for name, query in FILES.items():
            (folder / name).write_bytes(control.get(f"/export?{query}").content)
        (folder / "answers.json").write_bytes(orjson.dumps(found))
        server.stop()
    return folder


def server_of(*flags: str, **more: Any) -> Process:
    """A server with these flags."""
    return Process("--scenario", "empty", "--now", NOW, *flags, **more)


@contextmanager
def opened(server: Process) -> Iterator[Clients]:
    """The default sandbox of a server: its API and its controls."""
    with server, server.api() as api, server.control() as control:
        yield api, control


def copied(to: Path) -> str:
    """A copy of the directory, which a server may change."""
    return str(shutil.copytree(written() / "store", to / "store"))
