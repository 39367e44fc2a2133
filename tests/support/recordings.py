"""A session that a recording can be made of: requests of many kinds, and the file replayed."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from . import forked
from .command import run
from .files import exported
from .make import Json, customer_body, make_plan, order_body
from .processes import ROOT

PATIENCE = 300
BAD = (
    "Bearer sk_sandbox_" + "x" * 40,
    "Bearer nobody",
    "Basic dTpw",
    "Bearer pk_sandbox_" + "x" * 24,
)


class Replayed:
    """How `stub-server replay --json` ended; `afresh` in a process of its own, which has hashes of
    its own.
    """

    def __init__(self, file: Path, *flags: str, afresh: bool = False) -> None:
        told = ["replay", str(file), "--json", *flags]
        if afresh:
            command = [sys.executable, "-m", "stub_server", *told]
            done = forked.run(command, cwd=ROOT, timeout=PATIENCE)
            self.code = done.returncode
            output = done.stdout
            self.error = done.stderr
        else:
            said = run(*told)
            self.code = said.exit_code
            output = said.stdout
            self.error = said.stderr
        self.told: Json = json.loads(output) if output else {}


class Session:
    """Sends so many mixed requests, the same for the same seed; `sent` counts those that
    a journal keeps.
    """

    def __init__(self, api: httpx2.Client, control: httpx2.Client, url: str, seed: int) -> None:
        self.api, self.control, self._random, self.sent = api, control, Random(seed), 0
        self.statuses: set[int] = set()
        self.forks: list[str] = []
        self._url = url
        self._steps = [0]
        self._customers: list[str] = []
        self._orders: list[str] = []
        self._asked: list[str] = []
        self._key: str | None = None
        self._plan = make_plan(api)
        self._kinds: list[Callable[[], httpx2.Response]] = [
            self._customer, self._customer, self._order, self._order, self._pay, self._lists, self._lists, self._lists,
            self._twice, self._broken, self._stranger, self._missing, self._by_key, self._change, self._advance,
            self._fork, self._snapshot, self._rewind, self._past, self._webhook, self._token, self._simulated,
            self._before, self._restore, self._resume,
        ]  # fmt: skip

    def run(self, count: int) -> None:
        """Send requests until the journal has so many more."""
        while self.sent < count:
            response = self._random.choice(self._kinds)()
            assert response.status_code < 500 or response.headers.get("x-sandbox-simulated"), (
                response.text
            )
            self.statuses.add(response.status_code)
            self._asked.append(response.headers["x-request-id"])
            self.sent += 1

    def _pick(self, idents: list[str]) -> str:
        return self._random.choice(idents) if idents else "00000000-0000-4000-8000-000000000000"

    def _customer(self) -> httpx2.Response:
        response = self.api.post("/v2/customers", json=customer_body())
        self._customers.append(response.json()["customer"]["id"])
        return response

    def _order(self, **headers: str) -> httpx2.Response:
        secret = {"token": "t-1"}  # which no recording has, and controls show
        body = order_body(self._plan["projectId"], self._plan["id"], metadata=secret)
        response = self.api.post("/v2/orders/pix", json=body, headers=headers)
        if response.status_code == 201:
            self._orders.append(response.json()["id"])
        return response

    def _pay(self) -> httpx2.Response:
        return self.control.post(f"/orders/{self._pick(self._orders)}/pay")

    def _lists(self) -> httpx2.Response:
        path = self._random.choice(
            ["/v2/orders", "/v2/customers", "/v2/webhooks/logs", "/api-keys", "/v2/products"]
        )
        return self.api.get(path, params={"limit": self._random.randint(1, 20)})

    def _twice(self) -> httpx2.Response:
        return self._order(**{"Idempotency-Key": f"key-{self._random.randint(1, 9)}"})

    def _broken(self) -> httpx2.Response:
        body = self._random.choice([b"{", b"[]", b'{"name": 1}', b""])
        return self.api.post(
            "/v2/customers", content=body, headers={"Content-Type": "application/json"}
        )

    def _stranger(self) -> httpx2.Response:
        return self.api.get("/v2/orders", headers={"Authorization": self._random.choice(BAD)})

    def _missing(self) -> httpx2.Response:
        return self.api.get(self._random.choice(["/nowhere", f"/v2/orders/{self._pick([])}"]))

    def _by_key(self) -> httpx2.Response:
        if self._key is None:
            made = self.api.post("/api-keys", json={"name": "Chave", "scopes": ["customers:read"]})
            self._key = made.json()["api_key"]["private_key"]
            return made
        # of these it may read the first
        path = self._random.choice(["/v2/customers", "/v2/orders", "/api-keys"])
        response = self.api.get(path, headers={"Authorization": f"Bearer {self._key}"})
        self._key = self._key if response.status_code != 401 else None  # a rewind has undone it
        return response

    def _change(self) -> httpx2.Response:
        name = f"Nome {self._random.randint(1, 99)}"
        return self.api.put(f"/v2/customers/{self._pick(self._customers)}", json={"name": name})

    def _advance(self) -> httpx2.Response:
        return self.control.post("/clock/advance", json={"hours": self._random.randint(1, 60)})

    def _fork(self) -> httpx2.Response:
        name = self.control.base_url.path.split("/")[2]
        made = self.control.post(f"/sandboxes/{name}/fork", json={})
        self.forks.append(made.json()["sandbox"]["name"])
        self._steps.append(made.json()["sandbox"]["step"])
        return made

    def _snapshot(self) -> httpx2.Response:
        return self.control.post("/snapshots", json={"name": "here"})

    def _rewind(self) -> httpx2.Response:
        return self.control.post("/rewind", json={"to_step": self._steps[-1]})

    def _before(self) -> httpx2.Response:
        return self.control.post("/rewind", json={"to_request": self._pick(self._asked[-20:])})

    def _restore(self) -> httpx2.Response:
        return self.control.post("/snapshots/here/restore")

    def _resume(self) -> httpx2.Response:
        return self.control.post("/webhooks/drain", json={"held": True})

    def _past(self) -> httpx2.Response:
        return self.api.get("/v2/orders?limit=3", headers={"X-Sandbox-As-Of": str(self._steps[-1])})

    def _webhook(self) -> httpx2.Response:
        hooks = self.api.get("/v2/webhooks").json()["webhooks"]
        self.sent += 1
        mine = [hook["id"] for hook in hooks if hook["url"] == self._url]
        if mine:
            return self.api.post(f"/v2/webhooks/{mine[0]}/test")
        return self.api.post(
            "/v2/webhooks", json={"url": self._url, "events": ["customer.*", "order.*"]}
        )

    def _token(self) -> httpx2.Response:
        return self.control.post("/tokens", json={"scopes": ["orders:read"]})

    def _simulated(self) -> httpx2.Response:
        return self.api.get("/v2/orders", headers={"Prefer": "code=503"})


def recorded(control: httpx2.Client, file: Path, **query: Any) -> Path:
    """The recording of a sandbox, in a file."""
    file.write_bytes(exported(control, requests=True, **query))
    return file
