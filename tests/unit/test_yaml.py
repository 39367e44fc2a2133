"""Both of our YAML readers are quicker than PyYAML's own and read the same."""

from pathlib import Path

import pytest
import yaml

from stub_server.contract import source
from stub_server.seeding.tables import CatalogueError, Node, _Loader
from tests.support.worlds import FIXTURES

TEXT = b"""
plain: a word
quoted: ["12", 'true', ~, yes, 0x1f, 1_000, 1.5, 2026-11-20]
base: &base { city: Recife, streets: [Rua A, Rua B] }
merged: { <<: *base, city: Olinda }
again: *base
49.9: a price as a key
tagged: !!str 5
empty:
"""


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_fixture_reads_as_pyyaml_reads_it(path: Path) -> None:
    assert yaml.load(path.read_bytes(), _Loader) == Node.load(path).value  # noqa: S506 - the loader makes plain data


def test_every_kind_of_node_reads_as_pyyaml_reads_it() -> None:
    assert yaml.load(TEXT, _Loader) == Node.parse(TEXT, "text").value  # noqa: S506 - the loader makes plain data


def test_what_an_alias_repeats_is_made_once() -> None:
    text = "a0: &a0 [x]\n"
    for n in range(1, 40):  # made anew each time, the last would hold 9 ** 39 times the first
        text += f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n"
    value = Node.parse(text.encode(), "text").value
    assert value["a39"][0] is value["a39"][8]


def test_a_value_that_contains_itself_is_refused() -> None:
    with pytest.raises(CatalogueError, match=r"text: is not YAML: maximum recursion depth"):
        Node.parse(b"a: &a [*a]", "text")


def test_a_contract_knows_only_the_types_of_json(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text("[yes, 'true', true, ~, null, '', -1, '1', 1.5, 1e3, 2026-11-20, <<, '=', no, {}, [], !!str 5]")
    expected = ["yes", "true", True, None, None, "", -1, "1", 1.5, "1e3", "2026-11-20", "<<", "=", "no", {}, [], "5"]
    assert expected == source.read(file)
