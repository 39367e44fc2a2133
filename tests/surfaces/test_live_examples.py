"""The examples of the served contract, ids in paths included, can be sent as they stand."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from stub_server.contract.document import Operation

from ..support.contract import document
from ..support.live import Live
from ..support.wire import Door, Header
from .conftest import door_to

OPERATIONS = tuple(document().operations.values())
WITH_ID = [operation for operation in OPERATIONS if "{" in operation.path]
STRANGER: list[Header] = [("Origin", "https://elsewhere.example")]
ENDING = [operation for operation in WITH_ID if operation.method == "DELETE" or operation.id == "archiveProject"]


def raw(contract: Any, operation: Operation) -> Any:
    """The operation in a served contract."""
    return contract["paths"][operation.path][operation.method.lower()]


def path_examples(contract: Any, operation: Operation) -> dict[str, dict[str, str]]:
    """By name of an example: the parameters in the path."""
    found: dict[str, dict[str, str]] = {}
    for parameter in raw(contract, operation).get("parameters", ()):
        if parameter.get("in") == "path":
            for name, example in parameter["examples"].items():
                found.setdefault(name, {})[parameter["name"]] = example["value"]
    return found


def path_ids(contract: Any, operation: Operation) -> set[str]:
    """The ids in the path of an operation's examples."""
    return {ident for example in path_examples(contract, operation).values() for ident in example.values()}


def bodies(contract: Any, message: Any) -> dict[str, Any]:
    """The examples of a request or an answer by name."""
    media = message.get("content", {}).get("application/json", {}).get("examples", {})
    components = contract["components"]["examples"]
    return {name: components[e["$ref"].rpartition("/")[2]] if "$ref" in e else e for name, e in media.items()}


def requests(contract: Any, operation: Operation) -> Iterator[tuple[str, bytes | None]]:
    """Path and body of each example of an operation."""
    shown, ids = bodies(contract, raw(contract, operation).get("requestBody", {})), path_examples(contract, operation)
    for name in shown or ids or [""]:
        path = operation.path
        for parameter, value in ids.get(name, {}).items():
            path = path.replace(f"{{{parameter}}}", value)
        yield path, json.dumps(shown[name]["value"]).encode() if name in shown else None


@pytest.fixture
def fresh(live: Live) -> Iterator[Door]:
    """A world of its own."""
    yield door_to(live, "live-examples")
    live.app.sandboxes.forget("live-examples")


def test_each_can_be_sent_one_after_the_other(fresh: Door) -> None:
    """In the order of the document, as tools send them: none is refused for what another one did."""
    contract = fresh.ask("GET", "/openapi.json").json()
    answers = [
        (operation.id, path, fresh.ask(operation.method, path, body))
        for operation in OPERATIONS
        for path, body in requests(contract, operation)
    ]
    assert [] == [(name, path, answer.body) for name, path, answer in answers if answer.status >= 300]
    assert len(answers) > len(OPERATIONS)


@pytest.mark.parametrize("operation", WITH_ID, ids=lambda operation: operation.id)
def test_an_id_in_a_path_has_an_example_for_each_of_the_request_or_the_answer(live: Live, operation: Operation) -> None:
    """Tools pair examples of one name."""
    contract = door_to(live, "surfaces").ask("GET", "/openapi.json").json()
    found = raw(contract, operation)
    names = bodies(contract, found.get("requestBody", {})) or bodies(contract, found["responses"]["200"])
    assert names
    assert list(names) == list(path_examples(contract, operation))


@pytest.mark.parametrize("operation", ENDING, ids=lambda operation: operation.id)
def test_what_ends_a_record_is_shown_another_than_what_reads_it(live: Live, operation: Operation) -> None:
    contract = door_to(live, "surfaces").ask("GET", "/openapi.json").json()
    (ended,) = path_ids(contract, operation)
    stem = operation.path.partition("}")[0]
    readers = [other for other in WITH_ID if other.method == "GET" and other.path.startswith(stem)]
    assert [] == [other.id for other in readers if ended in path_ids(contract, other)]


# -- whole, and true


def shown(contract: Any, operation: Operation) -> Iterator[tuple[str, Any]]:
    """The examples of an operation's answers of success, by name."""
    for status, answer in raw(contract, operation)["responses"].items():
        if status.startswith("2"):
            yield from bodies(contract, answer).items()


def records(value: Any) -> Iterator[Any]:
    """The records in an example, however deep."""
    if isinstance(value, dict) and "id" in value and {"createdAt", "created_at"} & value.keys():
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from records(item)


SINGLES = {
    "plan": "/v2/plans/{}", "project": "/v2/projects/{}", "customer": "/v2/customers/{}", "order": "/v2/orders/{}",
    "product": "/v2/products/{}", "webhook": "/v2/webhooks/{}", "log": "/v2/webhooks/logs/{}",
}  # fmt: skip
LISTS = {"subscription": "/v2/subscriptions?limit=100", "api_key": "/api-keys?limit=100"}


def stored(door: Door, ident: str) -> list[Any]:
    """The records of the sandbox with an id, as it shows them alone or in a list."""
    answers = [door.ask("GET", path.format(ident)) for path in SINGLES.values()]
    answers += [door.ask("GET", path) for path in LISTS.values()]
    return [
        found for answer in answers if answer.status == 200 for found in records(answer.json()) if found["id"] == ident
    ]


