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
from ..support.contract import document
from ..support.make import make_plan, make_project
from ..support.overlays import merchant_of, overlay, removed, updated

SCHEMAS = "$.components.schemas"
PLAN, CUSTOMER = f"{SCHEMAS}.Plan['x-unique']", f"{SCHEMAS}.Customer['x-unique']"
OTHER = "an overlay can remove a unique key, but not add or change one"


@pytest.mark.parametrize("resource", document().unique)
def test_a_code_is_that_of_every_operation_that_writes_the_members(resource: str) -> None:
    for key in document().unique[resource]:
        for operation in (
            document().operations.get(f"{verb}{resource}") for verb in ("create", "update")
        ):
            if operation is not None and key.code is not None:
                assert key.code in operation.responses[409].codes


UNFIT = {
    "no list": (
        removed(PLAN) + updated(f"{SCHEMAS}.Plan", "{ x-unique: name }"), f"{PLAN}: 'name' is not of type 'array'",
    ),
    "no scope": (removed(f"{PLAN}[0].scope"), f"{PLAN}[0]: 'scope' is a required property"),
    "no member": (removed(f"{PLAN}[0].member"), f"{PLAN}[0]: 'member' is a required property"),
    "a misspelt part": (updated(f"{PLAN}[0]", "{ ignore: [case] }"), f"{PLAN}[0]: Additional properties"),
    "another difference": (updated(f"{PLAN}[0].ignores", "[accents]"), f"{PLAN}[0].ignores[2]: 'accents' is not one"),
    "a new key": (
        updated(CUSTOMER, "[{ member: email, scope: merchant, code: duplicate_document }]"), f"{CUSTOMER}[1]: {OTHER}",
    ),
    "another code": (updated(f"{PLAN}[0]", "{ code: duplicate_sku }"), f"{PLAN}[0]: {OTHER}"),
    "a key of records that had none": (
        updated(f"{SCHEMAS}.WebhookLog", "{ x-unique: [{ member: url, scope: merchant, code: duplicate_url }] }"),
        f"{SCHEMAS}.WebhookLog['x-unique'][0]: {OTHER}",
    ),
    # What the rules of the server need.
    "a key by which records are found": (
        removed(CUSTOMER), f"{CUSTOMER}: the server finds records of Customer by document: keep its",
    ),
    "another spelling of one": (
        removed(f"{CUSTOMER}[0].ignores"), f"{CUSTOMER}: the server finds records of Customer by document",
    ),
    "what the server makes": (
        removed(f"{SCHEMAS}.Order['x-unique']"), f"{SCHEMAS}.Order['x-unique']: the server finds records of Order by",
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
