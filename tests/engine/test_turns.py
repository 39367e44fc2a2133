"""No request looks at all records of a kind in one turn of the event loop: others wait meanwhile."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from stub_server.app import create_app
from stub_server.core import slices
from stub_server.core.record import Record, Row
from stub_server.domain.brcode import crc16
from stub_server.engine import resources, scheduler
from stub_server.engine.tables.table import Table
from stub_server.operations.control import sandbox_personas
from stub_server.operations.control.sandbox_stream import Place
from stub_server.server.sandboxes import sandboxes
from stub_server.server.views import versions

from ..support.live import FROZEN
from ..support.make import card_body, fresh_cpf, list_of, object_of, typed
from .inside import Answer, Inside, Json

MANY = 60
AT_ONCE = 4
FEW = 50
"""Records of a kind, how many one step changes, and how many may be parsed in a turn."""


class Shop:
    """A project with many plans, products that all of one plan unlock, and members of that plan."""

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self.app = inside.app
        self.token = self.app.server.ready_token(self.app.sandboxes.default)
        project = self.make("/v2/projects", {"name": "Clube", "status": "active"})
        self.project = project["data"]["project"]["id"]
        self.plans = [self._plan(number) for number in range(MANY)]
        self.plan = self.plans[0]["id"]
        product = {"projectId": self.project, "planIds": [self.plan]}
        for number in range(MANY):
            self.make("/v2/products", {**product, "name": f"Aula {number}"})

    def _plan(self, number: int) -> Json:
        body = {"projectId": self.project, "name": f"Plano {number}", "amount": 49.9}
        recurring = {"billing_type": "recurring", "interval": "month", "interval_count": 1}
        body |= {**recurring, "payment_methods": ["credit_card", "pix", "boleto"]}
        return object_of(self.make("/v2/plans", body), "plan")

    def make(self, path: str, body: Json) -> Json:
        """What a POST has made."""
        answer = self.inside.ask("POST", path, body, self.token)
        assert 201 == answer.status, answer.body
        return typed(dict, answer.json())

    def join(self, **changes: object) -> None:
        """Many members of the plan."""
        for _ in range(MANY):
            order = card_body(self.plans[0]) | changes
            order["customer"] |= {"document": fresh_cpf()}
            self.make("/v2/orders", order)

    def counted(self, path: str) -> list[Json]:
        """What a list has."""
        answer = self.inside.ask("GET", f"{path}&limit=100", None, self.token)
        return list_of(answer.json(), path.partition("?")[0].rpartition("/")[2])

    def busiest(self, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Json) -> int:
        """How many records are parsed in the longest turn of a request and of the
        jobs that it sets.
        """
        counts = [0]
        parse = Table.parse

        def counting(table: Table, record: Record) -> Row:
            counts[-1] += 1
            return parse(table, record)

        async def beat() -> None:
            while True:
                counts.append(0)
                await asyncio.sleep(0)

        async def asked() -> None:
            beating = asyncio.create_task(beat())
            for target in (path, "/_sandbox/clock"):  # what is due comes before the second one
                verb = method if target is path else "GET"
                sent = body if verb == "POST" else None
                answer = await self.inside.asking(verb, target, sent, self.token)
                assert answer.status in (200, 201, 404), answer.body
            beating.cancel()

        with monkeypatch.context() as patched:
            patched.setattr(Table, "parse", counting)
            self.inside.run(asked())
        return max(counts)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(slices, "SLICE", 0.00001)
    for module, name in (
        (scheduler, "MOST_CHANGED"),
        (scheduler, "MOST_RESUMED"),
        (resources, "MOST_DROPPED"),
        (resources, "MOST_CLEARED"),
        (sandbox_personas, "MOST_PLANS"),
        (sandboxes, "MOST_CHANGED"),
    ):
        monkeypatch.setattr(module, name, AT_ONCE)
    inside = Inside(create_app(replace(FROZEN, scenario="empty")))
    yield Shop(inside)
    inside.close()


Ask = tuple[str, Callable[[Shop], str], Json]
ASKED: dict[str, Ask] = {
    "stats": ("GET", lambda shop: f"/v2/projects/{shop.project}/stats", {}),
    "personas": ("POST", lambda shop: "/_sandbox/personas", {"persona": "brand_new"}),
    "delete a plan": ("DELETE", lambda shop: f"/v2/plans/{shop.plan}", {}),
    "delete a project": ("DELETE", lambda shop: f"/v2/projects/{shop.project}", {}),
}


def test_an_explanation_does_what_is_due_in_its_copy_in_slices(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To try an activation, all members of a project were resumed in one turn."""
    shop.join()
    suspended = shop.inside.ask("POST", f"/v2/projects/{shop.project}/suspend", {}, shop.token)
    assert 200 == suspended.status
    body = card_body(shop.plans[0])
    del body["planId"]
    refused = shop.inside.ask("POST", "/v2/orders", body, shop.token)
    assert 422 == refused.status
    path = f"/_sandbox/requests/{refused.json()['request_id']}"
    assert MANY > shop.busiest(monkeypatch, "GET", path, {})


