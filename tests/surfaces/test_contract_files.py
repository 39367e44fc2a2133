"""/openapi.json and /openapi.yaml: the contract as the server follows it, as plain bytes with an ETag."""

from typing import Any

import pytest
import yaml

from ..support.contract import document
from ..support.refusal import refused
from ..support.wire import Door

FILES = ["/openapi.json", "/openapi.yaml", "/_sandbox/openapi.json", "/_sandbox/openapi.yaml"]


def parsed(body: bytes) -> Any:
    """The bytes as data; JSON is YAML too."""
    return yaml.load(body, _Json)  # noqa: S506 - a safe loader with fewer types


class _Json(yaml.CSafeLoader):
    """YAML whose dates stay text."""


_Json.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


@pytest.mark.parametrize("path", FILES)
def test_the_file_is_the_folded_contract(door: Door, path: str) -> None:
    answer = door.ask("GET", path, token=None)
    assert answer.status == 200
    assert answer.header("content-type") == ("application/json" if path.endswith("json") else "application/yaml")
    expected = document("sandbox.yaml" if "_sandbox" in path else "openapi.yaml").raw
    assert (answer.json() if path.endswith("json") else parsed(answer.body)) == expected


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
    assert answer.header("allow") == "GET"
    assert (204, "GET") == ((options := door.ask("OPTIONS", path)).status, options.header("allow"))


def test_what_is_served_is_a_valid_document_without_references_to_files(door: Door) -> None:
    text = door.ask("GET", "/openapi.json").body.decode()
    assert ".yaml" not in text
    assert '"$ref":"#/' in text