@pytest.fixture(params=["fresh", "used", "later"])
def state(request: pytest.FixtureRequest, fresh: Door) -> Door:
    """A sandbox as it began, after each example was sent, and months later."""
    if request.param != "fresh":
        contract = fresh.ask("GET", "/openapi.json").json()
        for operation in OPERATIONS:
            for path, body in requests(contract, operation):
                fresh.ask(operation.method, path, body)
    if request.param == "later":
        assert 200 == fresh.send("POST", "/_sandbox/clock/advance", {"days": 150}).status
    return fresh


@pytest.mark.check
def test_every_record_that_an_example_reads_is_one_of_the_sandbox_whole(state: Door) -> None:
    """Id and content, in answers of what reads and in payloads of events; only what is secret is not the record's."""
    contract = state.ask("GET", "/openapi.json").json()
    reading = [operation for operation in OPERATIONS if operation.method == "GET"]
    examples = [example["value"] for operation in reading for _, example in shown(contract, operation)]
    examples += [
        event["post"]["requestBody"]["content"]["application/json"]["example"]
        for name, event in contract["x-webhooks"].items()
        if has_any(state, name)
    ]
    examples += [example["value"] for example in contract["components"]["examples"].values()]
    seen = 0
    # The merchant, who has a public key and no scopes, has no list.
    every = (found for example in examples for found in records(example))
    for found in (found for found in every if "scopes" in found or "public_key" not in found):
        same = stored(state, found["id"])
        of_the_record = found.keys() - {"private_key", "signing_key", "usage_count", "last_used_at"}
        differing = [[key for key in of_the_record if one.get(key) != found[key]] for one in same]
        assert [] in differing, (found, differing)
        seen += 1
    assert seen > 40


def has_any(door: Door, event: str) -> bool:
    """Whether the sandbox has a record in the state that an event is named for; true for one that is named otherwise.

    The payload is the contract's where it has none.
    """
    resource, _, state = event.partition(".")
    answer = door.ask("GET", f"/v2/{resource}s?status={state}")
    if answer.status != 200:
        return True
    body = answer.json()
    return bool((body if "pagination" in body else body["data"])["pagination"]["total"])


def test_what_an_example_reads_is_what_the_sandbox_answers(state: Door) -> None:
    """To the parameters of the same name."""
    contract = state.ask("GET", "/openapi.json").json()
    for operation in (operation for operation in OPERATIONS if operation.method == "GET"):
        ids = path_examples(contract, operation)
        for name, example in shown(contract, operation):
            path = operation.path
            for parameter, value in ids.get(name, {}).items():
                path = path.replace(f"{{{parameter}}}", value)
            answer = state.ask("GET", f"{path}?{urlencode(query(contract, operation, name))}").json()
            assert example["value"] == answer, operation.id


def query(contract: Any, operation: Operation, name: str) -> dict[str, Any]:
    """The query of an example."""
    given = (each for each in raw(contract, operation).get("parameters", ()) if each.get("in") == "query")
    return {each["name"]: each["examples"][name]["value"] for each in given if name in each.get("examples", {})}


def test_each_request_sent_alone_is_answered_as_the_example_of_its_name_shows(state: Door) -> None:
    contract = state.ask("GET", "/openapi.json").json()
    wrong, count = [], 0
    for operation in OPERATIONS:
        answers = {name: example["value"] for name, example in shown(contract, operation)}
        if operation.id == "getMerchantByPublicKey":  # a fork has another public key
            continue
        names = list(bodies(contract, raw(contract, operation).get("requestBody", {})) or answers)
        for (path, body), name in zip(requests(contract, operation), names, strict=True):
            control = state.send("POST", "/_sandbox/sandboxes/live-examples/fork", {"name": "alone"})
            assert 201 == control.status, control.body
            alone = Door(state.port, "/s/alone", control.json()["sandbox"]["credentials"]["jwt"])
            asked = urlencode(query(contract, operation, name))
            answer = alone.ask(operation.method, f"{path}?{asked}" if asked else path, body)
            if answer.status >= 300 or steady(answer.json()) != steady(answers[name]):
                wrong.append((operation.id, name, answer.status, differences(answer.json(), answers[name])))
            assert 204 == state.ask("DELETE", "/_sandbox/sandboxes/alone").status
            count += 1
    assert [] == wrong
    assert count > len(OPERATIONS)


def steady(value: Any) -> Any:
    """The same in another sandbox and a moment later: ids, instants, codes and keys have digits."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if "key" not in key}
    if isinstance(value, list):
        return [steady(item) for item in value]
    return "…" if isinstance(value, str) and re.search(r"\d", value) else value


def test_strangers_are_shown_the_messages_of_the_server_too(live: Live) -> None:
    """Their examples are fixed, and are all there: a sandbox may have no record for some of them."""
    door = door_to(live, "surfaces")
    own, fixed = (door.ask("GET", "/openapi.json", headers=headers).json() for headers in ([], STRANGER))
    told = [
        [
            (operation.id, name, example["value"].get("message"))
            for operation in OPERATIONS
            for name, example in shown(contract, operation)
        ]
        for contract in (own, fixed)
    ]
    assert set(told[0]) <= set(told[1])


def differences(one: Any, other: Any, place: str = "$") -> list[str]:
    """Where two answers differ in more than what `steady` leaves out."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        return [found for name in names for found in differences(one.get(name), other.get(name), f"{place}.{name}")]
    return [] if steady(one) == steady(other) else [f"{place}: {one!r} and {other!r}"[:300]]
