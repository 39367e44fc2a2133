"""Each mutant departs in what it is named after, and a delayed server with shuffled headers departs in nothing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from socket import create_server
from typing import Any, NamedTuple

import httpx2
import pytest

from stub_server.app import create_app
from stub_server.http.monitor import Limits
from stub_server.serving import with_port
from stub_server.verify.findings import CLASSES

from ..support import make
from ..support.contract import document
from ..support.live import FROZEN, NO_TLS, serving
from .backend import Backend
from .mutants import MUTANTS, pairs
from .runs import Outcome, missed

pytestmark = [pytest.mark.check, pytest.mark.defects]
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@contextmanager
def serve(*names: str, delay: float = 0.0, shuffle: bool = False) -> Iterator[httpx2.Client]:
    """The API of an empty sandbox with mutants."""
    with create_server(("127.0.0.1", 0)) as listener:
        settings = with_port(replace(FROZEN, scenario="empty"), listener)
        app = create_app(settings)
        acts = [MUTANTS[name].act for name in names]
        app.middlewares.insert(0, partial(Backend, acts=acts, delay=delay, shuffle=shuffle))
        with serving(app, Limits(), listener), httpx2.Client(base_url=settings.url, timeout=30, verify=NO_TLS) as api:
            api.headers["Authorization"] = f"Bearer {api.get('/_sandbox/credentials').json()['jwt']}"
            yield api


class Departure(NamedTuple):
    """What a few requests tell of the sandbox, and of its mutant."""

    look: Callable[[httpx2.Client], Any]
    right: Any
    departed: Any


def key_without_scope(api: httpx2.Client) -> str:
    """Authorization by a key that may read customers and nothing else."""
    made = make.created(api.post("/api-keys", json={"name": "leitura", "scopes": ["customers:read"]}))
    return f"Bearer {made['api_key']['private_key']}"


def product(api: httpx2.Client, **changes: Any) -> httpx2.Response:
    """The answer to createProduct."""
    body = {"projectId": make.make_project(api)["id"], "name": "Biblioteca"} | changes
    return api.post("/v2/products", json=body)


def status_without_credential(api: httpx2.Client) -> list[int]:
    """Without a credential, and with a wrong one."""
    return [
        httpx2.get(f"{api.base_url}/v2/plans", headers=headers, verify=NO_TLS).status_code
        for headers in ({}, {"Authorization": "Bearer nobody"})
    ]


def orders_without_scope(api: httpx2.Client) -> list[int]:
    headers = {"Authorization": key_without_scope(api)}
    return [api.get(path, headers=headers).status_code for path in ("/v2/orders", "/v2/plans")]


def product_after_create(api: httpx2.Client) -> int:
    return api.get(f"/v2/products/{product(api).json()['product']['id']}").status_code


def customer_after_update(api: httpx2.Client) -> list[str]:
    path = f"/v2/customers/{make.make_customer(api, name='Ana Prado')['id']}"
    said = api.put(path, json={"name": "Bia Prado"}).json()["customer"]["name"]
    return [said, api.get(path).json()["customer"]["name"]]


def plan_after_delete(api: httpx2.Client) -> list[int]:
    path = f"/v2/plans/{make.make_plan(api)['id']}"
    headers = {"Authorization": key_without_scope(api)}
    return [api.delete(path, headers=headers).status_code, api.delete(path).status_code, api.get(path).status_code]


def product_of_unknown_plan(api: httpx2.Client) -> list[Any]:
    answer = product(api, planIds=[UNKNOWN])
    if answer.status_code != 201:
        return [answer.status_code]
    ident = answer.json()["product"]["id"]
    return [201, api.get(f"/v2/products/{ident}").json()["product"]["planIds"]]


def suspended_draft(api: httpx2.Client) -> list[Any]:
    path = f"/v2/projects/{make.make_project(api, status='draft')['id']}"
    return [api.post(f"{path}/suspend").status_code, api.get(path).json()["data"]["project"]["status"]]


def companies(api: httpx2.Client) -> int:
    make.make_customer(api)
    found: int = api.get("/v2/customers", params={"type": "company"}).json()["pagination"]["total"]
    return found


def projects_by_name(api: httpx2.Client) -> list[str]:
    for name in ("Aula", "Beco"):
        make.make_project(api, name=name)
    found = api.get("/v2/projects", params={"sort": "name"}).json()["data"]["projects"]
    return [project["name"] for project in found]


def plans_by_page(api: httpx2.Client) -> list[list[int]]:
    project = make.make_project(api)["id"]
    for amount in (1, 2, 3, 4):
        make.make_plan(api, project, amount=amount)
    pages = [api.get(f"/v2/plans?sort=amount&limit=2&page={page}").json()["plans"] for page in (1, 2)]
    return [[plan["amount"] for plan in page] for page in pages]


def plans_of_one_name(api: httpx2.Client) -> list[Any]:
    body = {"projectId": make.make_project(api)["id"], "name": "Plano Anual", "amount": 9.9}
    answers = [api.post("/v2/plans", json=body) for _ in range(3)]
    names = [plan["name"] for plan in api.get("/v2/plans").json()["plans"]]
    return [[answer.status_code for answer in answers], names]


def repeated_with_key(api: httpx2.Client) -> list[int]:
    headers = {"Idempotency-Key": "k1"}
    bodies = {"name": "Clube de Leitura"}, {"name": "Clube de Leitura"}, {"name": "Outro clube"}
    return [api.post("/v2/projects", json=body, headers=headers).status_code for body in bodies]


def members_of_customer(api: httpx2.Client) -> list[bool]:
    made = make.make_customer(api)
    shown = (
        made,
        api.get(f"/v2/customers/{made['id']}").json()["customer"],
        api.get("/v2/customers").json()["customers"][0],
        api.put(f"/v2/customers/{made['id']}", json={"name": "Ana Prado"}).json()["customer"],
    )
    return [name in one for one in shown for name in ("document_type", "documentType")]


def totals_of_order(api: httpx2.Client) -> list[Any]:
    made = make.make_order(api)
    shown = made, api.get(f"/v2/orders/{made['id']}").json(), api.get("/v2/orders").json()["orders"][0]
    return [order["totalAmount"] for order in shown]


def status_of_new_webhook(api: httpx2.Client) -> int:
    body = {"url": "https://hooks.example.com/a", "events": ["*"], "is_active": False}
    return api.post("/v2/webhooks", json=body).status_code


def location_of_customer(api: httpx2.Client) -> bool:
    return "location" in api.post("/v2/customers", json=make.customer_body()).headers


def key_names(api: httpx2.Client) -> list[int]:
    bodies = ({"name": "k" * length, "scopes": ["customers:read"]} for length in (50, 51, 100, 101))
    return [api.post("/api-keys", json=body).status_code for body in bodies]


def long_descriptions(api: httpx2.Client) -> list[int]:
    bodies = ({"name": f"Clube {length}", "long_description": "d" * length} for length in (20_000, 20_001))
    return [api.post("/v2/projects", json=body).status_code for body in bodies]


def code_of_unknown_webhook(api: httpx2.Client) -> list[str]:
    return [api.get(f"/v2/{name}/{UNKNOWN}").json()["code"] for name in ("webhooks", "plans")]


def statistics(api: httpx2.Client) -> list[Any]:
    answer = api.get(f"/v2/projects/{make.make_project(api)['id']}/stats")
    return [answer.status_code, answer.json().get("code")]


DEPARTURES = {
    "auth-ignored": Departure(status_without_credential, [401, 401], [200, 200]),
    "scope-not-needed": Departure(orders_without_scope, [403, 403], [200, 403]),
    "create-not-kept": Departure(product_after_create, 200, 404),
    "update-not-kept": Departure(customer_after_update, ["Bia Prado", "Bia Prado"], ["Bia Prado", "Ana Prado"]),
    "delete-does-nothing": Departure(plan_after_delete, [403, 200, 404], [403, 200, 200]),
    "foreign-key-not-enforced": Departure(product_of_unknown_plan, [409], [201, [UNKNOWN]]),
    "forbidden-move-allowed": Departure(suspended_draft, [409, "draft"], [200, "suspended"]),
    "filter-ignored": Departure(companies, 0, 1),
    "sort-ignored": Departure(projects_by_name, ["Aula", "Beco"], ["Beco", "Aula"]),
    "pages-off-by-one": Departure(plans_by_page, [[1, 2], [3, 4]], [[1, 2], [4]]),
    "uniqueness-dropped": Departure(
        plans_of_one_name, [[201, 409, 409], ["Plano Anual"]], [[201, 201, 201], ["Plano Anual"] * 3]
    ),
    "idempotency-key-ignored": Departure(repeated_with_key, [201, 201, 409], [201, 409, 201]),
    "member-renamed": Departure(members_of_customer, [True, False] * 4, [False, True] * 4),
    "member-of-another-type": Departure(totals_of_order, [49.9] * 3, ["49.90"] * 3),
    "other-success-status": Departure(status_of_new_webhook, 201, 200),
    "header-missing": Departure(location_of_customer, True, False),
    "bound-stricter": Departure(key_names, [201, 201, 201, 422], [201, 422, 422, 422]),
    "bound-laxer": Departure(long_descriptions, [201, 422], [201, 201]),
    "other-error-code": Departure(
        code_of_unknown_webhook, ["not_found", "not_found"], ["webhook_not_found", "not_found"]
    ),
    "operation-missing": Departure(statistics, [200, None], [404, "route_not_found"]),
}


@pytest.fixture(scope="module")
def plain() -> Iterator[httpx2.Client]:
    """One sandbox for all that does not depart; what each test looks at begins with a reset."""
    with serve() as api:
        yield api


def test_each_mutant_says_how_it_must_be_found() -> None:
    assert 20 == len(MUTANTS) == len(DEPARTURES)
    for mutant in MUTANTS.values():
        assert mutant.kinds <= {*CLASSES}, mutant.name
        assert mutant.operations <= document().operations.keys(), mutant.name
    assert sorted(MUTANTS) == sorted(name for pair in pairs() for name in pair)


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.matrix
def test_a_mutant_departs(name: str, plain: httpx2.Client) -> None:
    look, right, departed = DEPARTURES[name]
    plain.post("/_sandbox/reset").raise_for_status()
    assert look(plain) == right
    with serve(name) as api:
        assert look(api) == departed


def test_a_mutant_counts_as_found_by_its_class_and_its_operations_alone() -> None:
    def divergence(kind: str, *operations: str, title: str = "") -> dict[str, Any]:
        return {"class": kind, "operations": [*operations], "title": title}

    def wrong(name: str, *divergences: dict[str, Any], code: int = 1) -> int:
        return len(missed(Outcome(code, 1.0, {"divergences": [*divergences]}, ""), [MUTANTS[name]], beside=1))

    found, beside = divergence("sort", "listProjects"), divergence("schema", "listProjects")
    assert 0 == wrong("sort-ignored", found) == wrong("sort-ignored", found, beside)
    assert 1 == wrong("sort-ignored", found, beside, beside) == wrong("sort-ignored", beside) == wrong("sort-ignored")
    assert 1 == wrong("sort-ignored", divergence("sort", "listProjects", "listPlans"))
    assert 1 == wrong("sort-ignored", found, code=3)
    assert 0 == wrong("auth-ignored", divergence("auth", "listPlans", title="No credential is needed, everywhere"))
    assert 1 == wrong("auth-ignored", divergence("auth", "listPlans", title="No credential is needed"))


def test_a_slow_server_with_shuffled_headers_says_the_same(plain: httpx2.Client) -> None:
    def told(api: httpx2.Client) -> list[Any]:
        answers = [
            api.post("/v2/customers", json=make.customer_body(document="52998224725")),
            api.post("/v2/customers", content=b"{"),
            api.get("/v2/customers", params={"limit": 500}),
            api.get("/v2/customers/a%2Fb"),
            api.head("/v2/customers"),
            api.delete("/v2/customers"),
            api.get("/v2/nowhere"),
            api.options("/v2/customers"),
            api.request("TRACE", "/v2/customers"),
            api.post("/v2/customers", content=b" " * 2_000_000, headers={"Content-Type": "application/json"}),
        ]
        return [
            (answer.status_code, answer.text.replace(answer.headers["x-request-id"], ""), sorted(answer.headers))
            for answer in answers
        ]

    plain.post("/_sandbox/reset").raise_for_status()
    with serve(delay=0.05, shuffle=True) as api:
        api.post("/_sandbox/reset").raise_for_status()
        started = time.monotonic()
        assert told(api) == told(plain)
        assert time.monotonic() - started >= 10 * 0.04  # timers of an event loop may ring early
        orders = {tuple(api.get("/v2/customers").headers) for _ in range(5)}
        assert len(orders) > 1
