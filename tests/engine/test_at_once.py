"""Many clients at once: a key acts once, and what operations that wait do between the steps of others still folds."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import httpx2
import pytest

from stub_server.http.monitor import Limits

from ..support.live import NO_TLS, serving
from ..support.make import customer_body
from ..support.receiver import Receiver, receiving
from .inside import Inside, Json
from .scene import MERCHANTS
from .shop import Shop, flush_usage, shop_in
from .small import origin
from .state import same, stale, state, token_of, unfold, whole

CLIENTS = 12


@pytest.fixture
def shop(inside: Inside, hooks: tuple[str, ...]) -> Shop:
    """A new world with a shop in it."""
    return shop_in(inside, hooks)


@pytest.fixture
def url(shop: Shop) -> Iterator[str]:
    """Where the same application is served over HTTP."""
    with serving(shop.inside.app, Limits()) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An address that answers when it is told to."""
    with receiving() as made:
        yield made


def at_once(shop: Shop, url: str, work: Callable[[httpx2.Client, int], list[httpx2.Response]]) -> list[httpx2.Response]:
    """Have twelve clients do their work at the same time."""
    headers = {"Authorization": f"Bearer {token_of(shop.inside, shop.world, shop.world.home)}"}
    with ExitStack() as stack, ThreadPoolExecutor(CLIENTS) as pool:
        clients = [
            stack.enter_context(httpx2.Client(base_url=url, headers=headers, timeout=60, verify=NO_TLS))
            for _ in range(CLIENTS)
        ]
        return [response for several in pool.map(work, clients, range(CLIENTS)) for response in several]


def order_body(shop: Shop) -> Json:
    """Of a plan that sells."""
    plan = next(shop.world.store.plans.all_rows()).public
    buyer = {"name": "Nova", "email": "nova@example.com", "document": "34712695846"}
    body: Json = {"projectId": plan["projectId"], "planId": plan["id"], "paymentMethod": "pix", "totalAmount": 11}
    return body | {"items": [{"description": "Plano", "quantity": 1, "amount": 11}], "customer": buyer}


def webhook(shop: Shop, url: str, receiver: Receiver) -> str:
    """The id of a new webhook at a receiver. It is asked for over HTTP: the served world is another thread's."""
    body = {"url": receiver.url, "events": ["order.*", "customer.*"]}
    headers = {"Authorization": f"Bearer {token_of(shop.inside, shop.world, shop.world.home)}"}
    made = httpx2.post(f"{url}/v2/webhooks", json=body, headers=headers, timeout=60, verify=NO_TLS)
    assert 201 == made.status_code
    ident: str = made.json()["webhook"]["id"]
    return ident


def test_twelve_clients_with_one_key_act_once(shop: Shop, url: str) -> None:
    """One of them acts; all are answered with what it was answered with."""
    body, orders, number = order_body(shop), len(shop.world.store.orders), shop.world.log.number
    headers = {"Idempotency-Key": "one"}
    answers = at_once(shop, url, lambda api, n: [api.post("/v2/orders/pix", json=body, headers=headers) for _ in "ab"])
    assert {201} == {answer.status_code for answer in answers}
    assert 1 == len({answer.content for answer in answers})
    assert 1 == sum("idempotent-replayed" not in answer.headers for answer in answers)
    assert orders + 1 == len(shop.world.store.orders)
    assert 1 == sum(step.cause.kind == "request" for step in list(shop.world.log)[number:])


def test_twelve_clients_with_one_key_send_one_test(shop: Shop, url: str, receiver: Receiver) -> None:
    """While the first waits for the receiver, the others are told that it does; afterwards they get its answer."""
    receiver.hold = threading.Event()
    path, headers = f"/v2/webhooks/{webhook(shop, url, receiver)}/test", {"Idempotency-Key": "one"}
    refused = threading.Semaphore(0)

    def work(api: httpx2.Client, n: int) -> list[httpx2.Response]:
        assert receiver.hold is not None
        response = api.post(path, headers=headers)
        if response.status_code == 409:
            refused.release()
        return [response]

    def let_go() -> None:
        for _ in range(CLIENTS - 1):
            if not refused.acquire(timeout=20):
                break
        assert receiver.hold is not None
        receiver.hold.set()

    waiter = threading.Thread(target=let_go)
    waiter.start()
    answers = at_once(shop, url, work)
    waiter.join(30)
    assert {200: 1, 409: CLIENTS - 1} == Counter(answer.status_code for answer in answers)
    assert {"idempotency_in_progress"} == {a.json()["code"] for a in answers if a.status_code == 409}
    again = at_once(shop, url, lambda api, n: [api.post(path, headers=headers)])
    assert {"true"} == {answer.headers["idempotent-replayed"] for answer in again}
    assert {answer.content for answer in answers if answer.status_code == 200} == {a.content for a in again}
    assert 1 == len(receiver.requests)


