"""The law of examples: each that is served fits its schema, belongs to the others of its name, and
says its name.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from stub_server.contract.checks import unfit_examples
from stub_server.contract.document import Document, Operation
from stub_server.contract.formats import formats
from stub_server.contract.schema import Schemas
from stub_server.domain.documents import is_document

from ..conftest import Serve
from ..support.live import Live
from ..support.wire import Header
from .conftest import door_to

FOREIGN: list[Header] = [("Origin", "https://elsewhere.example")]
LOCAL: list[Header] = [("Origin", "http://localhost:5173")]
API = "/openapi.json"
CONTROL = "/_sandbox/openapi.json"
FORMS = ("default", "other seed", "empty", "frozen", "advanced", "foreign", "local page", "limited")
SAID = {
    "deactivateKey": ("api_key", "is_active", False),
    "monthlyPlan": ("plan", "interval", "month"),
    "lifetimePlan": ("plan", "billing_type", "one_time"),
    "pauseWebhook": ("webhook", "is_active", False),
    "retirePlan": ("plan", "status", "inactive"),
    "sellingProject": ("data.project", "status", "active"),
    "draftProject": ("data.project", "status", "draft"),
    "pauseProject": ("data.project", "status", "suspended"),
    "reopenProject": ("data.project", "status", "active"),
    "closeProject": ("data.project", "status", "archived"),
    "pendingOrder": ("", "status", "pending"),
    "paidOrder": ("", "status", "paid"),
    "pixOrder": ("", "paymentMethod", "pix"),
    "boletoOrder": ("", "paymentMethod", "boleto"),
    "failingPixOrder": ("", "status", "failed"),
    "delivered": ("log", "status", "delivered"),
    "retried": ("log", "status", "delivered"),
    "sendTest": ("log", "event_type", "webhook.test"),
    "endpointDown": ("log", "status", "failed"),
}
"""What an example of the API is named for: the place of a record in it, a member, and its value."""


@pytest.fixture(scope="module")
def limited(serve: Serve) -> Live:
    """A server that lists one more answer of each operation."""
    return serve(rate_limit=(100, 60))


def served(form: str, live: Live, limited: Live) -> Iterator[tuple[Document, bool]]:
    """The contracts of a form, and whether they have records of the sandbox."""
    door = door_to(limited if form == "limited" else live, "examples-law")
    try:
        if form in ("other seed", "empty"):
            body = {"seed": 7} if form == "other seed" else {"scenario": "empty"}
            assert 200 == door.send("POST", "/_sandbox/reset", body).status
        if form == "frozen":
            assert 200 == door.send("PATCH", "/_sandbox/clock", {"frozen": True}).status
        if form == "advanced":
            assert 200 == door.send("POST", "/_sandbox/clock/advance", {"days": 150}).status
        headers = {"foreign": FOREIGN, "local page": LOCAL}.get(form, [])
        for path in (API, CONTROL)[: 1 if form == "foreign" else 2]:
            answer = door.ask("GET", path, headers=headers)
            assert 200 == answer.status, answer.body
            yield Document(answer.json()), path == API
    finally:
        (limited if form == "limited" else live).app.sandboxes.forget("examples-law")


@pytest.mark.parametrize("form", FORMS)
def test_each_example_fits_its_schema_belongs_together_and_says_its_name(
    form: str, live: Live, limited: Live
) -> None:
    broken = list[str]()
    count = 0
    for contract, is_api in served(form, live, limited):
        checked = formats(is_document, is_document)
        compiled = Schemas(contract.raw, checked)
        broken += map(str, unfit_examples(contract, checked))
        for operation in contract.operations.values():
            broken += unfit(contract, compiled, operation)
            broken += unpaired(contract, operation)
            broken += [*apart(contract, operation), *untrue(contract, operation)] if is_api else []
            count += len(answers(contract, operation))
        for name in contract.events:
            broken += misnamed_event(contract, name)
    assert not broken, "\n".join(broken)
    assert count > 40


# -- examples


def named(contract: Document, node: Any) -> dict[str, Any]:
    """The values of examples by name."""
    shown = {name: contract.resolve(example) for name, example in node.get("examples", {}).items()}
    return {name: example["value"] for name, example in shown.items() if "value" in example}


def requests(contract: Document, operation: Operation) -> dict[str, Any]:
    """The bodies of an operation's requests, by name."""
    content = (contract.resolve(operation.raw.get("requestBody")) or {}).get("content", {})
    return {
        name: value for media in content.values() for name, value in named(contract, media).items()
    }


