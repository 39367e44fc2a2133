"""Many clients at once: no place is sold twice."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

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
