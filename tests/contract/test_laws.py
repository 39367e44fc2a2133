"""The laws of the contract: what must hold between its parts, whatever they say."""

import re
from typing import Any

from stub_server.contract import checks
from stub_server.contract.document import JSON, Document
from stub_server.contract.formats import formats
from stub_server.contract.schema import needed
from stub_server.contract.source import nodes
from stub_server.domain.documents import is_document
from stub_server.domain.orders import MAGIC
from stub_server.server.layers.validation import CODE

from ..support.contract import document
from ..support.laws import every

ENTRIES = ("openapi.yaml", "sandbox.yaml")
API = document("openapi.yaml")
CONTROL = document("sandbox.yaml")
OPERATIONS = {
    (entry, name): op for entry in ENTRIES for name, op in document(entry).operations.items()
}
OF_API = API.operations
each_operation = every(OPERATIONS)
CODES = set(API.schema("ErrorCode")["enum"])


# -- answers


@each_operation
def test_the_refusals_that_can_occur_are_listed_and_no_others(entry: str, name: str) -> None:
    operation = OPERATIONS[entry, name]
    statuses = set(operation.responses)
    if operation.scheme is not None:
        assert {401, 403} <= statuses
    if operation.body is not None:
        assert {400, 413, 415, 422} <= statuses
    elif operation.uploads == ("*/*",):
        assert 413 in statuses
    elif operation.uploads:  # a file is no JSON that could be malformed
        assert {413, 415, 422} <= statuses
        assert 400 not in statuses
    else:
        assert {400, 413, 415}.isdisjoint(statuses)
    if any(p.place == "query" for p in operation.parameters):
        assert 422 in statuses
    if any(p.place == "path" for p in operation.parameters):
        assert 404 in statuses
    assert {405, 500, 501}.isdisjoint(statuses)
    # Of the API only where requests are limited: see tests/surfaces/test_rate_limit.py.
    assert (429 in statuses) == (name in {"exportSandbox", "followSandbox"})
    # 202 says where to ask for the other one
    assert sum(status < 300 for status in statuses - {202}) == 1


@each_operation
def test_every_answer_names_its_request(entry: str, name: str) -> None:
    for status, response in OPERATIONS[entry, name].responses.items():
        assert "X-Request-Id" in response.headers, status
        if status == 201 and entry == "openapi.yaml":
            assert response.headers["Location"]["required"] is True
        if status == 401:
            assert "WWW-Authenticate" in response.headers


@each_operation
def test_every_refusal_lists_its_codes_and_shows_each_in_an_example(entry: str, name: str) -> None:
    doc = document(entry)
    for status in OPERATIONS[entry, name].responses:
        response = doc.resolve(OPERATIONS[entry, name].raw["responses"][str(status)])
        if status < 400 or JSON not in response["content"]:
            assert "x-codes" not in response
            continue
        shown = [
            doc.resolve(example)["value"]
            for example in response["content"][JSON]["examples"].values()
        ]
        codes = response.get("x-codes", [])
        assert len(codes) == len(set(codes))
        # a report
        if response["content"][JSON]["schema"] != {"$ref": "#/components/schemas/Error"}:
            assert {value["code"] for value in shown if "code" in value} == set(codes)
            continue
        assert set(codes) <= CODES
        assert {value["code"] for value in shown} == set(codes)
        assert {value["status"] for value in shown} == {status}


@each_operation
def test_an_operation_that_keeps_free_keys_says_how_invalid_ones_are_refused(
    entry: str, name: str
) -> None:
    """OpenAPI 3.0 cannot forbid keys. The keys of a verification are compared and not kept."""
    operation = OPERATIONS[entry, name]
    has_maps = operation.body is not None and _has_free_map(operation.body, document(entry))
    listed = 409 in operation.responses and CODE in operation.responses[409].codes
    assert (has_maps and name != "verifyRequests") == listed


def _has_free_map(schema: Any, contract: Document) -> bool:
    """Whether a schema has a map from free keys to strings."""
    schema = contract.resolve(schema)
    rest = contract.resolve(schema.get("additionalProperties"))
    if isinstance(rest, dict) and rest.get("type") == "string":
        return True
    return any(_has_free_map(each, contract) for each in schema.get("properties", {}).values())