def test_the_figures_of_many_plans_are_added_up_in_several_turns(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merchant with a hundred thousand plans made others wait for seconds."""
    for plan in shop.plans:
        order = card_body(plan)
        order["customer"] |= {"document": fresh_cpf()}
        shop.make("/v2/orders", order)
    turns = [0]

    async def beat() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    async def asked() -> Answer:
        beating = asyncio.create_task(beat())
        path = f"/v2/projects/{shop.project}/stats"
        answer = await shop.inside.asking("GET", path, None, shop.token)
        beating.cancel()
        return answer

    monkeypatch.setattr(slices, "AT_ONCE", AT_ONCE)
    stats = shop.inside.run(asked()).json()["data"]["stats"]
    assert (MANY, 5) == (stats["orders"]["paid"], len(stats["top_plans"]))
    assert turns[0] > 4


@pytest.mark.parametrize("name", ASKED)
def test_plans_and_products_are_read_in_several_turns(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    method, path, body = ASKED[name]
    assert shop.busiest(monkeypatch, method, path(shop), body) < FEW
    if name == "delete a plan":
        assert [] == shop.counted(f"/v2/products?planId={shop.plan}")
        assert MANY == len(shop.counted(f"/v2/products?projectId={shop.project}"))
    elif name == "delete a project":
        assert [] == shop.counted(f"/v2/products?projectId={shop.project}")
        assert [] == shop.counted(f"/v2/plans?projectId={shop.project}")


@pytest.mark.parametrize("kind", ["plan", "project"])
def test_boletos_that_can_no_longer_be_paid_are_read_in_several_turns(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shop.join(paymentMethod="boleto")
    shop.inside.ask("POST", "/_sandbox/clock/advance", {"days": 60})
    path = f"/v2/{kind}s/{getattr(shop, kind)}"
    assert shop.busiest(monkeypatch, "DELETE", path, {}) < FEW
    assert 404 == shop.inside.ask("GET", path, None, shop.token).status


@pytest.mark.parametrize("kind", ["plan", "project"])
def test_a_boleto_that_expires_while_others_are_read_keeps_its_plan(shop: Shop, kind: str) -> None:
    """A snapshot has the orders, so that the expired one is in a copy of the table."""
    shop.join(paymentMethod="boleto")
    shop.inside.ask("POST", "/_sandbox/clock/advance", {"days": 60})
    shop.make("/v2/orders", card_body(shop.plans[0]) | {"paymentMethod": "boleto"})
    shop.inside.ask("POST", "/_sandbox/snapshots", {"name": "orders"})
    path = f"/v2/{kind}s/{getattr(shop, kind)}"

    async def asked() -> tuple[Answer, Answer]:
        return await asyncio.gather(
            shop.inside.asking("DELETE", path, None, shop.token),
            shop.inside.asking("POST", "/_sandbox/clock/advance", {"days": 5}),
        )

    deletion, advance = shop.inside.run(asked())
    assert (409, 200) == (deletion.status, advance.status), deletion.body
    assert b"can still be paid late" in deletion.body


@pytest.mark.parametrize("to", ["suspend", "activate", "archive"])
def test_members_of_a_project_are_read_in_several_turns(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    shop.join()
    if to == "activate":
        shop.busiest(monkeypatch, "POST", f"/v2/projects/{shop.project}/suspend", {})
        before = shop.counted("/v2/subscriptions?sort=createdAt")
        shop.inside.ask("POST", "/_sandbox/clock/advance", {"days": 1})
    assert shop.busiest(monkeypatch, "POST", f"/v2/projects/{shop.project}/{to}", {}) < FEW
    members = shop.counted("/v2/subscriptions?sort=createdAt")
    assert MANY == len(members)
    assert {to == "archive"} == {each["cancel_at_period_end"] for each in members}
    if to == "activate":
        for old, new in zip(before, members, strict=True):
            assert old["next_billing_at"] < new["next_billing_at"]


def test_keys_are_deleted_in_several_turns(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may open deliveries to twenty webhooks."""
    for number in range(MANY):
        shop.make("/api-keys", {"name": str(number), "scopes": ["plans:read"]})
    before = len(shop.app.sandboxes.default.store.api_keys)
    path = "/_sandbox/sandboxes/default/rotate"
    assert shop.busiest(monkeypatch, "POST", path, {"keys": True}) < FEW
    assert before - MANY == len(shop.app.sandboxes.default.store.api_keys)


def test_orders_that_mention_a_code_are_not_read(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = shop.make("/v2/orders", card_body(shop.plans[0]) | {"paymentMethod": "pix"})
    payment = body["last_transaction"]
    code = payment["qr_code"]
    other = code[:-4].replace(payment["txid"], "0" * 32)
    other += crc16(other)
    items = [{"description": other, "quantity": 1, "amount": 49.9}]
    shop.join(paymentMethod="pix", items=items)
    assert shop.busiest(monkeypatch, "POST", "/_sandbox/pix/pay", {"qr_code": other}) < FEW
    assert shop.busiest(monkeypatch, "POST", "/_sandbox/pix/pay", {"qr_code": code}) < FEW


def test_a_reader_of_a_stream_that_is_behind_is_told_of_few_deliveries_in_a_turn(
    shop: Shop,
) -> None:
    """A hundred steps with twenty deliveries each held everybody up for 90 ms."""
    for number in range(20):
        url = f"https://hooks{number}.example.com/"
        shop.make("/v2/webhooks", {"url": url, "events": ["product.created"]})
    for number in range(MANY):
        product = {"projectId": shop.project, "planIds": [shop.plan], "name": f"{number}"}
        shop.make("/v2/products", product)
    entry = shop.app.sandboxes.entry("default")
    place = Place(entry, f"{entry.incarnation}-0-0-0")
    told = []
    while messages := list(place.read(entry)):
        assert len(messages) < 4 * 100
        told += messages
    shown = [message.split(b"\n")[0] for message in told]
    assert entry.sandbox.log.number == shown.count(b"event: step")
    assert 20 * MANY <= shown.count(b"event: delivery")


def test_steps_are_looked_at_for_a_version_in_several_turns(shop: Shop) -> None:
    """Ten thousand steps held everybody up for 50 ms."""
    log = shop.app.sandboxes.default.log
    assert len(log) == len(list(versions(log, "products", shop.plan, None)))


@pytest.mark.promise("nothing-request-costs-more-length")
def test_thousands_of_keys_of_a_sandbox_cost_others_nothing() -> None:
    """Others are deleted, and go back by a step, in the time that they took without."""
    inside = Inside(create_app(replace(FROZEN, scenario="empty")))
    token = inside.app.server.ready_token(inside.app.sandboxes.default)
    key = {"name": "chave", "scopes": ["customers:read"]}

    def asked(method: str, path: str, body: Json | None, status: int) -> float:
        """The seconds of CPU time that it takes."""
        began = time.thread_time()
        answer = inside.ask(method, path, body, token)
        assert status == answer.status, answer.body
        return time.thread_time() - began

    def quickest() -> tuple[float, ...]:
        """Of a deletion of another sandbox, and of a rewind by one step."""
        found = []
        for _ in range(5):
            asked("POST", "/_sandbox/sandboxes", {"name": "other"}, 201)
            deletion = asked("DELETE", "/_sandbox/sandboxes/other", None, 204)
            step = inside.app.sandboxes.default.log.number
            asked("POST", "/api-keys", key, 201)
            back = asked("POST", "/_sandbox/rewind", {"to_step": step}, 200)
            found.append((deletion, back))
        return tuple(map(min, zip(*found, strict=True)))

    with_few = quickest()
    for _ in range(10_000):
        asked("POST", "/api-keys", key, 201)
    with_many = quickest()
    inside.close()
    assert with_many[0] < 3 * with_few[0]
    assert with_many[1] < 8 * with_few[1]
