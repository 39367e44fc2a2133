"""The report of what the service assumes: complete, from the contract, the same over HTTP and on
the command line.
"""

import re

import httpx2
import pytest
import yaml
from click.testing import CliRunner

from stub_server.cli.command import main

from ..support.contract import document
from ..support.live import NO_TLS, Live
from ..support.make import Json, done

pytestmark = pytest.mark.check


@pytest.fixture(scope="module")
def report(live: Live) -> Json:
    return done(httpx2.get(f"{live.url}/_sandbox/assumptions", verify=NO_TLS))


def test_every_operation_that_is_assumed_is_listed_with_the_parts(report: Json) -> None:
    """Method, path, request and response are judged one by one; four operations have
    nothing to say.
    """
    found = {
        entry["id"]: entry["text"]
        for entry in report["assumptions"]
        if entry["kind"] == "operation"
    }
    expected = {
        ident: [part for part, basis in view.basis.items() if basis == "assumed"]
        for ident, view in document().operations.items()
    }
    assert {ident for ident, parts in expected.items() if parts} == found.keys()
    assert all(text.endswith(f": {', '.join(expected[ident])}.") for ident, text in found.items())
    assert report["documented_operations"] == 4


def test_every_assumed_property_is_listed_with_its_reason(report: Json) -> None:
    """A field of ours, or a limit of ours on a field of the source."""
    found = {
        entry["id"]: entry["text"] for entry in report["assumptions"] if entry["kind"] == "property"
    }
    for name, schema in document().raw["components"]["schemas"].items():
        for member in schema.get("properties", {}):
            if member not in schema.get("x-basis", {}):
                assert found[f"{name}.{member}"]
    assert "decimals" in found["Order.totalAmount"]


def test_every_row_says_what_was_decided(report: Json) -> None:
    """Not only that something was: the kind and the limits of a field."""
    found = {entry["id"]: entry["text"] for entry in report["assumptions"]}
    text = (
        "The source document does not show of DELETE /v2/products/{productId}: method, path,"
        " request, response."
    )
    assert text == found["deleteProduct"]
    assert found["PlanCreate.status"].startswith("One of active, inactive; active when left out.")
    assert found["PixOrderCreate.items"].startswith("List of OrderItemInput of 1 to 100 entries.")
    assert found["Order.last_transaction.qr_code"].startswith("Text; optional. PIX:")
    assert found["Plan.interval"].startswith("One of day, week, month, year or null.")
    assert "Always BRL." == found["PlanCreate.currency"].partition(";")[0] + "."
    empty = [
        ident
        for ident, text in found.items()
        if re.fullmatch(r"The field \S+ is assumed\.|.{0,3}", text)
    ]
    assert [] == empty


def test_the_command_prints_every_row(report: Json, live: Live) -> None:
    result = CliRunner().invoke(main, ["assumptions", "--server", live.url])
    assert (0, report) == (result.exit_code, yaml.safe_load(result.output)), result.output