def test_attempts_between_other_writes_fold(shop: Shop, url: str, receiver: Receiver) -> None:
    """Tests, retries and what is sent by itself wait for their receivers while others write and move the clock."""
    receiver.delay = 0.02
    idents = [webhook(shop, url, receiver)]
    receiver.url += "/other"
    idents.append(webhook(shop, url, receiver))
    body = order_body(shop)

    def work(api: httpx2.Client, n: int) -> list[httpx2.Response]:
        mine, found = idents[n % 2], []
        for turn in range(6):
            if n < 4:
                sent = api.post(f"/v2/webhooks/{mine}/test", json={"event_type": "order.paid"})
                found.append(sent)
                if sent.status_code == 200:
                    found.append(api.post(f"/v2/webhooks/logs/{sent.json()['log']['id']}/retry"))
            elif n < 8:
                found.append(api.post("/v2/customers", json=customer_body()))
                found.append(api.post(f"/v2/webhooks/{mine}/regenerate-key"))
            elif n < 10:
                found.append(api.post("/v2/orders/pix", json=body))
                found.append(api.get("/v2/orders", headers={"Authorization": f"Bearer {shop.keys[0]}"}))
            elif n == 10:
                found.append(api.post("/_sandbox/clock/advance", json={"seconds": 3600}))
                found.append(api.post(f"/_sandbox/orders/{next(iter(shop.world.store.orders.keys))}/refund"))
            elif turn == 3:
                found.append(api.delete(f"/v2/webhooks/{idents[1]}"))
        return found

    answers = at_once(shop, url, work)
    assert [] == [answer.text for answer in answers if answer.status_code >= 500]
    world, inside = shop.world, shop.inside
    assert httpx2.post(f"{url}/_sandbox/webhooks/drain", timeout=60, verify=NO_TLS).json()["complete"]
    inside.ask("GET", "/_sandbox/clock")
    flush_usage(world)
    kept = list(world.log)
    operations = [step.cause.operation for step in kept]
    own: dict[str, list[int]] = {}
    for step in kept:
        own.setdefault(step.cause.id, []).append(step.number)
    assert any(numbers[-1] - numbers[0] > 1 for numbers in own.values()), "nothing came between the steps of a test"
    assert {"sendTestWebhook", "retryWebhook", "createCustomer", "createPixOrder", "deleteWebhook"} <= set(operations)
    assert operations.count("webhook.attempt") > 20
    hold_to_steps(shop)


@pytest.mark.check
def test_going_back_among_the_writes_of_others_folds(shop: Shop, url: str, receiver: Receiver) -> None:
    """Rewinds and restores while others write, wait for receivers, move the clock, and read as of earlier steps."""
    receiver.delay = 0.02
    ident, body = webhook(shop, url, receiver), order_body(shop)
    made = httpx2.post(f"{url}/_sandbox/snapshots", json={"name": "one"}, timeout=60, verify=NO_TLS)
    step, reading = made.json()["snapshot"]["step"], {"Authorization": f"Bearer {shop.keys[0]}"}

    def work(api: httpx2.Client, n: int) -> list[httpx2.Response]:
        found = []
        for turn in range(8):
            if n < 3:
                sent = api.post(f"/v2/webhooks/{ident}/test", json={"event_type": "order.paid"})
                found.append(sent)
                if sent.status_code == 200:
                    found.append(api.post(f"/v2/webhooks/logs/{sent.json()['log']['id']}/retry"))
            elif n < 6:
                found.append(api.post("/v2/customers", json=customer_body()))
                found.append(api.post("/v2/orders/pix", json=body, headers={"Idempotency-Key": f"{n} {turn % 3}"}))
            elif n == 6:
                found.append(api.get("/v2/orders", headers=reading | {"X-Sandbox-As-Of": str(step - turn)}))
            elif n == 7:
                found.append(api.post("/_sandbox/tokens", json={"merchant_id": MERCHANTS[1]}))
                headers = {"Authorization": f"Bearer {found[-1].json()['token']}"}
                found.append(api.post("/v2/customers", json=customer_body(), headers=headers))
            elif n == 8:
                found.append(api.post("/_sandbox/clock/advance", json={"seconds": 3600}))
            elif n == 9:
                found.append(api.post("/_sandbox/snapshots", json={"name": "two"}))
                found.append(patiently(partial(api.post, "/_sandbox/snapshots/two/restore")))
            else:
                to = {"to_step": step if turn % 2 else step + 5}
                found.append(patiently(partial(api.post, "/_sandbox/rewind", json=to)))
                found.append(patiently(partial(api.post, "/_sandbox/snapshots/one/restore")))
        return found

    answers = at_once(shop, url, work)
    assert [] == [answer.text for answer in answers if answer.status_code >= 500]
    assert httpx2.post(f"{url}/_sandbox/webhooks/drain", timeout=60, verify=NO_TLS).json()["complete"]
    laws = httpx2.get(f"{url}/_sandbox/invariants", timeout=60, verify=NO_TLS)
    assert 200 == laws.status_code, laws.text
    shop.inside.ask("GET", "/_sandbox/clock")
    flush_usage(shop.world)
    operations = Counter(step.cause.operation for step in shop.world.log)
    assert operations["rewindSandbox"] >= 8, answers[-10:]
    assert operations["restoreSnapshot"] >= 8
    assert {"sendTestWebhook", "createCustomer", "createPixOrder", "issueToken"} <= set(operations)
    hold_to_steps(shop)


def patiently(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
    """Ask until the clock stands."""
    deadline = time.monotonic() + 30
    while True:
        answer = ask()
        if answer.json().get("code") != "clock_advancing" or time.monotonic() > deadline:
            return answer
        time.sleep(0.01)


def hold_to_steps(shop: Shop) -> None:
    """A world is what its steps make of its origin, and undone to it what the origin is."""
    inside, world = shop.inside, shop.world
    if world.timers.skipped:  # attempts that a retry by hand made needless: the next step takes them along
        assert 200 == inside.ask("PATCH", "/_sandbox/clock", {"frozen": True}).status
    assert not world.timers.skipped
    world.timers.put_back(world.timers.on_hold)  # that the courier has looked at them is no state
    kept = list(world.log)
    expected, begun = whole(inside, world), state(origin(inside.app))
    folded = origin(inside.app)
    for step in kept:
        folded.fold(step)
    same(expected, whole(inside, folded))
    for step in reversed(kept):
        unfold(world, step)
    same(begun, state(world))
    assert {} == stale(world)
    for step in kept:
        world.fold(step)
    same(expected, whole(inside, world))
