"""What requests to the control surface are aimed at: records that exist, as nobody links to them in
a single request.

What is made for a request is made in the world that the request goes to. Worlds that the run makes
are dropped again.
"""

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import httpx2

Json = dict[str, Any]
PROTECTED = "default"
FORK = "schemathesis"
# The world that may be deleted: the run's own would come back with the next request that names it.
SPARE = "spare"
# What a control moves from, or is refused from, if the sandbox has few: half of its requests are
# aimed at one.
_MOVED = {
    "payOrder": ("orderId", "orders", "pending"),
    "failOrder": ("orderId", "orders", "pending"),
    "expireOrder": ("orderId", "orders", "pending"),
    "cancelOrder": ("orderId", "orders", "pending"),
    "refundOrder": ("orderId", "orders", "paid"),
    "disputeOrder": ("orderId", "orders", "paid"),
    "cancelSubscription": ("subscriptionId", "subscriptions", "expired"),
    "renewSubscription": ("subscriptionId", "subscriptions", "active"),
    "expireSubscription": ("subscriptionId", "subscriptions", "past_due"),
}
# What begins a chain is not to be refused: nothing follows it then.
_BEGUN = _MOVED | {"cancelSubscription": ("subscriptionId", "subscriptions", "active")}
_WAITS = range(1, 61)  # seconds that a request may ask for. Hypothesis looks for what takes longest


