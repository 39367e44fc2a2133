"""The report of what the service assumes: complete, from the contract, the same over HTTP and on the command line."""

import httpx2
import pytest
from click.testing import CliRunner

from stub_server.cli import main

from ..support.contract import document
from ..support.live import Live
from ..support.make import Json


@pytest.fixture(scope="module")
def report(live: Live) -> Json:
    response = httpx2.get(f"{live.url}/_sandbox/assumptions")
    assert response.status_code == 200
    body: Json = response.json()
    return body


def test_every_contradiction_of_the_source_is_listed(report: Json) -> None:
    """C1 to C10, each with the operations or fields where it bites."""
    found = [entry for entry in report["assumptions"] if entry["kind"] == "contradiction"]
    assert [f"C{number}" for number in range(1, 11)] == [entry["id"] for entry in found]
    assert all(entry["subject"] for entry in found)


def test_every_assumed_part_of_every_operation_is_listed(report: Json) -> None:
    """Method, path, request and response are judged one by one; four operations have nothing to say."""
    found = {entry["id"] for entry in report["assumptions"] if entry["kind"] == "operation"}
    expected = {
        f"{operation.id}.{part}"
        for operation in document().operations.values()
        for part in ("method", "path", "request", "response")
        if operation.raw["x-basis"][part] == "assumed"
    }
    assert expected == found
    assert report["documented_operations"] == 4


def test_every_assumed_property_is_listed_with_its_reason(report: Json) -> None:
    """A field of ours, or a limit of ours on a field of the source."""
    found = {entry["id"]: entry["text"] for entry in report["assumptions"] if entry["kind"] == "property"}
    for name, schema in document().raw["components"]["schemas"].items():
        for member, basis in schema.get("x-basis", {}).items():
            if basis == "assumed":
                assert found[f"{name}.{member}"]
    assert "decimals" in found["Order.totalAmount"]


def test_the_command_prints_the_same_report(report: Json) -> None:
    """As a table that a person can read."""
    result = CliRunner().invoke(main, ["assumptions"], env={"COLUMNS": "300"})
    assert result.exit_code == 0
    for entry in report["assumptions"]:
        assert entry["id"] in result.output
    assert f"{report['total']} entries" in result.output
