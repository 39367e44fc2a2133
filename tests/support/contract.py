"""The contract as the tests read it: loaded once, with its compiled schemas."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stub_server.console.examples import name_examples_of_paths
from stub_server.contract import bundle
from stub_server.contract.document import Document
from stub_server.contract.formats import formats
from stub_server.contract.schema import Schemas
from stub_server.domain.documents import is_document

OPENAPI = Path(__file__).parents[2] / "openapi"


@cache
def document(entry: str = "openapi.yaml") -> Document:
    """The folded contract behind an entry file, from the bundle that servers keep: see
    `test_kept.py`.
    """
    api, control, *_ = bundle.contracts(OPENAPI)
    return api if entry == "openapi.yaml" else control


@cache
def served(entry: str = "openapi.yaml") -> Any:
    """That contract as a server shows it to strangers, but for the server's address."""
    contract = deepcopy(document(entry).raw)
    contract.pop("x-example-records", None)
    name_examples_of_paths(contract)
    return contract


@cache
def schemas(entry: str = "openapi.yaml") -> Schemas:
    """Its schemas, held to every format."""
    return Schemas(document(entry).raw, formats(is_document, is_document))


@cache
def component(name: str, entry: str = "openapi.yaml") -> Any:
    """The validator of a named schema."""
    return schemas(entry).component(name)


def violations(validator: Any, value: Any) -> list[str]:
    """What is wrong with a value, in words; empty when nothing is."""
    return [
        f"{list(error.instance_path)}: {error.message[:300]}"
        for error in validator.iter_errors(value)
    ]


def parsed(body: bytes) -> Any:
    """The bytes as data; JSON is YAML too."""
    return yaml.load(body, _Json)  # noqa: S506 - a safe loader with fewer types


class _Json(yaml.CSafeLoader):
    """YAML whose dates stay text."""


_Json.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
