"""Many clients at once: no place is sold twice, and no change is lost."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx2

from ..support.estate import Estate
from ..support.live import NO_TLS
from ..support.make import make_plan, order_body

THREADS = 12


def twin(api: httpx2.Client) -> httpx2.Client:
    """The same caller with a connection of its own."""
    return httpx2.Client(base_url=api.base_url, headers=api.headers, timeout=60, verify=NO_TLS)


def at_once(api: httpx2.Client, work: Callable[[httpx2.Client, int], list[int]]) -> Counter[int]:
    """Have as many clients do the same work at once; answers how often each status came."""
    with ExitStack() as stack, ThreadPoolExecutor(THREADS) as pool:
        clients = [stack.enter_context(twin(api)) for _ in range(THREADS)]
        return Counter(
            status for statuses in pool.map(work, clients, range(THREADS)) for status in statuses
        )


def test_the_last_places_of_a_plan_are_sold_once(shop: Estate) -> None:
    """An open order holds its place: whoever orders when all are taken is refused, however many
    order at once.
    """
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
    assert (
        shop.api.post("/v2/orders/pix", json=order_body(plan["projectId"], plan["id"])).status_code
        == 409
    )


def test_simultaneous_changes_of_one_record_lose_none(shop: Estate) -> None:
    """Clients change different members of a plan, again and again."""
    path = f"/v2/plans/{make_plan(shop.api)['id']}"

    def work(api: httpx2.Client, n: int) -> list[int]:
        statuses = []
        for turn in range(5):
            name, value = values(turn)[n % len(values(turn))]
            statuses.append(api.put(path, json={name: value}).status_code)
        return statuses

    assert {200: 5 * THREADS} == at_once(shop.api, work)
    plan = shop.api.get(path).json()["plan"]
    assert values(4) == [(name, plan[name]) for name, _ in values(4)]


def values(turn: int) -> list[tuple[str, Any]]:
    """Members of a plan with the value that each has after a turn."""
    return [
        ("name", f"Plano {turn}"),
        ("description", f"Aulas {turn}"),
        ("amount", 10.0 + turn),
        ("interval_count", 1 + turn),
        ("max_subscribers", 100 + turn),
        ("metadata", {"turn": str(turn)}),
    ]
