"""What an overlay changes is followed by the server, or stops its start with file,
line and reason.
"""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from stub_server.app import create_app
from stub_server.contract.source import ContractError
from stub_server.settings import Settings

from ..conftest import Serve
from ..support.estate import client, token
from ..support.live import NO_TLS
from ..support.make import created, customer_body, make_plan, make_project, order_body
from ..support.overlays import copied, merchant_of, overlay, removed, updated

pytestmark = [pytest.mark.check, pytest.mark.turn]

SCHEMAS = "$.components.schemas"
PRODUCTS = "$.paths['/v2/products'].post.responses"
TYPES = ("Product.properties.type", "ProductCreateType", "ProductUpdate.properties.type")
CUSTOMER = "$.paths['/v2/customers'].get.responses['200']"


@pytest.mark.parametrize("status", ["200", "202"])
def test_a_success_has_the_status_of_the_contract(
    serve: Serve, tmp_path: Path, status: str
) -> None:
    created = f"{PRODUCTS}['201']"
    shop = merchant_of(serve, tmp_path, copied(f"{PRODUCTS} {status}", created) + removed(created))
    body = {"projectId": make_project(shop)["id"], "name": "Curso"}
    answers = [
        shop.post("/v2/products", json=body, headers={"Idempotency-Key": "once"}) for _ in range(2)
    ]
    assert [(int(status), "Curso")] * 2 == [
        (a.status_code, a.json()["product"]["name"]) for a in answers
    ]
    shop.close()


def test_a_success_without_content_has_none(serve: Serve, tmp_path: Path) -> None:
    created = f"{PRODUCTS}['201']"
    none = updated(PRODUCTS, '{ "204": { description: Created. } }')
    shop = merchant_of(serve, tmp_path, none + removed(created))
    made = shop.post("/v2/products", json={"projectId": make_project(shop)["id"], "name": "Curso"})
    assert (204, b"") == (made.status_code, made.content)
    shop.close()


@pytest.mark.parametrize("member", ["format", "pattern"])
def test_without_its_format_a_document_is_any_text(
    serve: Serve, tmp_path: Path, member: str
) -> None:
    shop = merchant_of(serve, tmp_path, removed(f"{SCHEMAS}.Document.{member}"))
    for document in ("11111111111", "olá, mundo", "", "1" * 80):
        answer = shop.post("/v2/customers", json=customer_body(document=document))
        assert answer.status_code in (201, 409, 422, 501), answer.text
    shop.close()


def test_values_that_are_only_stored_may_be_others(serve: Serve, tmp_path: Path) -> None:
    types = [f"{SCHEMAS}.{name}.enum" for name in TYPES]
    shop = merchant_of(serve, tmp_path, "".join(updated(place, "[podcast]") for place in types))
    body = {"projectId": make_project(shop)["id"], "name": "Conversas", "type": "podcast"}
    made = shop.post("/v2/products", json=body).json()["product"]
    assert "podcast" == shop.get(f"/v2/products/{made['id']}").json()["product"]["type"]
    shop.close()


def test_bounds_and_scopes_of_requests_are_those_of_the_overlay(
    serve: Serve, tmp_path: Path
) -> None:
    limit = updated("$.components.parameters.Limit.schema", "{ maximum: 500 }")
    limit += updated(f"{SCHEMAS}.Pagination.properties.limit", "{ maximum: 500 }")
    actions = updated(f"{SCHEMAS}.CustomerCreate.properties.name", "{ maxLength: 6 }")
    actions += updated("$.paths['/v2/customers'].post", "{ x-scopes: [] }") + limit
    actions += updated("$.paths['/v2/customers'].post['x-scopes']", "['orders:write']")
    actions += removed("$.paths['/v2/customers'].post['x-scopes'][0]")
    live = serve(overlays=(overlay(tmp_path, actions),), scenario="empty")
    with client(
        live, "default", token(live, "default", str(uuid4()), ["orders:write", "customers:read"])
    ) as shop:
        assert 500 == shop.get("/v2/customers?limit=500").json()["pagination"]["limit"]
        assert 422 == shop.get("/v2/customers?limit=501").status_code
        assert 201 == shop.post("/v2/customers", json=customer_body(name="Marina")).status_code
        assert 422 == shop.post("/v2/customers", json=customer_body(name="Mariana")).status_code