class Controls:
    """One per run. `base` is the server's address."""

    def __init__(self, base: str) -> None:
        """Nothing is asked before the first request."""
        self._http = httpx2.Client(base_url=base, timeout=30)
        self._made: list[str] = []
        self._forks = 0
        self._makers: Mapping[str, Callable[[], str]] = {
            "faultId": self._fault,
            "requestId": self._request,
            "snapshotName": self._snapshot,
            "inboxName": self._inbox,
            "messageNumber": self._message,
            "sandboxName": self._spare,
        }

    def file(self) -> bytes:
        """The world as a file."""
        return self._done("GET", "export").content

    def aim_path(self, operation: str, parameters: Any, *, every: bool = False) -> Any:
        """Path parameters, seven of eight replaced by those of a record that is made for it, or
        every one.
        """
        if not isinstance(parameters, Mapping):
            return parameters
        number = crc32(repr(sorted(parameters.items())).encode("utf-8", "replace"))
        moved = self._moved(operation, _MOVED) if number % 2 else {}
        if moved:
            return moved
        if operation == "deleteSandbox" and not every and not number % 3:
            return {"sandboxName": PROTECTED}
        names = [name for name in parameters if name in self._makers] if every or number % 8 else []
        return {**parameters, **{name: self._makers[name]() for name in names}}

    def begin_path(self, operation: str, parameters: Any) -> Any:
        """Path parameters of what begins a chain: of those that are made up, nine of ten are
        the same.
        """
        if operation == "getRecordHistory":  # of a record that a step has changed
            return {"recordResource": "subscriptions", "recordId": self._leaving()}
        return self._moved(operation, _BEGUN) or self.aim_path(operation, parameters, every=True)

    def aim_body(self, operation: str, body: Any, *, every: bool = False) -> Any:
        """What a body refers to."""
        number = crc32(repr(body).encode("utf-8", "replace"))
        if not isinstance(body, dict) or not (every or number % 8):
            return body
        if operation == "payPixCode":
            return {"qr_code": self._code("paid" if number % 8 == 1 else "pending")}
        if operation == "createFault" and "then" not in body:
            return {"preset": "outage"} | body
        if operation == "triggerEvent" and number % 4:
            return {name: value for name, value in body.items() if name != "resource_id"}
        return body

    def hasten(self, query: Any) -> Any:
        """A query that does not wait for what will not come, but for one of sixteen,
        which waits a second.
        """
        wait = query.get("wait_seconds") if isinstance(query, Mapping) else None
        if str(wait) not in map(str, _WAITS):
            return query
        return {
            **query,
            "wait_seconds": int(not crc32(repr(query).encode("utf-8", "replace")) % 16),
        }

    def made(self, operation: str, response: Any) -> None:
        """Take note of a world that the run has made."""
        if operation in ("createSandbox", "forkSandbox") and response.status_code == 201:
            self._made.append(response.json()["sandbox"]["name"])

    def begin(self, forks: int) -> bool:
        """When another fork was made, drop the worlds of the one before: what one request made, the
        next would meet. Whether one was made.
        """
        is_another = forks != self._forks
        if is_another:
            self._forks = forks
            self.drop()
        return is_another

    def drop(self) -> None:
        """Drop the worlds that the run has made."""
        while self._made:
            self._http.delete(f"/_sandbox/sandboxes/{self._made.pop()}")

    def prepare(self, operation: str) -> None:
        """Have something in a list that a chain begins with: nothing else in it makes requests to
        the API.
        """
        if operation == "listRequests":
            self._request()
        elif operation == "listSteps":
            self._done("POST", "clock/advance", json={"seconds": 1})

    def empty_for(self, operation: str, body: Any) -> None:
        """Let years pass in a world without members, but for the ten that are the most: each takes
        half a second.
        """
        if operation != "advanceClock" or not isinstance(body, Mapping):
            return
        days = body.get("days", 0)
        months = body.get("months", 0)
        if isinstance(days, int) and isinstance(months, int) and 365 < days + 30 * months < 3650:
            self._done("POST", "reset", json={"scenario": "empty"})

    def _done(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return self._http.request(
            method, f"/s/{FORK}/_sandbox/{path}", **options
        ).raise_for_status()

    def _moved(self, operation: str, moves: Mapping[str, tuple[str, str, str]]) -> Json:
        """The path parameter of a record that a control moves, or none."""
        if operation == "resumeSubscription":
            return {"subscriptionId": self._leaving()}
        if operation == "resolveDispute":
            return {"orderId": self._disputed()}
        if operation not in moves:
            return {}
        name, table, status = moves[operation]
        found = self._records(table, status)
        return {name: found[0]["id"]} if found else {}

    def _fault(self) -> str:
        self._done("DELETE", "faults")  # requests of the run may have made as many as there can be
        made = self._done(
            "POST", "faults", json={"match": {"path": "/nowhere"}, "then": {"status": 503}}
        )
        return str(made.json()["fault"]["id"])

    def _request(self) -> str:
        self._http.get(f"/s/{FORK}/v2/plans")
        return str(self._done("GET", "requests", params={"limit": 1}).json()["requests"][0]["id"])

    def _snapshot(self) -> str:
        return str(
            self._done("POST", "snapshots", json={"name": "known"}).json()["snapshot"]["name"]
        )

    def _leaving(self) -> str:
        ident = str(self._records("subscriptions", "active")[0]["id"])
        self._done("POST", f"subscriptions/{ident}/cancel", json={"at_period_end": True})
        return ident

    def _disputed(self) -> str:
        paid = self._records("orders", "paid")
        ident = str(next(order["id"] for order in paid if order["paymentMethod"] == "pix"))
        self._done("POST", f"orders/{ident}/dispute")
        return ident

    def _inbox(self) -> str:
        self._done("POST", "inbox/shop", json={})
        return "shop"

    def _message(self) -> str:
        return str(self._done("GET", "inbox/shop").json()["messages"][0]["number"])

    def _spare(self) -> str:
        if (
            self._http.post(f"/_sandbox/sandboxes/{FORK}/fork", json={"name": SPARE}).status_code
            == 201
        ):
            self._made.append(SPARE)
        return SPARE

    def _code(self, status: str) -> str:
        orders = [
            order for order in self._records("orders", status) if order["paymentMethod"] == "pix"
        ]
        return str(orders[0]["last_transaction"]["qr_code"])

    def _records(self, table: str, status: str) -> list[Json]:
        """Those of a project that sells come first: nothing is renewed of a suspended one."""
        own = self._done("GET", "credentials").json()
        sells = own["sample"]["projectId"]
        bearer = {"Authorization": f"Bearer {own['jwt']}"}
        query: dict[str, str | int] = {"status": status, "limit": 100}
        answer = self._http.get(f"/s/{FORK}/v2/{table}", params=query, headers=bearer)
        found: list[Json] = answer.raise_for_status().json()[table]
        return sorted(found, key=lambda record: record.get("projectId") != sells)
