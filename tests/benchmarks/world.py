"""The same seeded world and the same handlers for every server that is measured."""

from dataclasses import dataclass

from stub_server.contract.schema import Validator
from stub_server.core.record import Body
from stub_server.core.slices import at_once
from stub_server.domain.callers import Caller, Identity
from stub_server.engine.kept import Trace
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.scheduler import due_jobs
from stub_server.operations import customers, orders
from stub_server.server.layers.routing import Application
from stub_server.server.reply import Reply
from stub_server.server.request import Head, Request
from stub_server.server.work import Work

from ..support.make import order_body


@dataclass(frozen=True, slots=True)
class Shot:
    """One operation to measure: what a client sends again and again.

    `other` is sent in turn with `body`, where the same body again would change nothing.
    """

    name: str
    method: str
    path: str
    body: Body | None = None
    other: Body | None = None


def shots(sandbox: Sandbox) -> list[Shot]:
    """The four operations, on records of a world."""
    sample = sandbox.origin.sample
    customer = f"/v2/customers/{sample['customerId']}"
    address = {
        "line_1": "1374, Avenida Paulista, Bela Vista",
        "city": "São Paulo",
        "state": "SP",
        "country": "BR",
    }
    phones = {"mobile_phone": {"country_code": "55", "area_code": "11", "number": "987654321"}}
    change = {
        "name": "Mariana Souza Oliveira",
        "phones": phones,
        "address": address,
        "metadata": {"crm": "4711"},
    }
    return [
        Shot("GET one customer", "GET", customer),
        Shot("GET list of 20", "GET", "/v2/customers?limit=20"),
        Shot("PUT customer", "PUT", customer, change, change | {"metadata": {"crm": "4712"}}),
        Shot(
            "POST PIX order",
            "POST",
            "/v2/orders/pix",
            order_body(sample["projectId"], sample["planId"]),
        ),
    ]


def token(app: Application) -> str:
    """A token with every scope."""
    return str(app.server.ready_token(app.sandboxes.default))


class Handlers:
    """Our handlers without our frame: nothing authenticated, nothing validated, not even
    what is stored.
    """

    def __init__(self, app: Application) -> None:
        """Takes the contract's check of written records off: other servers do their own or none."""
        self._sandbox = app.sandboxes.default
        self._server = app.server
        for table in self._sandbox.store.tables.values():
            table.check = Validator({}, {})
        self._trace = Trace(
            "req_bench", self._sandbox.clock.now, "GET", "/", b"", sandbox=self._sandbox.name
        )
        merchant = self._sandbox.store.merchant
        self._caller = Caller(Identity("jwt", merchant.user_id, merchant.id), frozenset("*"))
        self._request = Request("GET", "/", b"", (), {}, Head({}, ()), None, 0, 0)

    def _work(self) -> Work:
        at_once(due_jobs(self._sandbox))
        work = Work()
        work.server = self._server
        work.request = self._request
        work.scope = {}
        work.sandbox = self._sandbox
        work.store = self._sandbox.store
        work.trace = self._trace
        work.caller = self._caller
        return work

    def get(self, ident: str) -> Reply:
        """One customer."""
        return customers.get_customer(self._work(), ident)

    async def list(self, query: Body) -> Reply:
        """A page of customers."""
        return await customers.list_customers(self._work(), query)

    def put(self, ident: str, body: Body) -> Reply:
        """Change a customer."""
        work = self._work()
        reply = customers.update_customer(work, ident, body)
        work.commit()
        return reply

    def post(self, body: Body) -> Reply:
        """Place an order."""
        work = self._work()
        reply = orders.create_pix_order(work, body)
        work.commit()
        return reply
