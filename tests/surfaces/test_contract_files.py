"""/openapi.json and /openapi.yaml: the contract as the server follows it, with a world's own records, and an ETag."""

import json
import re
from typing import Any

import pytest

from stub_server.console.examples import with_examples_of_parameters

from ..support.contract import document, parsed
from ..support.examples import path_ids
from ..support.live import Live
from ..support.refusal import refused
from ..support.wire import Door, Header
from .conftest import door_to

pytestmark = pytest.mark.check

VARYING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|pk_sandbox_\w+|http://127\.0\.0\.1:\d+(?:/s/[a-z]+)?"
)
FILES = ["/openapi.json", "/openapi.yaml", "/_sandbox/openapi.json", "/_sandbox/openapi.yaml"]


def masked(value: Any) -> Any:
    """The same without what differs by sandbox: ids, public keys, and the server's address in examples."""
    return json.loads(VARYING.sub("…", json.dumps(value)))


def without_examples(value: Any) -> Any:
    """The same without the examples of bodies, which are of the sandbox."""
    if isinstance(value, dict):
        return {key: without_examples(item) for key, item in value.items() if key != "examples"}
    return [without_examples(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", FILES)
def test_the_file_is_the_folded_contract(door: Door, path: str) -> None:
    headers: list[Header] = [] if "_sandbox" in path else [("Origin", "https://elsewhere.example")]  # a stranger's
    answer = door.ask("GET", path, token=None, headers=headers)
    assert answer.status == 200
    assert answer.header("content-type") == ("application/json" if path.endswith("json") else "application/yaml")
    raw = with_examples_of_parameters(document("sandbox.yaml" if "_sandbox" in path else "openapi.yaml").raw)
    expected = {key: value for key, value in raw.items() if key not in ("servers", "x-example-records")}
    found = answer.json() if path.endswith("json") else parsed(answer.body)
    found.pop("servers")
    if "_sandbox" in path:  # the one that strangers do not read
        found, expected = without_examples(found), without_examples(expected)
    assert masked(found) == masked(expected)


@pytest.mark.parametrize("prefix", ["", "/s/surfaces", "/s/Surfaces"])
def test_the_file_speaks_of_the_sandbox_that_is_asked(live: Live, door: Door, prefix: str) -> None:
    """A client made from it, or from a file that it was saved in, reaches the sandbox; a stranger's too."""
    plain = Door(live.port, prefix, door.token)
    api, control = f"{live.url}{prefix.lower()}", f"{live.url}{prefix.lower()}/_sandbox"
    elsewhere: list[Header] = [("Origin", "https://elsewhere.example")]
    for path in FILES:
        for headers in ([], elsewhere) if "_sandbox" not in path else ([],):
            answer = plain.ask("GET", path, headers=headers)
            found = answer.json() if path.endswith("json") else parsed(answer.body)
            assert [{"url": control if "_sandbox" in path else api}] == found["servers"]
    # Without a prefix the header and the credential choose, and the address is the server's.
    told = plain.ask("GET", "/api-keys/info").json()["info"]
    assert f"{live.url}{prefix.lower()}/openapi.json" == told["documentation_url"]
    assert plain.ask("GET", told["documentation_url"].removeprefix(live.url + prefix.lower())).status == 200


def examples_of(contract: Any, operation: str) -> dict[str, Any]:
    """The request bodies that the served contract shows for an operation."""
    for item in contract["paths"].values():
        for raw in item.values():
            if isinstance(raw, dict) and raw.get("operationId") == operation:
                found = raw["requestBody"]["content"]["application/json"]["examples"]
                return {name: resolved(contract, entry)["value"] for name, entry in found.items()}
    raise KeyError(operation)


def resolved(contract: Any, node: Any) -> Any:
    """What a reference means."""
    while "$ref" in node:
        target = contract
        for step in node["$ref"][2:].split("/"):
            target = target[step]
        node = target
    return node


@pytest.mark.parametrize("path", ["/openapi.json", "/openapi.yaml"])
def test_an_example_can_be_sent_as_it_is_shown(live: Live, path: str) -> None:
    """In every world, and in the same one after a reset with another seed: it names records that are there."""
    for name, reset in (("examples-one", None), ("examples-two", None), ("examples-two", b'{"seed": 7}')):
        door = door_to(live, name)
        if reset is not None:
            door.ask("POST", "/_sandbox/reset", reset)
        answer = door.ask("GET", path)
        contract = answer.json() if path.endswith("json") else parsed(answer.body)
        for operation, paths in (("createPixOrder", "/v2/orders/pix"), ("createOrder", "/v2/orders")):
            for shown in examples_of(contract, operation).values():
                placed = door.send("POST", paths, shown)
                assert placed.status == 201, placed.body
        shown = examples_of(contract, "createPixOrder")["pixOrder"]
        assert door.ask("GET", f"/v2/projects/{shown['projectId']}").status == 200
        plan = door.ask("GET", f"/v2/plans/{shown['planId']}").json()["plan"]
        assert shown["projectId"] == plan["projectId"]
        made = door.send("POST", "/v2/products", examples_of(contract, "createProduct")["ebook"])
        assert made.status == 201, made.body
    for name in ("examples-one", "examples-two"):
        live.app.sandboxes.forget(name)


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


@pytest.mark.parametrize("path", FILES)
def test_the_examples_name_records_of_every_kind(live: Live, door: Door, path: str) -> None:
    """None of those that the files of the contract name is left."""
    served = door.ask("GET", path).body.decode()
    named = {name: examples for name, examples in document().raw["x-example-records"].items() if name != "baseUrl"}
    assert [] == [example for examples in named.values() for example in examples if example in served]
    kinds = ("orders", "subscriptions") if "_sandbox" in path else LISTS
    assert [] == [kind for kind in kinds if not any(ident in served for ident in known(door, kind))]
    assert door.ask("GET", "/_sandbox/credentials").json()["private_key"] not in served


def test_a_record_that_is_gone_is_named_no_more(live: Live) -> None:
    """And the file is another one then: its ETag too."""
    door = door_to(live, "examples-gone")
    before = door.ask("GET", "/openapi.json")
    webhook, *_ = path_ids(before.json(), document().operations["sendTestWebhook"])
    assert door.ask("DELETE", f"/v2/webhooks/{webhook}").status == 200
    after = door.ask("GET", "/openapi.json", headers=[("If-None-Match", before.header("etag") or "")])
    assert 200 == after.status
    assert webhook not in path_ids(after.json(), document().operations["sendTestWebhook"])
    assert before.header("etag") != after.header("etag")
    live.app.sandboxes.forget("examples-gone")


def test_a_world_without_records_shows_the_examples_as_they_are_written(live: Live) -> None:
    door = door_to(live, "examples-none")
    assert door.ask("POST", "/_sandbox/reset", b'{"scenario": "empty"}').status == 200
    served = door.ask("GET", "/openapi.json").body.decode()
    (order,) = document().raw["x-example-records"]["orderId"]
    assert order in served
    live.app.sandboxes.forget("examples-none")


def test_worlds_have_etags_of_their_own(live: Live, door: Door) -> None:
    etags = [Door(live.port, prefix, "x").ask("GET", "/openapi.json").header("etag") for prefix in ("", door.prefix)]
    assert len(set(etags)) == 2


@pytest.mark.parametrize("path", FILES)
def test_an_etag_that_is_known_already_gets_304(door: Door, path: str) -> None:
    etag = door.ask("GET", path).header("etag")
    assert etag
    assert etag.startswith('"')
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = door.ask("GET", path, headers=[("If-None-Match", known)])
        assert (304, b"", etag) == (answer.status, answer.body, answer.header("etag"))
    assert door.ask("GET", path, headers=[("If-None-Match", '"other"')]).status == 200


@pytest.mark.parametrize("path", FILES)
def test_the_bytes_are_the_same_every_time(door: Door, path: str) -> None:
    assert door.ask("GET", path).body == door.ask("GET", path).body


@pytest.mark.parametrize("path", FILES)
def test_other_methods_are_405(door: Door, path: str) -> None:
    answer = door.ask("POST", path, b"{}")
    refused(answer, 405, "method_not_allowed")
    assert answer.header("allow") == "GET, HEAD, OPTIONS"
    assert (204, "GET, HEAD, OPTIONS") == ((options := door.ask("OPTIONS", path)).status, options.header("allow"))


def test_what_is_served_is_a_valid_document_without_references_to_files(door: Door) -> None:
    text = door.ask("GET", "/openapi.json").body.decode()
    assert ".yaml" not in text
    assert '"$ref":"#/' in text
