"""Folding: the folder becomes one document; a broken file stops with file, line and reason."""

from functools import cache
from pathlib import Path

import pytest

from stub_server.contract import bundle
from stub_server.contract.document import Document
from stub_server.contract.source import ContractError, read


def small(tmp_path: Path, **files: str) -> Path:
    """A contract of a few files; `__` in a name stands for a folder."""
    for name, text in files.items():
        path = tmp_path / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "openapi.yaml"


HEAD = 'openapi: 3.0.3\ninfo: { title: x, version: "1" }\n'


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("t.yaml#/collection", r"openapi\.yaml: t\.yaml#/collection leads to nothing"),
        ("u.yaml", r"u\.yaml: no such file"),
        ("'#/components/schemas/Tree'", r"\$\.paths\['/t'\]: .*schemas/Tree leads nowhere"),
    ],
)
def test_a_reference_without_a_target_stops(tmp_path: Path, reference: str, reason: str) -> None:
    entry = small(tmp_path, openapi=HEAD + f"paths: {{ /t: {{ $ref: {reference} }} }}\n", t="{}\n")
    with pytest.raises(ContractError, match=reason):
        bundle.bundled(entry, cache(read))


def test_a_missing_entry_says_which_file(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"openapi\.yaml: no such file"):
        bundle.bundled(tmp_path / "openapi.yaml", cache(read))


def test_a_schema_may_contain_itself(tmp_path: Path) -> None:
    tree = (
        "Tree:\n  type: object\n"
        "  properties: { children: { type: array, items: { $ref: '#/components/schemas/Tree' } } }\n"
    )
    entry = small(
        tmp_path,
        openapi=HEAD + "paths: { /t: { $ref: paths/t.yaml } }\n",
        paths__t=(
            "get: { responses: { '200': { description: x, content: { application/json: "
            "{ schema: { $ref: '#/components/schemas/Tree' } } } } } }\n"
        ),
        components__schemas__trees=tree,
    )
    folded = bundle.bundled(entry, cache(read))
    items = folded["components"]["schemas"]["Tree"]["properties"]["children"]["items"]
    assert items == {"$ref": "#/components/schemas/Tree"}


def test_a_paths_parameters_move_into_its_operations_once_each(tmp_path: Path) -> None:
    """And an operation's own parameter of that name and place takes the shared one's stead."""
    own = "{ name: q, in: query, schema: { type: integer } }"
    shared = (
        "parameters: [{ name: id, in: path, required: true, schema: { type: string } },"
        " { name: q, in: query, schema: { type: string } }]\n"
    )
    get = f"get: {{ operationId: a, tags: [T], parameters: [{own}], responses: {{}} }}\n"
    put = "put: { operationId: b, tags: [T], responses: {} }\n"
    entry = small(
        tmp_path, openapi=HEAD + "paths: { '/t/{id}': { $ref: t.yaml } }\n", t=shared + get + put
    )
    operations = Document(bundle.bundled(entry, cache(read))).operations
    assert [(p.name, p.schema["type"]) for p in operations["a"].parameters] == [
        ("id", "string"),
        ("q", "integer"),
    ]
    assert [(p.name, p.schema["type"]) for p in operations["b"].parameters] == [
        ("id", "string"),
        ("q", "string"),
    ]


@pytest.mark.parametrize(
    ("operations", "reason"),
    [
        (
            (
                "get: { operationId: a, tags: [T], responses: {} }\nput: { operationId: a, tags:"
                " [T], responses: {} }"
            ),
            "operationId a appears twice",
        ),
        ("get: { tags: [T], responses: {} }", "needs an operationId and a tag"),
        ("get: { operationId: a, responses: {} }", "needs an operationId and a tag"),
        (
            "get: { operationId: a, tags: [T], security: [{ x: [] }, { y: [] }], responses: {} }",
            "one security scheme per operation",
        ),
    ],
)
def test_an_operation_needs_a_name_of_its_own(tmp_path: Path, operations: str, reason: str) -> None:
    entry = small(tmp_path, openapi=HEAD + "paths: { /t: { $ref: t.yaml } }\n", t=operations + "\n")
    with pytest.raises(ContractError, match=rf"\$\.paths\['/t'\]\.\w+: .*{reason}"):
        _ = Document(bundle.bundled(entry, cache(read))).operations
