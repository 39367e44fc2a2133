"""Folding: the folder becomes one document; a broken file stops with file, line and reason."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from stub_server.contract import bundle
from stub_server.contract.document import Document
from stub_server.contract.source import ContractError, read

from ..support.contract import OPENAPI


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy of the folder to copy from."""
    folder = tmp_path_factory.mktemp("pristine") / "openapi"
    shutil.copytree(OPENAPI, folder)
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """The contract's folder, to be broken."""
    shutil.copytree(pristine, tmp_path / "openapi")
    return tmp_path / "openapi"


def line_with(file: Path, text: str) -> int:
    """The first line that has a text."""
    return next(
        n for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if text in line
    )


def replace(file: Path, old: str, new: str) -> int:
    """Replace the first occurrence; answers its line."""
    text = file.read_text(encoding="utf-8")
    assert old in text, f"{file} has no {old!r}"
    line = line_with(file, old.partition("\n")[0])
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return line


Break = Callable[[Path], int]
BREAKS: dict[str, tuple[str, Break, str]] = {
    "a reference to no file": (
        "components/schemas/customers.yaml",
        lambda f: replace(f, "common.yaml#/Pagination", "comum.yaml#/Pagination"),
        r"comum\.yaml#/Pagination leads to nothing in openapi/",
    ),
    "a reference to nothing in a file": (
        "openapi.yaml",
        lambda f: replace(f, "paths/customers.yaml#/collection", "paths/customers.yaml#/colection"),
        r"colection leads to nothing in openapi/",
    ),
    "a reference out of the folder": (
        "components/schemas/customers.yaml",
        lambda f: replace(f, "common.yaml#/Pagination", "../../../../etc/passwd"),
        r"passwd leads to nothing in openapi/",
    ),
}


@pytest.mark.parametrize("what", BREAKS)
def test_a_broken_file_stops_with_file_line_and_reason(folder: Path, what: str) -> None:
    name, break_it, reason = BREAKS[what]
    line = break_it(folder / name)
    with pytest.raises(ContractError, match=reason) as caught:
        bundle.bundled(folder / "openapi.yaml", cache(read))
    place = str(caught.value).partition(": ")[0]
    file, _, told = place.rpartition(":")
    assert file == str(folder / name)
    assert int(told) == line


def test_a_missing_entry_says_which_file(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"openapi\.yaml: no such file"):
        bundle.bundled(tmp_path / "openapi.yaml", cache(read))


def small(tmp_path: Path, **files: str) -> Path:
    """A contract of a few files; `__` in a name stands for a folder."""
    for name, text in files.items():
        path = tmp_path / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "openapi.yaml"


HEAD = 'openapi: 3.0.3\ninfo: { title: x, version: "1" }\n'


def test_a_schema_may_contain_itself(tmp_path: Path) -> None:
    tree = (
        "Tree:\n  type: object\n  properties: { children: { type: array, items: { $ref: '#/Tree' }"
        " } }\n"
    )
    entry = small(
        tmp_path,
        openapi=HEAD + "paths: { /t: { $ref: paths/t.yaml } }\n",
        paths__t=(
            "get: { responses: { '200': { description: x, content: { application/json: "
            "{ schema: { $ref: '../components/schemas/trees.yaml#/Tree' } } } } } }\n"
        ),
        components__schemas__trees=tree,
    )
    folded = bundle.bundled(entry, cache(read))
    items = folded["components"]["schemas"]["Tree"]["properties"]["children"]["items"]
    assert items == {"$ref": "#/components/schemas/Tree"}


def test_a_date_without_quotes_stays_text(tmp_path: Path) -> None:
    entry = small(
        tmp_path, openapi=HEAD + "paths: {}\nx-day: 2026-11-20\nx-no: no\nx-on: on\nx-yes: true\n"
    )
    folded = bundle.bundled(entry, cache(read))
    assert (folded["x-day"], folded["x-no"], folded["x-on"], folded["x-yes"]) == (
        "2026-11-20",
        "no",
        "on",
        True,
    )


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
