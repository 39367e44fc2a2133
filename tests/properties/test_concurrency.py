"""Many clients at once, on one world and on many: nothing is lost, nothing is done twice, nobody reads another's."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2
import pytest

from ..support.estate import Estate, client, token
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, make_customer, make_order, make_plan, make_project, order_body

THREADS = 12
EACH = 15


def twin(api: httpx2.Client) -> httpx2.Client:
    """The same caller with a connection of its own."""
    return httpx2.Client(base_url=api.base_url, headers=api.headers, timeout=60, verify=NO_TLS)


def at_once(api: httpx2.Client, work: Callable[[httpx2.Client, int], list[int]]) -> Counter[int]:
    """Have as many clients do the same work at once; answers how often each status came."""
    with ExitStack() as stack, ThreadPoolExecutor(THREADS) as pool:
        clients = [stack.enter_context(twin(api)) for _ in range(THREADS)]
        return Counter(status for statuses in pool.map(work, clients, range(THREADS)) for status in statuses)


def total(api: httpx2.Client, path: str) -> int:
    """How many records a list has."""
    count: int = api.get(path).json()["pagination"]["total"]
    return count


def test_no_update_is_lost(shop: Estate) -> None:
    """Each client changes a member again and again: each change is told, and the last one of a client is what stays."""
    project = make_project(shop.api)["id"]
    members = ("description", "metadata", "name")

    def value(n: int, step: int) -> Json:
        text = f"passo {step} de {n}"
        return {members[n % 3]: {"passo": text} if n % 3 == 1 else text}

    def work(api: httpx2.Client, n: int) -> list[int]:
        return [api.put(f"/v2/projects/{project}", json=value(n, step)).status_code for step in range(EACH)]

    assert {200: THREADS * EACH} == at_once(shop.api, work)
    shown = shop.api.get(f"/v2/projects/{project}").json()["data"]["project"]
    last = [value(n, EACH - 1) for n in range(THREADS)]
    assert all({member: shown[member]} in last for member in members)
    events = shop.control.get("/events", params={"resource_id": project}).json()["pagination"]["total"]
    assert 1 + THREADS * EACH == events


def test_no_more_is_refunded_than_was_paid(shop: Estate) -> None:
    plan = make_plan(shop.api, billing_type="one_time")
    order = make_order(shop.api, plan, totalAmount=10)
    assert shop.control.post(f"/orders/{order['id']}/pay").status_code == 200
    refund = {"amount": 1}
    done = at_once(
        shop.control,
        lambda api, n: [api.post(f"/orders/{order['id']}/refund", json=refund).status_code for _ in range(2)],
    )
    assert {200: 10, 409: THREADS * 2 - 10} == done
    after = shop.api.get(f"/v2/orders/{order['id']}").json()
    assert ("refunded", "10.00") == (after["status"], after["last_transaction"]["refunded_amount"])


def test_the_last_places_of_a_plan_are_sold_once(shop: Estate) -> None:
    """An open order holds its place: whoever orders when all are taken is refused, however many order at once."""
    plan = make_plan(shop.api, max_subscribers=3)

    def work(api: httpx2.Client, n: int) -> list[int]:
        document = f"P{n:07d}"
        buyer = {"name": "Ana", "email": f"a{n}@example.com", "document": document}
        body = order_body(plan["projectId"], plan["id"], customer=buyer)
        response = api.post("/v2/orders/pix", json=body)
        if response.status_code == 201:
            with twin(shop.control) as control:
                control.post(f"/orders/{response.json()['id']}/pay")
        return [response.status_code]

    done = at_once(shop.api, work)
    sold = shop.api.get(f"/v2/plans/{plan['id']}").json()["plan"]["subscribers_count"]
    assert 3 == sold == done[201]
    assert THREADS - 3 == done[409]
    assert shop.api.post("/v2/orders/pix", json=order_body(plan["projectId"], plan["id"])).status_code == 409


def test_figures_agree_with_what_they_count_after_a_crowd(shop: Estate) -> None:
    """Orders made, paid and refunded by all at once: counters, revenue and statistics are their sums."""
    plan = make_plan(shop.api)

    def work(api: httpx2.Client, n: int) -> list[int]:
        draw, found = random.Random(n), []
        with twin(shop.control) as control:
            for step in range(5):
                document = f"Q{n:03d}{step:04d}"
                buyer = {"name": "Ana", "email": f"q{n}@example.com", "document": document}
                cents = draw.randrange(100, 100_000)
                body = order_body(plan["projectId"], plan["id"], customer=buyer, totalAmount=cents / 100)
                order = created(api.post("/v2/orders/pix", json=body))
                verbs = draw.choice((["pay"], ["pay", "refund"], ["cancel"], ["fail"], []))
                found += [control.post(f"/orders/{order['id']}/{verb}").status_code for verb in verbs]
        return found

    assert {200} == set(at_once(shop.api, work))
    orders: list[Json] = []
    for page in (1, 2):
        query = {"projectId": plan["projectId"], "limit": 50, "page": page}
        orders += shop.api.get("/v2/orders", params=query).json()["orders"]
    assert len(orders) == THREADS * 5
    paid = sum(round(order["totalAmount"] * 100) for order in orders if order["status"] == "paid")
    project = shop.api.get(f"/v2/projects/{plan['projectId']}").json()["data"]["project"]
    stats = shop.api.get(f"/v2/projects/{plan['projectId']}/stats").json()["data"]["stats"]
    assert (THREADS * 5, paid / 100) == (project["orders_count"], project["total_revenue"])
    assert project["total_revenue"] == stats["revenue"]["net"]
    by_status = Counter(order["status"] for order in orders)
    assert dict(by_status) == {name: stats["orders"][name] for name in by_status}
    assert shop.control.get("/invariants").json()["ok"] is True


@pytest.mark.parametrize("worlds", [2, 8])
def test_parallel_worlds_do_not_read_each_other(live: Live, worlds: int) -> None:
    """Each client works in a world of its own, under the same merchant and the same names; each sees its own alone."""
    merchant = "0c1d2e3f-4a5b-4c6d-8e7f-001122334455"
    names = [f"parallel-{worlds}-{n}" for n in range(worlds)]

    def work(name: str) -> tuple[set[str], set[str], int]:
        with client(live, name, token(live, name, merchant)) as api:
            made = {make_customer(api, name=name, document=f"R{n:07d}")["id"] for n in range(EACH)}
            make_order(api)
            listed = api.get("/v2/customers", params={"name": name, "limit": 100}).json()["customers"]
            url = f"{live.url}/s/{name}/_sandbox/events"
            events = httpx2.get(url, params={"type": "order.created", "limit": 100}, verify=NO_TLS).json()["events"]
            mine = sum(event["merchant_id"] == merchant for event in events)
            return made, {customer["id"] for customer in listed}, mine

    with ThreadPoolExecutor(worlds) as pool:
        results = list(pool.map(work, names))
    for made, listed, orders in results:
        assert (made, 1) == (listed, orders)
    everything = [ident for made, _, _ in results for ident in made]
    for name, (made, _, _) in zip(names, results, strict=True):
        with client(live, name, token(live, name, merchant)) as api:
            for ident in random.Random(1).sample(everything, min(len(everything), 20)):
                assert (200 if ident in made else 404) == api.get(f"/v2/customers/{ident}").status_code
        live.app.sandboxes.forget(name)
