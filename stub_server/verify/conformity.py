"""Holds one exchange to the contract: its status, headers and body, whatever it is about."""

from __future__ import annotations

from ..contract.document import Document, Operation
from .exchange import Exchange
from .findings import Finding


class Conformity:
    """One per contract."""

    def __init__(self, document: Document) -> None:
        """Compile nothing yet: schemas are compiled when an answer needs them."""

    def operation_of(self, method: str, path: str) -> Operation | None:
        """The operation of a request by its path below the base address, without query."""
        raise NotImplementedError

    def findings(self, exchange: Exchange, operation: Operation | None, group: str) -> list[Finding]:
        """In what the answer departs from the contract, at most one of each kind, in the order of `CLASSES`."""
        raise NotImplementedError
