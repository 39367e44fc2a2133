"""/openapi.json and /openapi.yaml: the contract as the server follows it, with a world's own
records, and an ETag.
"""

import gzip
import json
import re
import select
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import orjson
import pytest
from openapi_spec_validator import validate

from stub_server.console import contract_files
from stub_server.contract.document import Document

from ..support.contract import document, parsed, served
from ..support.live import FROZEN, Live, running
from ..support.make import Json, customer_body
from ..support.short import chosen
from ..support.wire import Door, Header, answer_on, connect
from .conftest import door_to

pytestmark = pytest.mark.check

VARYING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|pk_sandbox_\w+|http://127\.0\.0\.1:\d+(?:/s/[a-z]+)?"
)
FILES = ["/openapi.json", "/openapi.yaml", "/_sandbox/openapi.json", "/_sandbox/openapi.yaml"]


def masked(value: Any) -> Any:
    """The same without what differs by sandbox: ids, public keys, and the server's
    address in examples.
    """
    return json.loads(VARYING.sub("…", json.dumps(value)))


def without_examples(value: Any) -> Any:
    """The same without the examples of bodies, which are of the sandbox."""
    if isinstance(value, dict):
        return {key: without_examples(item) for key, item in value.items() if key != "examples"}
    return [without_examples(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", FILES)
def test_the_file_is_the_folded_contract(door: Door, path: str) -> None:
    # a stranger's
    headers: list[Header] = [] if "_sandbox" in path else [("Origin", "https://elsewhere.example")]
    answer = door.ask("GET", path, token=None, headers=headers)
    assert answer.status == 200
    assert answer.header("content-type") == (
        "application/json" if path.endswith("json") else "application/yaml"
    )
    expected = served("sandbox.yaml" if "_sandbox" in path else "openapi.yaml")
    expected = {key: value for key, value in expected.items() if key != "servers"}
    found = answer.json() if path.endswith("json") else parsed(answer.body)
    found.pop("servers")
    if "_sandbox" in path:  # the one that strangers do not read
        found = without_examples(found)
        expected = without_examples(expected)
    assert masked(found) == masked(expected)


@pytest.mark.parametrize("prefix", ["", "/s/surfaces", "/s/Surfaces"])
def test_the_file_speaks_of_the_sandbox_that_is_asked(live: Live, door: Door, prefix: str) -> None:
    """A client made from it, or from a file that it was saved in, reaches the sandbox; a
    stranger's too.
    """
    plain = Door(live.port, prefix, door.token)
    api = f"{live.url}{prefix.lower()}"
    control = f"{live.url}{prefix.lower()}/_sandbox"
    elsewhere: list[Header] = [("Origin", "https://elsewhere.example")]
    for path in FILES:
        for headers in ([], elsewhere) if "_sandbox" not in path else ([],):
            answer = plain.ask("GET", path, headers=headers)
            found = answer.json() if path.endswith("json") else parsed(answer.body)
            assert [{"url": control if "_sandbox" in path else api}] == found["servers"]
    # Without a prefix the header and the credential choose, and the address is the server's.
    told = plain.ask("GET", "/api-keys/info").json()["info"]
    assert f"{live.url}{prefix.lower()}/openapi.json" == told["documentation_url"]
    assert (
        plain.ask("GET", told["documentation_url"].removeprefix(live.url + prefix.lower())).status
        == 200
    )


LISTS = {
    "projects": "/v2/projects", "plans": "/v2/plans", "customers": "/v2/customers", "orders": "/v2/orders",
    "subscriptions": "/v2/subscriptions", "products": "/v2/products", "webhooks": "/v2/webhooks",
    "logs": "/v2/webhooks/logs", "api_keys": "/api-keys",
}  # fmt: skip


def known(door: Door, name: str) -> set[str]:
    """The ids, and of API keys the public halves, that a list shows on its first page."""
    body = door.ask("GET", f"{LISTS[name]}?limit=100").json()
    rows = body.get("data", body)[name]
    return {row["id"] for row in rows} | {row["public_key"] for row in rows if "public_key" in row}


def test_a_world_without_records_shows_the_examples_as_they_are_written(live: Live) -> None:
    door = door_to(live, "examples-none")
    assert door.ask("POST", "/_sandbox/reset", b'{"scenario": "empty"}').status == 200
    served = door.ask("GET", "/openapi.json").body.decode()
    (order,) = document().raw["x-example-records"]["orderId"]
    assert order in served
    live.app.sandboxes.forget("examples-none")


@pytest.mark.parametrize("path", FILES)
def test_an_etag_that_is_known_already_gets_304(door: Door, path: str) -> None:
    etag = door.ask("GET", path).header("etag")
    assert etag
    assert etag.startswith('"')
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = door.ask("GET", path, headers=[("If-None-Match", known)])
        assert (304, b"", etag) == (answer.status, answer.body, answer.header("etag"))
    assert door.ask("GET", path, headers=[("If-None-Match", '"other"')]).status == 200


@pytest.mark.parametrize(
    ("path", "name"),
    [("/openapi.json", "openapi.yaml"), ("/_sandbox/openapi.json", "sandbox.yaml")],
)
def test_a_slice_is_a_valid_contract_of_its_operations_alone(
    door: Door, path: str, name: str
) -> None:
    """With what they refer to, and short; an answer of it is what the whole says."""
    contract = document(name)
    for ident in chosen(6, contract.operations):
        operation = contract.operations[ident]
        found = _read(door.ask("GET", f"{path}?operationId={ident}").json())
        assert [ident] == list(found.operations)
        assert operation.responses.keys() == found.operations[ident].responses.keys()
        assert len(orjson.dumps(found.raw)) < 45_000
    for tag in [each["name"] for each in contract.raw["tags"]][:2]:
        found = _read(door.ask("GET", f"{path}?tag={quote(tag)}").json())
        assert [o.id for o in contract.operations.values() if o.tag == tag] == list(
            found.operations
        )
        assert [tag] == [each["name"] for each in found.raw["tags"]]


def _read(served: Json) -> Document:
    """A valid contract as the server reads it, without the `default` of an inbox, which answers
    what was set.
    """
    validate(served)
    for item in served["paths"].values():
        for operation in (each for each in item.values() if isinstance(each, dict)):
            operation["responses"].pop("default", None)
    return Document(served)


@pytest.mark.parametrize(
    ("query", "near"),
    [
        ("operationId=createPixOrdr", "Did you mean createPixOrder?"),
        ("tag=orders", "Did you mean Orders?"),
        ("operationId=", "The contract has no operation or tag ."),
        ("operationId=listOrders&tag=Ordrs", "Did you mean Orders?"),
    ],
)
def test_a_slice_of_nothing_is_refused_with_the_nearest(door: Door, query: str, near: str) -> None:
    for path in ("/openapi.json", "/openapi.yaml"):
        answer = door.ask("GET", f"{path}?{query}")
        assert (404, "route_not_found") == (answer.status, answer.json()["code"])
        assert near in answer.json()["message"]


@pytest.mark.parametrize("path", FILES)
def test_a_contract_is_packed_for_those_who_ask(door: Door, path: str) -> None:
    whole = door.ask("GET", path)
    assert whole.header("content-encoding") is None
    for accepted in ("gzip", "br, gzip;q=0.5"):
        packed = door.ask("GET", path, headers=[("Accept-Encoding", accepted)])
        assert "gzip" == packed.header("content-encoding")
        assert whole.body == gzip.decompress(packed.body)
        assert len(packed.body) * 5 < len(whole.body)
        assert packed.header("etag") != whole.header("etag")
    for accepted in ("identity", "gzip;q=0", "br"):
        assert whole.body == door.ask("GET", path, headers=[("Accept-Encoding", accepted)]).body


def test_a_contract_is_packed_once(door: Door) -> None:
    """A megabyte takes a thread 20 ms, and builds ask for it again and again, until records change."""
    made = door.ask("POST", "/v2/customers", body=json.dumps(customer_body()).encode())
    assert 201 == made.status
    with patch.object(gzip, "compress", wraps=gzip.compress) as packing:
        packed = [
            door.ask("GET", "/openapi.json?tag=Plans", headers=[("Accept-Encoding", "gzip")]).body
            for _ in range(3)
        ]
    assert (1, 1) == (packing.call_count, len(set(packed)))


@pytest.mark.promise("waiting-requests")
def test_contracts_are_made_one_at_a_time_and_delay_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits stood in one line with the parts of the contract that strangers ask for."""
    make = contract_files.written

    def slowly(*asked: Any) -> bytes:
        time.sleep(0.1)
        return make(*asked)

    monkeypatch.setattr(contract_files, "written", slowly)
    settings = replace(FROZEN, scenario="empty", store=tmp_path / "store")
    with running(settings) as live, ExitStack() as opened:
        door = door_to(live, "default")
        asking = [opened.enter_context(connect(live.port)) for _ in range(40)]
        for connection in asking:
            connection.sendall(b"GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert 201 == door.send("POST", "/v2/customers", customer_body()).status
        answered = select.select(asking, [], [], 0)[0]
        statuses = Counter(answer_on(connection).status for connection in asking)
    assert {200: 16, 429: 24} == statuses
    assert len(answered) < 34