def test_every_code_is_used() -> None:
    """By an operation, or by the server itself as `info` says."""
    of_the_server = {
        "route_not_found",
        "method_not_allowed",
        "rate_limited",
        "internal_error",
        "not_implemented",
        "simulated_fault",
        "sandbox_not_found",
        "malformed_request",
        "host_not_allowed",
        "delivery_not_allowed",
        "request_timeout",
        "uri_too_long",
        "headers_too_large",
        "too_many_connections",
        "sandbox_unavailable",
        "store_unavailable",
    }
    used = {
        code
        for op in OPERATIONS.values()
        for response in op.responses.values()
        for code in response.codes
    }
    assert CODES - used - of_the_server == set()


@every(ENTRIES)
def test_every_integer_that_is_sent_in_json_has_bounds(entry: str) -> None:
    """Beyond 64 bits JSON readers make a float of it: that it was a whole number cannot
    be told any more.
    """
    doc = document(entry)
    bodies = [operation.body for operation in doc.operations.values() if operation.body]
    for at, node in nodes([bodies, needed(bodies, doc.raw["components"])]):
        if isinstance(node, dict) and node.get("type") == "integer":
            assert {"minimum", "maximum"} <= node.keys(), at


# -- scopes, credentials, events


@every(OF_API)
def test_every_operation_says_which_credential_and_scope_it_needs(name: str) -> None:
    operation = OF_API[name]
    assert operation.scheme in API.raw["components"]["securitySchemes"]
    assert len(operation.scopes) == (0 if operation.scheme == "publicBearer" else 1)
    access = "read" if operation.method == "GET" else "write"
    assert all(scope.endswith(f":{access}") for scope in operation.scopes)


def test_every_scope_opens_something() -> None:
    assert {s["name"] for s in API.scopes} == {
        scope for op in OF_API.values() for scope in op.scopes
    }
    for scope in API.scopes:
        assert scope["name"] == f"{scope['resource']}:{scope['access']}"
        assert scope["assignable"] is (scope["resource"] != "api_keys")


@every(ENTRIES)
def test_a_default_is_in_a_component_of_its_own(entry: str) -> None:
    """openapi-typescript takes a property for required whose default is beside it, in
    requests too.
    """
    for name, schema in document(entry).raw["components"]["schemas"].items():
        assert [] == [
            member for member, node in schema.get("properties", {}).items() if "default" in node
        ], name


@every(ENTRIES)
def test_examples_fit(entry: str) -> None:
    assert [] == list(
        map(str, checks.unfit_examples(document(entry), formats(is_document, is_document)))
    )


@every(ENTRIES)
def test_links_lead_to_operations_and_moves_name_operations(entry: str) -> None:
    known = {name for _, name in OPERATIONS} | {"clock", "simulation"}
    assert [] == [
        by
        for life in document(entry).lifecycles.values()
        for m in life.moves
        for by in m.by
        if by not in known
    ]
    for operation in document(entry).operations.values():
        for response in map(document(entry).resolve, operation.raw["responses"].values()):
            for link in map(document(entry).resolve, response.get("links", {}).values()):
                target = document(entry).operations[link["operationId"]]
                needed = {p.name for p in target.parameters if p.place == "path"}
                assert (
                    needed
                    <= link.get("parameters", {}).keys()
                    <= {p.name for p in target.parameters}
                )


def test_every_id_that_an_answer_of_a_creation_shows_is_linked() -> None:
    """Create → get; and after a DELETE → get, to see that it is gone."""
    for name, operation in OF_API.items():
        resource = name.removeprefix("create").removeprefix("delete").removeprefix("Pix")
        if name.startswith(("create", "delete")) and f"get{resource}" in OF_API:
            status = "201" if name.startswith("create") else "200"
            targets = {
                link["operationId"]
                for link in API.resolve(operation.raw["responses"][status])["links"].values()
            }
            assert f"get{resource}" in targets, name


def test_every_magic_word_is_told() -> None:
    """Where the orders are made to which they apply: nobody finds them otherwise."""
    email = API.schema("OrderCustomerInput")["properties"]["email"]
    words = [magic.name for magic in MAGIC]
    assert words == list(email["x-magic-words"])
    assert [] == [word for word in words if word not in email["description"]]


@every([name for name, op in OF_API.items() if any(p.name == "sort" for p in op.parameters)])
def test_every_order_of_a_list_has_a_name_for_generated_clients(name: str) -> None:
    """`-createdAt` is no identifier: without a name, generators call it VALUE_1."""
    (sort,) = [
        parameter.schema for parameter in OF_API[name].parameters if parameter.name == "sort"
    ]
    keys = [(value.lstrip("-"), value.startswith("-")) for value in sort["enum"]]
    expected = [
        re.sub("([A-Z])", r"_\1", key).upper() + ("_DESC" if down else "") for key, down in keys
    ]
    assert expected == sort["x-enum-varnames"]
