"""The evidence ledger: which documented answers and events tests reached, and what was seen but
never documented.
"""

import json
import re
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from stub_server.contract.document import Operation

from .contract import document, served
from .refusals import ANYWHERE

CONTROL = "/_sandbox"
ORDERS = ("createOrder", "createPixOrder")


class Fact(NamedTuple):
    """Something an operation promises:

    `kind` is status, code or event, `value` 409, duplicate_name, order.paid.
    """

    operation: str
    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.operation} {self.value}"


class Answer(NamedTuple):
    """What a client was told. `path` as sent, without the query; `code` of a refusal."""

    method: str
    path: str
    status: int
    code: str | None
    simulated: bool


def operation_at(method: str, path: str) -> Operation | None:
    """The operation that a request means, by the contracts' paths alone."""
    below = re.sub("^/s/[^/]*", "", path)
    is_control = below.startswith(CONTROL)
    contract = document("sandbox.yaml" if is_control else "openapi.yaml")
    operations, _ = contract.routed(below.removeprefix(CONTROL))
    return operations.get(method)


def operation_named(ident: str) -> Operation | None:
    """The operation of this operationId, in the API's contract or the control surface's."""
    found = document().operations.get(ident)
    return found or document("sandbox.yaml").operations.get(ident)


@cache
def serves_the_contract(origin: str, module: str) -> bool:
    """Whether a server serves the contract unchanged: one with an overlay promises other things.

    Asked once per server and test module, because a port may serve another contract later.
    """
    try:
        # a test's own server
        with urllib.request.urlopen(f"{origin}/openapi.json", timeout=30) as response:  # noqa: S310 - the test's own server
            paths = json.load(response).get("paths")
    except (OSError, ValueError):
        return False
    return _without_examples(paths) == _promised_paths()


@cache
def _promised_paths() -> object:
    return _without_examples(served()["paths"])


def _without_examples(node: object) -> object:
    """The same without examples: a server shows records of its own world in them."""
    if isinstance(node, dict):
        return {
            name: _without_examples(member)
            for name, member in node.items()
            if name not in ("example", "examples")
        }
    return [_without_examples(member) for member in node] if isinstance(node, list) else node


def promised(operation: Operation) -> list[Fact]:
    """Everything that an operation promises, in the contract's order."""
    facts = []
    for status, response in operation.responses.items():
        facts.append(Fact(operation.id, "status", str(status)))
        facts += [Fact(operation.id, "code", f"{status} {code}") for code in response.codes]
    return facts + [Fact(operation.id, "event", type_) for type_ in operation.emits]


@dataclass(slots=True)
class Ledger:
    """What was reached, by the first test that did, and what should never have been seen."""

    test: str = ""
    reached: dict[Fact, str] = field(default_factory=dict)
    undocumented: list[str] = field(default_factory=list)

    def answered(self, origin: str, answer: Answer) -> None:
        """Note an answer that a client received."""
        operation = operation_at(answer.method, answer.path)
        if operation is None or answer.code in ANYWHERE:
            return
        # An injected fault is no evidence; a magic e-mail is: its order really is in that state.
        if answer.simulated and not (operation.id in ORDERS and answer.status == 201):
            return
        if not serves_the_contract(origin, self.test.partition("::")[0]):
            return
        response = operation.responses.get(answer.status)
        if response is None and operation.id == "postToInbox":  # the test chose this status
            return
        if response is None or (answer.code is not None and answer.code not in response.codes):
            self.undocumented.append(
                f"{operation.id} answered {answer.status} {answer.code or ''}".rstrip()
            )
            return
        self._reach(Fact(operation.id, "status", str(answer.status)))
        if answer.code is not None:
            self._reach(Fact(operation.id, "code", f"{answer.status} {answer.code}"))

    def raised(self, operation: Operation, types: Iterable[str]) -> None:
        """Note the events that the log shows after a change by an operation."""
        for type_ in types:
            if operation.id == "triggerEvent":  # it raises whatever it is asked to
                continue
            if type_ not in operation.emits:
                self.undocumented.append(f"{operation.id} emitted {type_}")
            else:
                self._reach(Fact(operation.id, "event", type_))

    def _reach(self, fact: Fact) -> None:
        self.reached.setdefault(fact, self.test)

    def take_undocumented(self) -> list[str]:
        """What was seen and is documented nowhere since the last time somebody asked."""
        found = self.undocumented
        self.undocumented = []
        return found

    def gaps(self) -> list[Fact]:
        """Facts of the API that nothing reached."""
        facts = [
            fact for operation in document().operations.values() for fact in promised(operation)
        ]
        return [fact for fact in facts if fact not in self.reached]