def answers(contract: Document, operation: Operation) -> dict[str, Any]:
    """Those of its successes."""
    found = dict[str, Any]()
    for status in operation.successes:
        for media in (
            contract.resolve(operation.raw["responses"][str(status)]).get("content", {}).values()
        ):
            found |= named(contract, media)
    return found


def unfit(contract: Document, schemas: Schemas, operation: Operation) -> Iterator[str]:
    """Examples of parameters that do not fit."""
    for raw in map(contract.resolve, operation.raw.get("parameters", ())):
        values = named(contract, raw) | ({"example": raw["example"]} if "example" in raw else {})
        for name, value in values.items():
            error = schemas.compile(raw["schema"], request=False).first_error(value)
            if error is not None:
                yield f"{operation.id} {raw['name']} {name}: {error.message[:300]}"


def unpaired(contract: Document, operation: Operation) -> Iterator[str]:
    """Answers without a request of their name."""
    sent = requests(contract, operation)
    if sent:
        unpaired = answers(contract, operation).keys() - sent.keys()
        yield from (f"{operation.id}: no request is named {name}" for name in unpaired)


def apart(contract: Document, operation: Operation) -> Iterator[str]:
    """Members in which a request and the answer of its name differ."""
    sent = requests(contract, operation)
    shown = answers(contract, operation)
    for name in sent.keys() & shown.keys():
        for record in records(shown[name]):
            for member in echoed(sent[name], record):
                yield (
                    f"{operation.id} {name}: {member} is sent as {sent[name][member]}, answered as"
                    f" {record[member]}"
                )
            break


def echoed(sent: Any, record: Any) -> Iterator[str]:
    """Members that an answer should repeat and does not.

    What the server writes in its own way is left out.
    """
    for member in sent if isinstance(sent, dict) else ():
        value = sent[member]
        is_plain = isinstance(value, bool | int | float | str) and not re.search(
            r"document|email|_at$|phone", member
        )
        if is_plain and member in record and record[member] != value:
            yield member


def records(value: Any) -> Iterator[Any]:
    """The records in an answer, the outermost first."""
    if isinstance(value, dict) and "id" in value:
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from records(item)


def untrue(contract: Document, operation: Operation) -> Iterator[str]:
    """Answers that are not what they are named for."""
    for name, value in answers(contract, operation).items():
        place, member, expected = SAID.get(name, ("", "", None))
        record = value
        for step in filter(None, place.split(".")):
            record = record.get(step, {})
        if expected is not None and record.get(member) != expected:
            yield f"{operation.id} {name}: {member} is {record.get(member)}"
        if name.startswith("active"):
            states = {each["status"] for each in records(value)}
            yield from (f"{operation.id} {name}: one is {state}" for state in states - {"active"})


def misnamed_event(contract: Document, name: str) -> Iterator[str]:
    """The payload of `order.paid` has a paid order: an event that is named for a state shows it."""
    event = contract.events[name]
    if event["example"]["type"] != name:
        yield f"{name} shows {event['example']['type']}"
    lifecycle = contract.lifecycles.get(event["record"] or "")
    state = name.rpartition(".")[2]
    shown = event["example"]["data"][event["payload_key"]]
    is_shown = (
        lifecycle is not None
        and state in lifecycle.states
        and isinstance(shown[lifecycle.field], str)
    )
    if lifecycle is not None and is_shown and shown[lifecycle.field] != state:
        yield f"{name} shows a record that is {shown[lifecycle.field]}"
