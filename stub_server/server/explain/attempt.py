"""A refused request on its way to one that succeeds: as repairs have made it so far, what they may
look at, and a copy of the sandbox in which it is tried: no journal, no rate limit, and nothing
leaves the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import orjson
from starlette.types import Message

from ...contract.document import JSON, Operation
from ...contract.secrets import LEFT_OUT
from ...core.clock import DAY, iso
from ...core.problem import Refusal
from ...core.record import (
    Body,
    Difference,
    Row,
    differences,
    is_deeper_than,
    may_have_more_values,
)
from ...core.slices import BackgroundWorker, Sliced
from ...engine.fault_rules import Faults
from ...engine.kept import Budget, Log, Trace
from ...engine.sandbox import Sandbox
from ...engine.scheduler import due_jobs
from ...engine.tables.store import Merchant, Store
from ..layers.context import request_of
from ..layers.inside import Question, scope_of
from ..layers.routing import Routing
from ..layers.validation import DEEPEST, WIDEST
from ..layers.way import Way
from ..server import Server
from .mending import Mender

LARGEST = 65_536  # bytes of a body that is mended
KEPT_HEADERS = ("Content-Type", "Idempotency-Key")
DROPPED_HEADERS = {
    "Prefer": "It asks the sandbox to fail.",
    "X-Sandbox-Simulate": "It asks the sandbox to fail.",
    "X-Sandbox-Delay": "It asks the sandbox to wait.",
    "X-Sandbox-As-Of": "It asks for an earlier state.",
}
"""Headers that the nearest request leaves out, and why."""
_PEER = ("127.0.0.1", 0)
_LOOKED_AT = 50  # records of a table, the newest first
MOST_JOBS = 2_000  # that a call makes due, in the copy
TABLES = {
    "projectId": "projects",
    "planId": "plans",
    "productId": "products",
    "orderId": "orders",
    "customerId": "customers",
    "subscriptionId": "subscriptions",
    "apiKeyId": "api_keys",
    "publicKey": "api_keys",
    "webhookId": "webhooks",
    "logId": "webhook_logs",
}
"""Which table the record of a path's parameter is in."""