BOUNDS = removed(
    *(f"{SCHEMAS}['OrderCreate','PlanCreate','OrderItemInput'].properties['amount','totalAmount'].{bound}"
      for bound in ("minimum", "maximum")),
    f"{SCHEMAS}.OrderCreate.properties.items.minItems",
    f"{SCHEMAS}['PlanCreateIntervalCount','PlanCreateTrialPeriodDays'].maximum",
)  # fmt: skip


@pytest.mark.defects
def test_numbers_that_no_rule_can_compute_with_are_501(serve: Serve, tmp_path: Path) -> None:
    """Amounts that no payment can ask for, and periods that end after the last year; wider than
    shipped they may be.
    """
    live = serve(overlays=(overlay(tmp_path, BOUNDS),), scenario="empty")
    with client(live, "default", token(live, "default", str(uuid4()))) as shop:
        plan = make_plan(
            shop, amount=99_999_999.99, trial_period_days=5_000, payment_methods=["pix", "boleto"]
        )
        for method in ("pix", "boleto"):
            body = order_body(
                plan["projectId"], plan["id"], paymentMethod=method, totalAmount=99_999_999.99
            )
            ident = created(shop.post("/v2/orders", json=body))["id"]
            pay = f"{live.url}/_sandbox/orders/{ident}/pay"
            assert 200 == httpx2.post(pay, verify=NO_TLS).status_code
            for amount in (100_000_000, 1e20, 1e308, 0, -100):
                items = [{"description": "Plano", "quantity": 1, "amount": amount}]
                for changes in (
                    {"totalAmount": amount},
                    {"items": items} if amount else {"totalAmount": 0},
                ):
                    assert (501, "not_implemented") == _refusal(
                        shop.post("/v2/orders", json=body | changes)
                    )
        of_plan = {"projectId": plan["projectId"], "name": "Outro", "amount": 10}
        for wrong in (
            {"amount": 1e308},
            {"amount": -1},
            {"interval_count": 10**5},
            {"trial_period_days": 10**9},
        ):
            assert (501, "not_implemented") == _refusal(
                shop.post("/v2/plans", json=of_plan | wrong)
            )


@pytest.mark.parametrize(
    ("path", "value"),
    [("/v2/customers?created_since=", "ontem"), ("/v2/analytics?from=", "2026-13-45T99:99:99Z")],
)
def test_without_its_format_a_date_that_cannot_be_read_is_501(
    serve: Serve, tmp_path: Path, path: str, value: str
) -> None:
    formats = (
        "$.components.parameters.CreatedSince.schema.format",
        "$.paths['/v2/analytics'].get..schema.format",
    )
    shop = merchant_of(serve, tmp_path, removed(*formats))
    assert (501, "not_implemented") == _refusal(shop.get(path + value))
    assert 200 == shop.get(f"{path}2026-11-20T00:00:00Z").status_code
    shop.close()


def _refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


OF_CUSTOMERS = ("Customer", "CustomerCreate", "CustomerUpdate")
TOO_DEAR = updated(f"{SCHEMAS}.Subscription.properties.amount", "{ maximum: 60 }")


def _customer(shop: httpx2.Client) -> httpx2.Response:
    return shop.post("/v2/customers", json=customer_body())


def _nobody(shop: httpx2.Client) -> httpx2.Response:
    return shop.post("/v2/customers", json={"name": "Rita", "email": "rita@example.com"})


def _customers(shop: httpx2.Client) -> httpx2.Response:
    return shop.get("/v2/customers")


def _product(shop: httpx2.Client, **members: str) -> httpx2.Response:
    return shop.post(
        "/v2/products", json={"projectId": make_project(shop)["id"], "name": "Curso", **members}
    )


def _plan(shop: httpx2.Client) -> httpx2.Response:
    body = {
        "projectId": make_project(shop)["id"],
        "name": "Ouro",
        "amount": 10.0,
        "billing_type": "recurring",
    }
    return shop.post("/v2/plans", json=body | {"interval": "month", "interval_count": 1})


def _long_page(shop: httpx2.Client) -> httpx2.Response:
    assert 200 == _customers(shop).status_code
    return shop.get("/v2/customers?limit=500")


