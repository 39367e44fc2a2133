"""The examples of the served contract, ids in paths included, can be sent as they stand."""

import json
from collections.abc import Iterator
from typing import Any

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
def test_every_record_in_an_example_is_one_of_the_sandbox_whole(state: Door) -> None:
    """Id and content; only what is secret is not the record's."""
    contract = state.ask("GET", "/openapi.json").json()
    examples = [example["value"] for operation in OPERATIONS for _, example in shown(contract, operation)]
    examples += [
        event["post"]["requestBody"]["content"]["application/json"]["example"]
        for event in contract["x-webhooks"].values()
    ]
    examples += [example["value"] for example in contract["components"]["examples"].values()]
    seen = 0
    # The merchant, who has a public key and no scopes, has no list.
    every = (found for example in examples for found in records(example))
    for found in (found for found in every if "scopes" in found or "public_key" not in found):
        same = stored(state, found["id"])
        of_the_record = found.keys() - {"private_key", "signing_key", "usage_count", "last_used_at"}
        assert any(all(one.get(key) == found[key] for key in of_the_record) for one in same), (found, same)
        seen += 1
    assert seen > 60


def test_what_an_example_reads_is_what_the_sandbox_answers(state: Door) -> None:
    contract = state.ask("GET", "/openapi.json").json()
    for operation in (operation for operation in OPERATIONS if operation.method == "GET"):
        ids = path_examples(contract, operation)
        for name, example in shown(contract, operation):
            path = operation.path
            for parameter, value in ids.get(name, {}).items():
                path = path.replace(f"{{{parameter}}}", value)
            pagination = example["value"].get("pagination") or example["value"].get("data", {}).get("pagination")
            answers = [state.ask("GET", path + query) for query in queries(pagination)]
            assert example["value"] in [answer.json() for answer in answers], operation.id


def queries(pagination: Any) -> list[str]:
    """What may have been asked for."""
    if pagination is None:
        return [""]
    limit = f"?limit={pagination['limit']}"
    return [limit, *(f"{limit}&status={status}" for status in ("active", "delivered"))]


def test_each_request_succeeds_alone_with_the_message_that_is_shown(state: Door) -> None:
    contract = state.ask("GET", "/openapi.json").json()
    wrong, count = [], 0
    for operation in OPERATIONS:
        messages = {name: example["value"].get("message") for name, example in shown(contract, operation)}
        if operation.id == "getMerchantByPublicKey":  # a fork has another public key
            continue
        names = list(bodies(contract, raw(contract, operation).get("requestBody", {})) or messages)
        for (path, body), name in zip(requests(contract, operation), names, strict=True):
            control = state.send("POST", "/_sandbox/sandboxes/live-examples/fork", {"name": "alone"})
            assert 201 == control.status, control.body
            alone = Door(state.port, "/s/alone", control.json()["sandbox"]["credentials"]["jwt"])
            answer = alone.ask(operation.method, path, body)
            if answer.status >= 300 or answer.json().get("message") != messages[name]:
                wrong.append((operation.id, name, messages[name], answer.status, answer.body))
            assert 204 == state.ask("DELETE", "/_sandbox/sandboxes/alone").status
            count += 1
    assert [] == wrong
    assert count > len(OPERATIONS)


def test_strangers_are_shown_the_messages_of_the_server_too(live: Live) -> None:
    """Their examples are fixed."""
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
    assert told[0] == told[1]
