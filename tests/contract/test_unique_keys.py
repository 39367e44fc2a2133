"""Unique keys are those of the contract: what `x-unique` says is refused, and an overlay
changes it.
"""

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from stub_server.app import contracts
from stub_server.contract.source import ContractError

from ..conftest import Serve
from ..journeys.steps import refused
from ..support.contract import document
from ..support.make import customer_body, make_plan, make_project, order_body
from ..support.overlays import merchant_of, overlay, removed, updated

SCHEMAS = "$.components.schemas"
PLAN = f"{SCHEMAS}.Plan['x-unique']"
CUSTOMER = f"{SCHEMAS}.Customer['x-unique']"
CODE = "duplicate_email"
NEW_CODE = (
    updated(f"{SCHEMAS}.ErrorCode.enum", f"[{CODE}]")
    + updated("$.paths['/v2/customers'].post.responses['409']['x-codes']", f"[{CODE}]")
)  # fmt: skip
ONE_EMAIL = NEW_CODE + updated(CUSTOMER, f"[{{ members: [email], scope: merchant, code: {CODE} }}]")


@pytest.mark.parametrize("resource", document().unique)
def test_a_code_is_that_of_every_operation_that_writes_the_members(resource: str) -> None:
    for key in document().unique[resource]:
        for operation in (
            document().operations.get(f"{verb}{resource}") for verb in ("create", "update")
        ):
            if operation is not None and key.code is not None:
                assert key.code in operation.responses[409].codes


UNFIT = {
    "a misspelt part": (updated(f"{PLAN}[0]", "{ ignore: [case] }"), f"{PLAN}[0]: Additional properties"),
    "a member that is not there": (
        updated(f"{PLAN}[0].members", "[slug]"), f"{PLAN}[0]: a request to create a Plan has no text slug: take it out",
    ),
    "a code that nobody lists": (
        updated(f"{PLAN}[0]", "{ code: duplicate_plan }"),
        f"{PLAN}[0].code: no operation refuses with duplicate_plan: list it in x-codes of a 409",
    ),
    # What the rules of the server need.
    "a key by which records are found": (
        removed(CUSTOMER), f"{CUSTOMER}: the server finds records of Customer by document: keep its",
    ),
    "what the server makes": (
        removed(f"{SCHEMAS}.Order['x-unique']"), f"{SCHEMAS}.Order['x-unique']: the server finds records of Order by",
    ),
    "what a state machine makes": (
        updated(f"{SCHEMAS}.Order['x-unique']", "[{ members: [status], scope: merchant, code: duplicate_name }]"),
        f"{SCHEMAS}.Order['x-unique'][1]: x-unique has no effect here, only in Customer, Plan, Product,",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNFIT)
def test_a_key_that_cannot_be_is_told_with_file_line_and_reason(tmp_path: Path, what: str) -> None:
    actions, expected = UNFIT[what]
    file = overlay(tmp_path, actions)
    with pytest.raises(ContractError) as caught:
        contracts([file])
    told = [fault.partition(": ") for fault in str(caught.value).splitlines()]
    assert any(
        (f"{file}:", True) == (place.rstrip("0123456789"), reason.startswith(expected))
        for place, _, reason in told
    ), str(caught.value)


@pytest.fixture
def shop(serve: Serve, tmp_path: Path) -> Callable[[str], httpx2.Client]:
    """The API of a new merchant, of a server with corrections."""
    return lambda actions: merchant_of(serve, tmp_path, actions)


@pytest.mark.check
def test_without_its_key_a_name_may_stand_twice(shop: Callable[[str], httpx2.Client]) -> None:
    with shop(removed(PLAN)) as api:
        project = make_project(api)["id"]
        one, two = (make_plan(api, projectId=project, name="Ouro") for _ in range(2))
        assert one["id"] != two["id"]
        assert 200 == api.put(f"/v2/plans/{two['id']}", json={"name": "OURO"}).status_code


@pytest.mark.check
def test_an_added_key_is_kept_by_whatever_makes_a_record(
    shop: Callable[[str], httpx2.Client],
) -> None:
    with shop(ONE_EMAIL) as api:
        first = api.post("/v2/customers", json=customer_body(email="ana@example.com")).json()[
            "customer"
        ]
        other = customer_body(document="390.533.447-05", email="ANA@example.com")
        assert {"email": CODE} == refused(api.post("/v2/customers", json=other), 409, CODE)
        assert (
            201 == api.post("/v2/customers", json=other | {"email": "rita@example.com"}).status_code
        )
        assert (
            200
            == api.put(
                f"/v2/customers/{first['id']}", json={"email": "Ana@example.com"}
            ).status_code
        )
        refused(
            api.put(f"/v2/customers/{first['id']}", json={"email": "rita@example.com"}), 409, CODE
        )
        plan = make_plan(api)
        order = order_body(plan["projectId"], plan["id"])
        order["customer"]["email"] = "ana@example.com"
        refused(api.post("/v2/orders", json=order), 409, CODE)
