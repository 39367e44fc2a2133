"""The YAML reader reads JSON's types alone, and the fixtures as PyYAML does."""

from pathlib import Path

import pytest
import yaml

from stub_server.contract import source
from stub_server.contract.source import ContractError
from tests.support.worlds import FIXTURES


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_fixture_reads_as_pyyaml_reads_it(path: Path) -> None:
    assert yaml.safe_load(path.read_bytes()) == source.read(path)


def test_what_an_alias_repeats_is_made_once() -> None:
    text = "a0: &a0 [x]\n"
    for n in range(1, 40):  # made anew each time, the last would hold 9 ** 39 times the first
        text += f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n"
    value = source.parse(text, "text")
    assert value["a39"][0] is value["a39"][8]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\nb: !!binary aGVsbG8=", "text:2: .*binary"),
        ("!!set { x }", "text:1: .*set"),
        ("a: 1\na: 2", "text:2: .*'a' appears twice"),
        ("5: a", "text:1: .*the key 5 is not text"),
    ],
)
def test_what_json_has_no_type_for_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(ContractError, match=reason):
        source.parse(text, "text")


def test_a_contract_knows_only_the_types_of_json(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(
        "[yes, 'true', true, ~, null, '', -1, '1', 1.5, 1e3, 2026-11-20, <<, '=', no, {}, [], !!str"
        " 5, 0x1f, 01, 1_0]"
    )
    expected = [
        "yes",
        "true",
        True,
        None,
        None,
        "",
        -1,
        "1",
        1.5,
        "1e3",
        "2026-11-20",
        "<<",
        "=",
        "no",
        {},
        [],
        "5",
        "0x1f",
        "01",
        "1_0",
    ]
    assert expected == source.read(file)