class Attempt:
    """One request and its refusal. `copy` is a copy of the sandbox after the calls that come
    `before`, each with why it is made.

    `request` has `method`, `path`, `query`, `header` and `body`, JSON or the bytes that are none;
    it begins as it was sent. `reasons` say why a place such as `body.customer.name` was changed.
    """

    def __init__(
        self,
        mender: Mender,
        routing: Routing,
        server: Server,
        sandbox: Sandbox,
        trace: Trace,
        *,
        refusal: Refusal,
    ) -> None:
        self.mender, self.routing, self.refusal = mender, routing, refusal
        self.server, self.sandbox, self.trace = server, sandbox, trace
        self.document = mender.document
        self.request = self.sent(KEPT_HEADERS)
        self.reasons = {f"header.{name}": why for name, why in DROPPED_HEADERS.items()}
        self.reasons["body"] = (
            "No body is known that can be mended. This is the contract's example."
        )
        self.before: list[tuple[Question, str]] = []
        self.copy = sandbox.fork(sandbox.name)
        self.copy.log = Log(0, Budget())
        self.copy.log.number = sandbox.log.number
        self.copy.faults = Faults(sandbox.origin.seed)
        merchant = self._merchant()
        self._merchant_id, self._token = merchant.id, server.ready_token(sandbox, merchant)

    def sent(self, headers: Collection[str]) -> Body:
        """The parts of the request that may be changed, as they were sent, with these headers."""
        trace = self.trace
        header, query = {}, {}
        for name, value in trace.headers:
            if name.title() in headers:
                header[name.title()] = value
        asked = parse_qs(trace.query.decode("latin-1"), keep_blank_values=True, errors="replace")
        for name, values in asked.items():
            query[name] = values if len(values) > 1 else values[0]
        sent: Body = {"method": trace.method, "path": trace.path, "query": query, "header": header}
        if trace.body and trace.body != LEFT_OUT:
            sent["body"] = _json_in(trace.body)
        return sent

    def _merchant(self) -> Merchant:
        """The merchant of the caller; of one that a fault has kept unknown, that of the record in
        the path.
        """
        caller, stores, values = self.trace.caller, self.sandbox.stores, self.values
        if caller is not None and caller.merchant_id in stores:
            return stores[caller.merchant_id].merchant
        for store in stores.values():
            for name in TABLES.keys() & values.keys():
                if store.tables[TABLES[name]].find(values[name].lower()) is not None:
                    return store.merchant
        return self.sandbox.store.merchant

    # -- the request

    @property
    def operations(self) -> dict[str, Operation]:
        """The operations of the path by method; of an unknown path none."""
        return self.document.routed(self.request["path"])[0]

    @property
    def called_method(self) -> str:
        """The method of the operation that is called; HEAD calls that of GET."""
        method: str = self.request["method"]
        return "GET" if method == "HEAD" else method

    @property
    def operation(self) -> Operation:
        """The operation that is called."""
        return self.operations[self.called_method]

    @property
    def values(self) -> dict[str, str]:
        """The values of the path's parameters."""
        return self.document.routed(self.request["path"])[1]

    @property
    def later(self) -> str:
        """A date-time that ends nothing."""
        return iso(self.copy.clock.now + 365 * DAY)

    @property
    def members(self) -> Body:
        """The members of the body; none of a body that is no object."""
        body = self.request.get("body")
        return body if isinstance(body, dict) else {}

    def question(self, request: Body) -> Question:
        """A request as it is sent, with the token."""
        query = {}
        for name, value in request["query"].items():
            query[name] = value
            if not isinstance(value, str | list):
                query[name] = orjson.dumps(value).decode()
        text = urlencode(query, doseq=True, safe=":,", quote_via=quote)
        headers = {name.lower(): value for name, value in request["header"].items()}
        headers["authorization"] = f"Bearer {self._token}"
        body = request.get("body", b"")
        if not isinstance(body, bytes):
            body = orjson.dumps(body)
        return Question(request["method"], request["path"], text, headers, body)

    def call_first(self, name: str, ident: str, **body: Any) -> None:
        """Make a call about one record before the request, because of what refuses it."""
        operation = self.document.operations[name]
        call: Body = {"method": operation.method, "query": {}, "header": {}}
        call["path"] = operation.at_ids(dict.fromkeys(TABLES, ident))
        if body:
            call |= {"header": {"Content-Type": JSON}, "body": body}
        self.before.append((self.question(call), self.refusal.message))

    async def ask(self, asked: Question) -> Refusal | None:
        """Why the copy of the sandbox refuses a request, after the jobs that are due in it; None if
        it accepts it.

        Others are served meanwhile.
        """

        async def receive() -> Message:
            return {"type": "http.request", "body": asked.body}

        async def send(message: Message) -> None:
            """Nothing is sent: the answer is returned."""

        await asyncio.sleep(0)
        scope = scope_of("", asked, _PEER)
        way = Way(self.server, request_of(scope), scope, receive, send)
        way.prefix, way.path = "", asked.path
        way.begin(self.copy)
        try:
            await BackgroundWorker().in_slices(_few(due_jobs(self.copy)), self.copy.name)
            answer = await self.routing(way)
        except Refusal as refusal:
            return refusal
        except Exception as defect:  # which the request itself has already logged
            return Refusal(str(defect))
        await answer.abandon()
        return None if 200 <= answer.status < 300 else Refusal(f"{answer.status}")

    # -- records

    @property
    def store(self) -> Store:
        """The records of the merchant, in the copy."""
        return self.copy.store_of(self._merchant_id)

    def newest(self, name: str) -> list[Row]:
        """The newest records of a table, at most fifty."""
        table = self.store.tables[name]
        return [table.parse(table.rows[key]) for key in reversed(table.order[-_LOOKED_AT:])]

    @property
    def table(self) -> str | None:
        """The table of the record in the path."""
        return next((TABLES[name] for name in self.values if name in TABLES), None)

    @property
    def resource(self) -> str | None:
        """The schema of the record in the path."""
        return None if self.table is None else self.store.tables[self.table].spec.schema

    @property
    def target(self) -> Row | None:
        """The record in the path."""
        if self.table is None:
            return None
        return self.store.tables[self.table].open(next(iter(self.values.values())).lower())


def is_small(body: bytes) -> bool:
    """Whether a body can be mended while others wait."""
    return len(body) <= LARGEST and not may_have_more_values(body, WIDEST)


def _few(jobs: Sliced[None]) -> Sliced[None]:
    """The jobs that are due. Raises Refusal if they are too many to be tried."""
    for _ in range(MOST_JOBS):
        try:
            yield next(jobs)
        except StopIteration:
            return
    raise Refusal("Too many jobs are due for this to be tried.")


def _json_in(body: bytes) -> Any:
    """What a body says; the body itself where it is no JSON, or too large or too deep to be
    mended.
    """
    if not is_small(body):
        return body
    try:
        value = orjson.loads(body)
    except ValueError:
        return body
    return body if is_deeper_than(value, DEEPEST) else value


def changes(given: Any, made: Any) -> Iterator[Difference]:
    """The places at which a request has been changed."""
    return differences(given, made, "", _is_same, in_full=True)


def _is_same(given: Any, made: Any) -> bool:
    return type(given) is type(made) and bool(given == made)
