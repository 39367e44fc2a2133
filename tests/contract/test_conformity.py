"""A corrected contract is held to its own tables and to the rules of the server, with file,
JSONPath and reason.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from stub_server.app import contracts
from stub_server.cli.command import main
from stub_server.contract import checks
from stub_server.contract.source import ContractError

from ..support.contract import document
from ..support.overlays import (
    LIFE,
    NO_ANALYTICS,
    NO_PAID,
    SETTLED,
    copied,
    overlay,
    removed,
    updated,
)

ORDER = "$.components.schemas.Order"
LAST = len(document().lifecycles["Order"].moves)
PAID = "$['x-webhooks']['order.paid']"
POST = f"{PAID}.post"
SCHEMA = f"{POST}.requestBody.content['application/json'].schema"
DATA = "$.components.schemas.OrderEvent.properties.data"
HELD = (
    updated(f"{LIFE}.states", "[held]")
    + updated(f"{LIFE}.sets.payable", "[held]")
    + updated(
        f"{LIFE}.moves",
        "[{ from: pending, to: held, by: [] }, { from: held, to: paid, event: order.paid }]",
    )
)
LATE = removed(
    "$.components.schemas.Subscription.properties.status.enum[?@ == 'past_due']",
    "$.components.schemas.Subscription['x-lifecycle'].states[?@ == 'past_due']",
    "$.components.schemas.Subscription['x-lifecycle'].sets.*[?@ == 'past_due']",
    "$.components.schemas.Subscription['x-lifecycle'].moves[?@.from == 'past_due' || @.to =="
    " 'past_due']",
)

FITTING = {
    "an event that is gone everywhere": NO_PAID,
    "an event under another name": SETTLED,
    "an event of another resource's name": SETTLED.replace("order.settled", "payment.settled"),
    "an event that nothing raises": copied("$['x-webhooks'] order.seen", PAID),
    "a scope that is gone everywhere": NO_ANALYTICS,
    "an operation without its scope": removed("$.paths['/v2/analytics'].get['x-scopes']"),
    "a move that is gone": removed(f"{LIFE}.moves[?@.to == 'canceled']"),
    "a further state": HELD,
    "a further state that its enum names too": updated(f"{ORDER}.properties.status.enum", "[held]") + HELD,
    "a set without states": removed(f"{LIFE}.sets.refundable[0]"),
    "a further set": updated(f"{LIFE}.sets", "{ final: [refunded, canceled] }"),
    "a change with several events": copied("$['x-webhooks'] plan.changed", "$['x-webhooks']['plan.updated']"),
    "a change without an event": removed("$['x-webhooks']['plan.updated']"),
    "another key of the payload": updated(POST, "{ x-payload-key: pedido }")
    + updated(f"{POST}.requestBody.content['application/json'].example.data", "{ pedido: { id: x } }")
    + updated(SCHEMA, "{ $ref: '#/components/schemas/PaidEvent' }")
    + copied("$.components.schemas PaidEvent", "$.components.schemas.OrderEvent")
    + removed("$.components.schemas.PaidEvent.properties.data.required[0]")
    + updated(
        "$.components.schemas.PaidEvent.properties.data.properties",
        "{ pedido: { $ref: '#/components/schemas/Order' } }",
    ),
    "a member of the payload that may be missing": updated(f"{DATA}.properties", "{ coupon: { type: string } }"),
}  # fmt: skip
UNFIT = {
    "an event that only the catalogue lost": (
        removed(PAID),
        f"{LIFE}.moves[2]: order.paid is no event of this contract: take it out, or describe it in x-webhooks",
    ),
    "a scope that only the table lost": (
        removed("$['x-scopes'][?@.name == 'analytics:read']"),
        "$.paths['/v2/analytics'].get['x-scopes']: analytics:read is no scope of this contract: take it out, or "
        "describe it in x-scopes",
    ),
    "a state of a move": (
        updated(f"{LIFE}.moves", "[{ from: paid, to: held }]"),
        f"{LIFE}.moves[{LAST}].to: held is no state of this lifecycle: take it out, or put it into states",
    ),
    "a state of a set": (
        updated(f"{LIFE}.sets.payable", "[held]"),
        f"{LIFE}.sets.payable[1]: held is no state of this lifecycle: take it out, or put it into states",
    ),
    "a state that the member cannot hold": (
        removed(f"{ORDER}.properties.status['x-enum-from']") + updated(f"{LIFE}.states", "[held]"),
        f"{LIFE}.states: held is in states only: put it into both, or into neither",
    ),
    "a value that is no state": (
        updated(f"{ORDER}.properties.status.enum", "[held]"),
        f"{LIFE}.states: held is in the enum of status only: put it into both, or into neither",
    ),
    "a lifecycle of no member": (
        updated(LIFE, "{ field: state }"),
        f"{LIFE}.field: Order has no member state: name one that it has",
    ),
    "a misspelt member of a move": (
        updated(f"{LIFE}.moves[2]", "{ events: order.paid }"),
        f"{LIFE}.moves[2]: Additional properties are not allowed ('events' was unexpected)",
    ),
    "a payload that is not in components": (
        removed(f"{SCHEMA}['$ref']") + updated(SCHEMA, "{ type: object, properties: { data: { type: strng } } }"),
        f"{SCHEMA}: '$ref' is a required property: put the payload into components and refer to it",
    ),
    "no event at all": (
        removed("$['x-webhooks'].*"),
        "$.components.schemas.EventType.enum: [] should be non-empty",
    ),
    "a payload key that the payload lacks": (
        updated(POST, "{ x-payload-key: pedido }"),
        f"{POST}['x-payload-key']: data of the payload has no member pedido: name one that it has",
    ),
    "a payload without an example of the resource": (
        removed(f"{POST}.requestBody.content['application/json'].example.data.order"),
        f"{POST}.requestBody.content['application/json'].example: data.order must be an example of the resource, "
        "with its id",
    ),
    # What the rules of the server need, though the contract is sound in itself.
    "a state that is gone everywhere": (
        LATE,
        "$.components.schemas.Subscription['x-lifecycle'].states: the rules of the server need the state past_due: "
        "keep it, without moves if it never occurs",
    ),
    "a set that is gone": (
        removed(f"{LIFE}.sets.payable"),
        f"{LIFE}.sets: the rules of the server need the set payable: keep it, empty if it has no state",
    ),
    "a lifecycle that is gone": (
        removed(LIFE),
        f"{LIFE}: the server needs the states of this resource: keep its x-lifecycle",
    ),
    "a state in another member": (
        updated(LIFE, "{ field: state }") + updated(f"{ORDER}.properties", "{ state: { type: string } }"),
        f"{LIFE}.field: the server stores the state in status: do not change it",
    ),
}  # fmt: skip


def refusals(*files: Path) -> list[str]:
    """For what a start with overlays is refused, without the lines of the actions
    that brought it.
    """
    with pytest.raises(ContractError) as caught:
        contracts(files)
    return without_line(str(caught.value)).splitlines()


def without_line(told: str) -> str:
    return re.sub(r"\.yaml:[0-9]+: ", ".yaml: ", told)


@pytest.mark.parametrize("what", FITTING)
@pytest.mark.matrix
def test_what_fits_itself_and_the_rules_is_let_in(tmp_path: Path, what: str) -> None:
    contracts([overlay(tmp_path, FITTING[what])])


@pytest.mark.parametrize("what", UNFIT)
@pytest.mark.matrix
def test_what_does_not_fit_is_told_with_file_path_and_reason(tmp_path: Path, what: str) -> None:
    actions, expected = UNFIT[what]
    file = overlay(tmp_path, actions)
    # What another library lists at the end may grow with the contract.
    assert any(told.startswith(f"{file}: {expected}") for told in refusals(file))


def test_all_mistakes_of_all_overlays_are_told_at_once(tmp_path: Path) -> None:
    """Each overlay can be right in itself.

    Where it can be told, a mistake has the line that brought it.
    """
    one = overlay(tmp_path, removed(PAID), "one.yaml")
    two = overlay(tmp_path, LATE, "two.yaml")
    with pytest.raises(ContractError) as caught:
        contracts([one, two])
    told = str(caught.value).splitlines()
    assert told[0].startswith(f"{one}, {two}: {LIFE}.moves[2]: order.paid is no event")
    assert re.fullmatch(
        rf"{two}:\d+: .*the rules of the server need the state past_due: .*", told[-1]
    )


@pytest.mark.parametrize("entry", ["openapi.yaml", "sandbox.yaml"])
def test_the_contract_as_shipped_fits(entry: str) -> None:
    """It is OpenAPI 3.0, and its tables fit each other."""
    assert ("3.0.3", "2.0.0") == (
        document(entry).raw["openapi"],
        document(entry).raw["info"]["version"],
    )
    assert [] == checks.faults(document(entry), document(entry))


@pytest.fixture
def check(tmp_path: Path) -> Callable[[str], tuple[int, str]]:
    """`stub-server check` with an overlay of these actions: its exit code and what it prints."""

    def run(actions: str) -> tuple[int, str]:
        answer = CliRunner().invoke(main, ["check", "--overlay", str(overlay(tmp_path, actions))])
        return answer.exit_code, answer.output

    return run


def test_a_scenario_whose_records_do_not_fit_is_a_warning(
    check: Callable[[str], tuple[int, str]],
) -> None:
    """A server with that scenario refuses to start; one with another may start."""
    target = "$.components.schemas.CustomerCreate.properties.name"
    code, said = check(f"  - {{ target: {target}, update: {{ maxLength: 3 }} }}\n")
    assert 0 == code
    assert (
        "Warning: the scenario default does not start: past_due_br.yaml:4: customer.name:" in said
    )


@pytest.mark.check
@pytest.mark.parametrize(
    "what", ["an event that only the catalogue lost", "a state that is gone everywhere"]
)
def test_the_command_refuses_what_the_start_refuses(
    tmp_path: Path, check: Callable[[str], tuple[int, str]], what: str
) -> None:
    actions, expected = UNFIT[what]
    code, told = check(actions)
    assert (1, True) == (
        code,
        without_line(told).startswith(f"Error: {tmp_path / 'overlay.yaml'}: {expected}\n"),
    )


@pytest.mark.check
def test_the_command_tells_what_the_server_cannot_do_with_an_overlay(
    tmp_path: Path, check: Callable[[str], tuple[int, str]]
) -> None:
    """A record that the server cannot keep."""
    code, told = check(
        updated("$.components.schemas.Subscription.properties.amount", "{ maximum: 60 }")
    )
    assert 1 == code
    assert f"Error: {tmp_path / 'overlay.yaml'}:4: the contract does not fit the records" in told
    assert "a stored Subscription does not match" in told


@pytest.mark.check
def test_the_command_warns_of_examples_that_do_not_fit_any_more(
    tmp_path: Path, check: Callable[[str], tuple[int, str]]
) -> None:
    longer = updated(f"{DATA}.properties", "{ coupon: { type: string } }") + updated(
        f"{DATA}.required", "[coupon]"
    )
    code, told = check(
        updated("$.components.schemas.ProductCreate.properties.name", "{ maxLength: 3 }") + longer
    )
    assert 0 == code
    assert f"Warning: {tmp_path / 'overlay.yaml'}" in told
    assert "$.paths['/v2/products'].post.requestBody.content" in told
    assert (
        f"{PAID}.post.requestBody.content['application/json'].example: the example does not fit its"
        " schema: " in told
    )
