"""Every refusal of the table: its status, its one shape, its example, its explanation, and that it
changes nothing.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pytest

from stub_server.server.explain.repairs import REPAIRS

from ..support.contract import document
from ..support.estate import Estate, client, token
from ..support.explained import BEFORE_A_SANDBOX, explanation, nearest_succeeds, needs_another
from ..support.make import Json
from ..support.refusal import refused
from ..support.refusals import CODES, CREDENTIALS, TABLE, Row, rows_of
from ..support.refusals.contract import CONTRACT, referring
from ..support.refusals.row import EVERY, Answer
from ..support.requests import NOBODY, OPERATIONS, ask
from ..support.watched import Watched, own_shop, unchanged

REALM = 'Bearer realm="membership-sandbox"'
NOT_RECORDED = ("uri_too_long", "headers_too_large", "not_implemented")
"""Codes of requests that are refused before the journal."""


def each(rows: Sequence[Row]) -> pytest.MarkDecorator:
    """A case for each of these rows."""
    return pytest.mark.parametrize("row", rows, ids=lambda row: f"{row.code} {row.status}")


@pytest.fixture(scope="module")
def home(watched: Watched, sink: str) -> Iterator[Estate]:
    """A merchant with one of everything."""
    with own_shop(watched.live, sink) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_changed(watched: Watched) -> Iterator[None]:
    """By whatever is refused."""
    watched.wrong.clear()
    yield
    assert [] == watched.wrong


@pytest.fixture
def shop(watched: Watched, sink: str) -> Iterator[Estate]:
    """A merchant in a sandbox of its own."""
    with own_shop(watched.live, sink) as made:
        yield made


# -- in every operation whose contract lists it


@each([row for row in CREDENTIALS if row.operations and row.status != 409])
def test_every_operation_refuses_a_credential_that_will_not_do(home: Estate, row: Row) -> None:
    """With a challenge where another token or key, or another scope, would do."""
    assert row.provoke is not None
    for operation in row.operations:
        answer = row.provoke(home, operation)
        refused(answer, row.status, row.code)
        challenge = answer.headers.get("www-authenticate", "")
        if row.code == "insufficient_scope":
            (scope,) = operation.scopes
            assert challenge == f'{REALM}, error="insufficient_scope", scope="{scope}"'
            assert [scope] == [detail["message"] for detail in answer.json()["details"]]
        else:
            assert (row.status == 401) == challenge.startswith(REALM), operation.id


@each([row for row in CONTRACT if row.operations and row.status != 409])
def test_every_operation_refuses_what_its_contract_does_not_accept(home: Estate, row: Row) -> None:
    """And its example shows what it says of it."""
    assert row.provoke is not None
    for operation in row.operations:
        body = refused(row.provoke(home, operation), row.status, row.code)
        assert places(body) in map(places, row.shown(document(), operation)), operation.id


@each([row for row in TABLE if row.operations and row.status == 409])
def test_every_operation_that_conflicts_is_explained(
    watched: Watched, sink: str, tmp_path: Path, row: Row
) -> None:
    assert row.provoke is not None
    for operation in row.operations:
        with own_shop(watched.live, sink) as shop, unchanged(watched):
            answer = row.provoke(shop, operation)
            refused(answer, row.status, row.code)
            if row.at in ("", operation.id):
                is_as_shown(answer, row)
            else:
                names_what_was_sent(answer)
            is_explained(shop, answer, row, operation.id, tmp_path)


# -- once, as the table has it


@each([row for row in TABLE if row.provoke and not (row.operations and row.status == 409)])
def test_a_refusal_is_as_it_is_shown_and_explained(shop: Estate, tmp_path: Path, row: Row) -> None:
    assert row.provoke is not None
    answer = row.provoke(shop, OPERATIONS[row.at or "listPlans"])
    refused(answer, row.status, row.code)
    if row.operations:
        is_as_shown(answer, row)
    is_explained(shop, answer, row, row.at, tmp_path)


@each([row for row in TABLE if row.control])
def test_a_refused_control_is_as_it_is_shown_and_explained(shop: Estate, row: Row) -> None:
    """By its rule alone."""
    assert row.control is not None
    answer = row.control(shop)
    refused(answer, row.status, row.code)
    is_as_shown(answer, row)
    if row.code != "sandbox_too_large":  # of an export, which the journal does not keep
        assert is_told(shop, answer, row)["nearest"] is None


def is_as_shown(answer: Answer, row: Row) -> None:
    """The details name the fields and codes that the contract's example names."""
    assert not row.examples or places(answer.json()) in map(places, row.examples)


