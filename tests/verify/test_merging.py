"""Findings with one cause are one divergence."""

import random
from collections.abc import Collection
from dataclasses import replace

import pytest

from stub_server.tools.verify.findings import CLASSES, LISTED, Divergence, Finding, Said

from ..support.contract import document
from .reports import NAME, finding, ledger

EVERY = tuple(document().operations)
CUSTOMER = "#/components/schemas/Customer/properties"
TRANSACTION = "#/components/schemas/Order/properties/last_transaction"


def divergences(
    found: Collection[Finding], probed: Collection[str] = EVERY, answered: Collection[str] = ()
) -> list[Divergence]:
    return ledger(found, probed, answered).merge()


def test_what_is_certain_comes_first_then_what_costs_data_or_money_then_what_is_everywhere() -> (
    None
):
    kinds = ["laxer", "error-code", "idempotency", "paging", "not-persisted", "leaked-secret"]
    found = [finding(kind, pointer=f"#/paths/{kind}", tries=kind) for kind in kinds]
    found += [finding("error-code", name) for name in EVERY[:30]]
    random.Random(1).shuffle(found)
    told = [each.kind for each in divergences(found, EVERY[:31])]
    certain, costs = ["leaked-secret", "paging"], ["not-persisted", "idempotency"]
    assert [*certain, *costs, "laxer", "error-code"] == told


@pytest.mark.parametrize("shown", [2, 3])
def test_a_class_in_more_than_half_of_the_probed_operations_is_one(shown: int) -> None:
    found = []
    for number, name in enumerate(EVERY[:shown]):
        found.append(finding("auth", name, f"#/paths/{number}"))
    told = divergences(found, EVERY[:5])
    assert (1 if shown == 3 else shown) == len(told)
    assert (shown == 3) is told[0].title.startswith("everywhere: ")


@pytest.mark.parametrize(
    ("operation", "pointer", "basis"),
    [
        ("createCustomer", "", "assumed"),
        ("updateCustomer", "#/paths/~1v2~1customers~1{customerId}/put", "documented"),
        ("getCustomer", "#/paths/~1v2~1customers~1{customerId}/get", "assumed"),
        ("getOrder", "#/components/schemas/Order/properties/createdAt", "documented"),
        ("getOrder", "#/components/schemas/Order/properties/status/enum/0", "assumed"),
        # A map of texts by the source document; its names are assumed.
        ("getOrder", f"{TRANSACTION}/properties/amount/type", "documented"),
        ("getOrder", f"{TRANSACTION}/properties/amount", "assumed"),
        ("listOrders", "#/components/parameters/Page/schema/minimum", "assumed"),
        # Through a reference, as a walk from the operation gives it.
        (
            "createCustomer",
            "#/paths/~1v2~1customers/post/requestBody/content/application~1json/schema/properties/name/maxLength",
            "assumed",
        ),
    ],
)
def test_the_basis_is_that_of_the_nearest_place(operation: str, pointer: str, basis: str) -> None:
    (found,) = divergences([finding("schema", operation, pointer)])
    assert basis == found.basis


def test_every_member_that_may_be_left_out_is_named() -> None:
    found = [
        finding("incomplete", name, place=place, tries="left out")
        for name in ("createCustomer", "createProduct")
        for place in ("document", "email")
    ]
    [one] = divergences(found)
    named = "createCustomer document, email; createProduct document, email"
    assert f"left out and yet accepted: {named}" == one.title


def test_what_the_source_shows_of_stored_members_is_documented_and_what_is_around_records_is_not() -> (
    None
):
    line = "#/components/schemas/AddressInput/properties/line_2"
    message = "#/components/schemas/CustomerReply/properties/message"
    found = [
        finding("not-persisted", "updateCustomer", line),
        finding("schema", "updateCustomer", message),
        finding("schema", "getCustomer", f"{CUSTOMER}/createdAt/format"),
    ]
    assert {"documented"} == {each.basis for each in divergences(found)}
    [one] = divergences([finding("schema", "getCustomer", message)])
    assert "assumed" == one.basis


def test_what_is_refused_with_the_same_words_is_one_divergence_whatever_ids_they_have() -> None:
    checks = ("null", "left out", "true", "a duplicate entry")
    found = [
        finding(
            "stricter",
            pointer="#/components/schemas/CustomerCreate/properties/name",
            tries=check,
            target=Said(422, f'{{"message":"items: send a list.","request_id":"req_{number}a"}}'),
        )
        for number, check in enumerate(checks)
    ]
    [one] = divergences(found)
    assert 4 == len(one.findings)
    others = [replace(each, target=Said(422, each.tries)) for each in found]
    assert 4 == len(divergences(others))


def test_what_is_answered_with_other_statuses_everywhere_says_with_which() -> None:
    other = finding("wrong-status", pointer="#/paths", expected=Said(404, ""))
    operations = ["createCustomer", "createPlan", "createProject"]
    found = [replace(other, operation=name, target=Said(400, name)) for name in operations]
    found.append(replace(other, target=Said(410, "gone")))
    (only,) = ledger(found, operations).merge()
    assert only.title.startswith("everywhere: answered 400, not 404; 410, not 404: createCustomer")


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if "follows" in CLASSES[kind]])
def test_what_follows_from_another_finding_is_told_only_without_it(kind: str) -> None:
    pointer = NAME.rpartition("/")[0]
    follows = finding(kind, pointer=pointer, tries=LISTED, target=Said(404, "no"))
    for cause in CLASSES[kind]["follows"]:
        found = divergences([follows, finding(cause, pointer=pointer, target=Said(409, "no"))])
        assert [cause] == [each.kind for each in found]
    assert [kind] == [each.kind for each in divergences([follows])]


@pytest.mark.parametrize(
    ("kind", "pointers"),
    [
        ("stricter", ["#/components/parameters/Page/schema/maximum"]),
        ("undocumented-field", [f"{CUSTOMER}/price", f"{CUSTOMER}/slug"]),
        ("missing-header", ["#/components/responses/NotFound/headers/X-Request-Id"]),
    ],
)
def test_what_operations_share_is_one_divergence(kind: str, pointers: list[str]) -> None:
    found = []
    for name in ("listPlans", "listCustomers"):
        for pointer in pointers:
            found.append(finding(kind, name, pointer, place="page", target=Said(422, name)))
    [one] = divergences(found)
    assert ["listCustomers", "listPlans"] == one.operations
