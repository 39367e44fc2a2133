"""An overlay steers the server or stops the start with file, line and reason; none leads to a 500."""

from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from stub_server.app import create_app
from stub_server.contract.source import ContractError
from stub_server.settings import Settings

from ..conftest import Serve
from ..support.estate import client, token
from ..support.make import customer_body, make_plan, make_project
from ..support.overlays import copied, overlay, removed, updated
from .random_overlays import outcome

pytestmark = pytest.mark.check

SCHEMAS = "$.components.schemas"
PRODUCTS = "$.paths['/v2/products'].post.responses"
CUSTOMER = "$.paths['/v2/customers'].get.responses['200']"


@pytest.mark.defects
@pytest.mark.parametrize("seed", range(1_000, 1_008))
def test_a_random_overlay_is_followed_or_refused(tmp_path: Path, seed: int) -> None:
    assert outcome(tmp_path, seed)[1] == []


def merchant_of(serve: Serve, folder: Path, actions: str) -> httpx2.Client:
    """A new merchant's API, of a server with these corrections."""
    live = serve(overlays=(overlay(folder, actions),), scenario="empty")
    return client(live, "default", token(live, "default", str(uuid4())))


@pytest.mark.parametrize("status", ["200", "202"])
def test_a_success_has_the_status_of_the_contract(serve: Serve, tmp_path: Path, status: str) -> None:
    created = f"{PRODUCTS}['201']"
    shop = merchant_of(serve, tmp_path, copied(f"{PRODUCTS} {status}", created) + removed(created))
    body = {"projectId": make_project(shop)["id"], "name": "Curso"}
    answers = [shop.post("/v2/products", json=body, headers={"Idempotency-Key": "once"}) for _ in range(2)]
    assert [(int(status), "Curso")] * 2 == [(a.status_code, a.json()["product"]["name"]) for a in answers]
    shop.close()


def test_a_success_without_content_has_none(serve: Serve, tmp_path: Path) -> None:
    created = f"{PRODUCTS}['201']"
    none = updated(PRODUCTS, '{ "204": { description: Created. } }')
    shop = merchant_of(serve, tmp_path, none + removed(created))
    made = shop.post("/v2/products", json={"projectId": make_project(shop)["id"], "name": "Curso"})
    assert (204, b"") == (made.status_code, made.content)
    shop.close()


@pytest.mark.parametrize("member", ["format", "pattern"])
def test_without_its_format_a_document_is_any_text(serve: Serve, tmp_path: Path, member: str) -> None:
    shop = merchant_of(serve, tmp_path, removed(f"{SCHEMAS}.Document.{member}"))
    for document in ("11111111111", "olá, mundo", "", "1" * 80):
        answer = shop.post("/v2/customers", json=customer_body(document=document))
        assert answer.status_code in (201, 409, 422, 501), answer.text
    shop.close()


def test_a_default_that_an_overlay_takes_away_is_kept(serve: Serve, tmp_path: Path) -> None:
    """A plan has a visibility all the same."""
    shop = merchant_of(serve, tmp_path, removed(f"{SCHEMAS}.PlanCreate.properties.visibility"))
    assert "public" == make_plan(shop)["visibility"]
    shop.close()


@pytest.mark.defects
def test_what_the_corrected_request_leads_to_and_no_answer_allows_is_501(serve: Serve, tmp_path: Path) -> None:
    shop = merchant_of(serve, tmp_path, updated(f"{SCHEMAS}.Customer.properties.name", "{ maxLength: 5 }"))
    answer = shop.post("/v2/customers", json=customer_body(name="Marina"))
    assert (501, "not_implemented") == (answer.status_code, answer.json()["code"])
    assert "Customer.name" in answer.json()["message"]
    shop.close()


STOPPED = {
    "a member removed": (removed(f"{SCHEMAS}.Subscription.properties.metadata"), "the server sends metadata"),
    "another type": (updated(f"{SCHEMAS}.Customer.properties.name", "{ type: integer }"), "sends string as name"),
    "null refused": (updated(f"{SCHEMAS}.Plan.properties.description", "{ nullable: false }"), "sends null"),
    "something new required": (updated(f"{SCHEMAS}.Pagination", "{ required: [next] }"), "nothing to send as next"),
    "a header required": (updated(f"{CUSTOMER}.headers", "{ X-Total: { required: true, schema: {} } }"), "X-Total"),
    "no content": (removed(f"{CUSTOMER}.content"), "the server answers application/json"),
    "content of a 204": (
        copied(f"{PRODUCTS} 204", f"{PRODUCTS}['201']") + removed(f"{PRODUCTS}['201']"), "a 204 has no content",
    ),
    "two successes": (
        copied(f"{PRODUCTS} 200", f"{PRODUCTS}['201']") + copied(f"{PRODUCTS} 202", f"{PRODUCTS}['201']")
        + removed(f"{PRODUCTS}['201']"), "succeeds in one way",
    ),
    "no credential": (removed("$.paths['/v2/webhooks'].get.security[0]"), "keep a scheme"),
    "no body": (removed("$.paths['/v2/customers'].post.requestBody"), "cannot do without a request body"),
    "a record that does not fit": (
        updated(f"{SCHEMAS}.Subscription.properties.code", "{ minLength: 60 }"), "a stored Subscription does not match",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", STOPPED)
def test_what_cannot_be_followed_stops_the_start_with_file_line_and_reason(tmp_path: Path, what: str) -> None:
    actions, reason = STOPPED[what]
    file = overlay(tmp_path, actions)
    with pytest.raises(ContractError, match=rf"overlay\.yaml:\d+: .*{reason}"):
        create_app(Settings(overlays=(file,)))
