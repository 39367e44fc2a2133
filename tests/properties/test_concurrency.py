"""Many clients at once: nothing is lost, and nothing is done twice."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2

from ..support.estate import Estate
from ..support.live import NO_TLS
from ..support.make import Json, make_plan, make_project, order_body

THREADS = 12
EACH = 15


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


def total(api: httpx2.Client, path: str) -> int:
    """How many records a list has."""
    count: int = api.get(path).json()["pagination"]["total"]
    return count


def test_no_update_is_lost(shop: Estate) -> None:
    """Each client changes a member again and again: each change is told, and the last one of a
    client is what stays.
    """
    project = make_project(shop.api)["id"]
    members = ("description", "metadata", "name")

    def value(n: int, step: int) -> Json:
        text = f"passo {step} de {n}"
        return {members[n % 3]: {"passo": text} if n % 3 == 1 else text}

    def work(api: httpx2.Client, n: int) -> list[int]:
        return [
            api.put(f"/v2/projects/{project}", json=value(n, step)).status_code
            for step in range(EACH)
        ]

    assert {200: THREADS * EACH} == at_once(shop.api, work)
    shown = shop.api.get(f"/v2/projects/{project}").json()["data"]["project"]
    last = [value(n, EACH - 1) for n in range(THREADS)]
    assert all({member: shown[member]} in last for member in members)
    events = shop.control.get("/events", params={"resource_id": project}).json()["pagination"][
        "total"
    ]
    assert 1 + THREADS * EACH == events


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
