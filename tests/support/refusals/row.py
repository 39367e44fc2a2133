"""A row of the table of refusals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2

from stub_server.contract.document import Document, Operation

from ..contract import document
from ..estate import Estate
from ..make import Json
from ..requests import OPERATIONS, ask, body_of, path_of

Answer = httpx2.Response
Read = Callable[[str], Json]
"""What a path of the API shows."""
EVERY = "every"
_EXPLAINED: dict[str, Json] = document().schema("ErrorCode")["x-rules"]


@dataclass(frozen=True, slots=True)
class Row:
    """A code with one of its statuses."""

    code: str
    status: int
    provoke: Callable[[Estate, Operation], Answer] | None = None
    """Have an operation of the API refuse."""
    control: Callable[[Estate], Answer] | None = None
    """Have a control refuse."""
    at: str = ""
    """The operation that the contract's example is of, where not every operation's
    refusal is like it.
    """
    another: tuple[str, ...] | str = ()
    """Operations, or `EVERY`, that only another record or method would make succeed: the
    explanation says which.
    """
    is_anywhere: bool = False
    """Any path may answer it."""
    is_modelled: bool = False
    """The model of `tests/properties` foresees it."""
    when: Callable[[Read, Json], bool] | None = None
    """Whether a request with this body is refused, by what the API shows before it. The models ask
    this; what no row says, they know themselves.
    """

    @property
    def operations(self) -> list[Operation]:
        """The operations of the API whose contract has this code for this status."""
        return [
            operation
            for operation in OPERATIONS.values()
            if self.status in operation.responses
            and self.code in operation.responses[self.status].codes
        ]

    @property
    def examples(self) -> list[Json]:
        """What the contracts show of it."""
        contracts = document(), document("sandbox.yaml")
        return [
            example
            for each in contracts
            for one in each.operations.values()
            for example in self.shown(each, one)
        ]

    def shown(self, contract: Document, operation: Operation) -> list[Json]:
        """What the contract of an operation shows of it."""
        response = operation.raw["responses"].get(str(self.status))
        return [
            example for example in contract.examples(response) if example.get("code") == self.code
        ]

    @property
    def kind(self) -> str:
        """The kind of refusal that its explanation names."""
        if self.status == 401:
            return "auth"
        return str(_EXPLAINED[self.code]["kind"])

    @property
    def has_nearest(self) -> bool:
        """Whether an explanation looks for the nearest request that succeeds."""
        return bool(_EXPLAINED[self.code].get("has_nearest", True))


def create(shop: Estate, operation: Operation, **changes: Any) -> Answer:
    """Send the operation's request with changes to its body."""
    body = (body_of(operation, shop.ids) or {}) | changes
    return shop.api.request(operation.method, path_of(operation, shop.ids), json=body)


def send(method: str, path: str, **options: Any) -> Callable[[Estate, Operation], Answer]:
    """Send a request of no operation through the merchant's client."""
    return lambda shop, operation: shop.api.request(method, path, **options)


def having(**options: Any) -> Callable[[Estate, Operation], Answer]:
    """Send the operation's request with other headers or another body."""
    return lambda shop, operation: ask(shop.api, operation, shop.ids, **options)


def simulated(code: str) -> Callable[[Estate, Operation], Answer]:
    """Ask the sandbox to answer with a code."""
    return having(headers={"X-Sandbox-Simulate": code})
