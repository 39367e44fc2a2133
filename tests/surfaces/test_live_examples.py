"""The examples of the served contract, ids in paths included, can be sent as they stand."""

from collections.abc import Iterator
from typing import Any

import pytest

from stub_server.contract.document import Operation

from ..support.contract import document
from ..support.examples import bodies, path_examples, path_ids, raw, requests
from ..support.live import Live
from ..support.wire import Door, Header
from .conftest import door_to

OPERATIONS = tuple(document().operations.values())
WITH_ID = [operation for operation in OPERATIONS if "{" in operation.path]
STRANGER: list[Header] = [("Origin", "https://elsewhere.example")]
ENDING = [operation for operation in WITH_ID if operation.method == "DELETE" or operation.id == "archiveProject"]


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


def shown(contract: Any, operation: Operation) -> Iterator[tuple[str, Any]]:
    """The examples of an operation's answers of success, by name."""
    for status, answer in raw(contract, operation)["responses"].items():
        if status.startswith("2"):
            yield from bodies(contract, answer).items()


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