def places(refusal: Json) -> list[tuple[str, str, str]]:
    """Which fields are refused, and with which codes."""
    return [(detail["in"], detail["field"], detail["code"]) for detail in refusal["details"]]


def names_what_was_sent(answer: Answer) -> None:
    """Details of the body name members that were sent."""
    sent = orjson.loads(answer.request.content or b"{}")
    for place, field, _ in places(answer.json()):
        assert place == "path" or field.partition(".")[0].partition("[")[0] in sent


def is_told(shop: Estate, answer: Answer, row: Row) -> Json:
    """The explanation, which says the same."""
    sandbox = "default" if row.code in BEFORE_A_SANDBOX else shop.sandbox
    with client(shop.live, f"{sandbox}/_sandbox", None) as control:
        found = explanation(control, answer)
    assert row.kind == found["kind"]
    assert found["summary"].startswith(answer.json()["message"])
    return found


def is_explained(shop: Estate, answer: Answer, row: Row, operation: str, folder: Path) -> None:
    """The nearest request of the explanation succeeds as it is pasted, if there is one."""
    if row.code in NOT_RECORDED:
        return
    found = is_told(shop, answer, row)
    if row.another == EVERY or operation in row.another:
        needs_another(found)
    elif row.has_nearest:
        nearest_succeeds(answer, found, folder)
    else:
        assert found["nearest"] is None


# -- what the table cannot say


def test_the_table_has_every_code_and_says_how_each_that_is_documented_comes_about() -> None:
    assert {*CODES} == {row.code for row in TABLE}
    assert [] == [row.code for row in TABLE if row.operations and not row.provoke]
    assert [] == [
        row.code for row in TABLE if not row.provoke and not row.control and row.status < 500
    ]
    known = {(row.status, row.code) for row in TABLE}
    for operation in (*OPERATIONS.values(), *document("sandbox.yaml").operations.values()):
        for status, response in operation.responses.items():
            assert {(status, code) for code in response.codes if code in CODES} <= known, (
                operation.id
            )
    assert [each for each in OPERATIONS.values() if each.scopes] == rows_of("insufficient_scope")[
        0
    ].operations
    assert REPAIRS.keys() <= {row.code for row in TABLE if row.has_nearest}


def test_a_reference_to_nothing_says_what_it_should_name(home: Estate) -> None:
    (row,) = rows_of("reference_not_found")
    assert row.provoke is not None
    for operation in row.operations:
        kind = "plan" if referring(operation).startswith("plan") else "project"
        assert kind in row.provoke(home, operation).json()["message"].split(), operation.id


@pytest.mark.parametrize("why", ["unknown", "inactive", "expired", "deleted"])
def test_a_public_key_that_does_not_work_names_no_merchant(home: Estate, why: str) -> None:
    key = home.key(expires_at="2026-01-01T00:00:00Z" if why == "expired" else None)
    if why == "inactive":
        assert home.api.put(f"/api-keys/{key['id']}", json={"is_active": False}).status_code == 200
    if why == "deleted":
        assert home.api.delete(f"/api-keys/{key['id']}").status_code == 200
    ids = NOBODY if why == "unknown" else {"publicKey": key["public_key"]}
    refused(ask(home.api, OPERATIONS["getMerchantByPublicKey"], ids), 404, "merchant_not_found")


def test_a_token_of_nothing_is_accepted_where_no_scope_is_asked_for(home: Estate) -> None:
    with client(
        home.live, home.sandbox, token(home.live, home.sandbox, home.merchant_id, ())
    ) as nothing:
        for operation in OPERATIONS.values():
            expected = 200 if not operation.scopes else 403
            assert expected == ask(nothing, operation, home.ids).status_code, operation.id