UNSERVED: dict[str, tuple[str, Callable[[httpx2.Client], httpx2.Response], str]] = {
    "another type": (updated(f"{SCHEMAS}.Customer.properties.name", "{ type: integer }"), _customer, "Customer.name"),
    "a member removed": (removed(f"{SCHEMAS}.Customer.properties.metadata"), _customer, "metadata"),
    "something new required": (updated(f"{SCHEMAS}.Pagination", "{ required: [next] }"), _customers, "next"),
    "a header required": (
        updated(f"{CUSTOMER}.headers", "{ X-Total: { required: true, schema: {} } }"), _customers, "without X-Total",
    ),
    "no body": (
        removed("$.paths['/v2/customers'].post.requestBody"), lambda shop: shop.post("/v2/customers"), "body",
    ),
    "a figure in bounds": (
        updated(f"{SCHEMAS}.Pagination.properties.total", "{ minimum: 1 }"), _customers, "pagination.total",
    ),
    "a bound of the request alone": (
        updated("$.components.parameters.Limit.schema", "{ maximum: 500 }"), _long_page, "pagination.limit",
    ),
    "what the request leads to": (  # nobody may ask for a company, but a document is that of one
        removed(*(f"{SCHEMAS}.{name}.properties.type.enum[1]" for name in OF_CUSTOMERS)),
        lambda shop: shop.post("/v2/customers", json=customer_body(document="11222333000181")), "Customer.type",
    ),
    "a value of the request alone": (
        updated(f"{SCHEMAS}.ProductCreateType.enum", "[podcast]"), lambda shop: _product(shop, type="podcast"),
        "Product.type",
    ),
    "a body that may be left out": (
        updated("$.paths['/v2/customers'].post.requestBody", "{ required: false }"),
        lambda shop: shop.post("/v2/customers"), "body",
    ),
    "another order of a list": (
        updated("$.paths['/v2/orders'].get.parameters[?@.name == 'sort'].schema.enum", "[paymentMethod]"),
        lambda shop: shop.get("/v2/orders?sort=paymentMethod"), "sort",
    ),
    "a date that is read": (
        updated("$.components.parameters.CreatedSince.schema", "{ format: date }"),
        lambda shop: shop.get("/v2/customers?created_since=2026-11-20"), "created_since",
    ),
}  # fmt: skip


@pytest.mark.defects
@pytest.mark.parametrize("what", UNSERVED)
@pytest.mark.matrix
def test_what_the_server_cannot_do_as_the_overlay_says_is_501_with_the_reason(
    serve: Serve, tmp_path: Path, what: str
) -> None:
    actions, ask, member = UNSERVED[what]
    shop = merchant_of(serve, tmp_path, actions)
    answer = ask(shop)
    assert (501, "not_implemented") == _refusal(answer)
    assert member in answer.json()["message"]
    shop.close()


NEWEST = """{ /v2/customers/newest: { get: { operationId: getCustomer, tags: [Customers], security: [{ bearer: [] }],
      responses: { "200": { description: x, content: { application/json: { schema: {} } } } } } } }"""
STOPPED = {
    "no content": (removed(f"{CUSTOMER}.content"), "the server answers application/json"),
    "content of a 204": (
        copied(f"{PRODUCTS} 204", f"{PRODUCTS}['201']") + removed(f"{PRODUCTS}['201']"), "a 204 has no content",
    ),
    "two successes": (
        copied(f"{PRODUCTS} 200", f"{PRODUCTS}['201']") + copied(f"{PRODUCTS} 202", f"{PRODUCTS}['201']")
        + removed(f"{PRODUCTS}['201']"), "list exactly one status below 300",
    ),
    "another number of ids in a path": (
        removed("$.paths['/v2/customers/{customerId}'].get") + updated("$.paths", NEWEST),
        "the path of getCustomer must have 1 id, and has 0",
    ),
    "no credential": (removed("$.paths['/v2/webhooks'].get.security[0]"), "keep a scheme"),
    "a default that is no value of its own enum": (
        removed(f"{SCHEMAS}.ProductCreateType.enum[?@ == 'other']"), "'other' is not one of",
    ),
    "a member of a record removed": (
        removed(f"{SCHEMAS}.Subscription.properties.metadata"), "a stored Subscription does not match",
    ),
    "a record that does not fit": (TOO_DEAR, "a stored Subscription does not match"),
}  # fmt: skip


@pytest.mark.parametrize("what", STOPPED)
def test_what_cannot_be_followed_stops_the_start_with_file_line_and_reason(
    tmp_path: Path, what: str
) -> None:
    actions, reason = STOPPED[what]
    file = overlay(tmp_path, actions)
    with pytest.raises(ContractError, match=rf"overlay\.yaml:\d+: .*{reason}"):
        create_app(Settings(overlays=(file,)))
