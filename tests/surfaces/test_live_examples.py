"""The examples of the served contract, ids in paths included, can be sent as they stand."""

from collections.abc import Iterator
from typing import Any

import pytest

from stub_server.contract.document import Operation

from ..support.contract import document
from ..support.examples import bodies, raw, requests
from ..support.live import Live
from ..support.wire import Door, Header
from .conftest import door_to

OPERATIONS = tuple(document().operations.values())
STRANGER: list[Header] = [("Origin", "https://elsewhere.example")]


@pytest.fixture
def fresh(live: Live) -> Iterator[Door]:
    """A world of its own."""
    yield door_to(live, "live-examples")
    live.app.sandboxes.forget("live-examples")


def test_each_can_be_sent_one_after_the_other(fresh: Door) -> None:
    """In the order of the document, as tools send them: none is refused for what
    another one did.
    """
    contract = fresh.ask("GET", "/openapi.json").json()
    answers = [
        (operation.id, path, fresh.ask(operation.method, path, body))
        for operation in OPERATIONS
        for path, body in requests(contract, operation)
    ]
    assert [] == [
        (name, path, answer.body) for name, path, answer in answers if answer.status >= 300
    ]
    assert len(answers) > len(OPERATIONS)


def shown(contract: Any, operation: Operation) -> Iterator[tuple[str, Any]]:
    """The examples of an operation's answers of success, by name."""
    for status, answer in raw(contract, operation)["responses"].items():
        if status.startswith("2"):
            yield from bodies(contract, answer).items()


def test_strangers_are_shown_the_messages_of_the_server_too(live: Live) -> None:
    """Their examples are fixed, and are all there: a sandbox may have no record for
    some of them.
    """
    door = door_to(live, "surfaces")
    own, fixed = (
        door.ask("GET", "/openapi.json", headers=headers).json() for headers in ([], STRANGER)
    )
    told = [
        [
            (operation.id, name, example["value"].get("message"))
            for operation in OPERATIONS
            for name, example in shown(contract, operation)
        ]
        for contract in (own, fixed)
    ]
    assert set(told[0]) <= set(told[1])
