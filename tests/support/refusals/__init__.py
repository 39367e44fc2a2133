"""The one table of refusals: of each code how it comes about, with which status, and what to do
about it.

Statuses, examples, explanations, the ledger, the model and the page of the errors read it. The
kinds of codes stand in one module each; `row.py` says what a row has. Begin with `rules.py`.
"""

from ..contract import document
from ..make import Json
from .contract import CONTRACT
from .controls import CONTROLS
from .credentials import CREDENTIALS
from .row import Read, Row
from .rules import RULES
from .server import SERVER

__all__ = ["ANYWHERE", "CODES", "CREDENTIALS", "MODELLED", "TABLE", "Row", "foreseen", "rows_of"]

TABLE = CREDENTIALS + CONTRACT + RULES + CONTROLS + SERVER


def rows_of(code: str) -> list[Row]:
    """The rows of a code: one for each status that it comes with."""
    return [row for row in TABLE if row.code == code]


_FORESEEN = [(row, {one.id for one in row.operations}) for row in TABLE if row.when is not None]


def foreseen(read: Read, method: str, path: str, body: Json | None) -> frozenset[str]:
    """The codes with which a request is refused, of the rows that say when."""
    operation = document().routed(path)[0].get(method)
    return frozenset(
        row.code
        for row, operations in _FORESEEN
        if operation is not None
        and operation.id in operations
        and row.when is not None
        and row.when(read, body or {})
    )


ANYWHERE = frozenset(row.code for row in TABLE if row.is_anywhere)
"""Codes that any path may answer: `info` of the contract says so once, no operation repeats it."""

MODELLED = frozenset(row.code for row in TABLE if row.is_modelled)
"""Codes that the model of `tests/properties` foresees."""

CODES: list[str] = document().schema("ErrorCode")["enum"]
