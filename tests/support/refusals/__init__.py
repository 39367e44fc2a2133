"""The one table of refusals: of each code how it comes about, with which status, and what to do
about it.

Statuses, examples, explanations, the ledger, the model and the page of the errors read it. The
kinds of codes stand in one module each; `row.py` says what a row has. Begin with `rules.py`.
"""

from ..contract import document
from .contract import CONTRACT
from .controls import CONTROLS
from .credentials import CREDENTIALS
from .row import Row
from .rules import RULES
from .server import SERVER

__all__ = ["ANYWHERE", "CODES", "CREDENTIALS", "MODELLED", "TABLE", "Row", "rows_of"]

TABLE = CREDENTIALS + CONTRACT + RULES + CONTROLS + SERVER


def rows_of(code: str) -> list[Row]:
    """The rows of a code: one for each status that it comes with."""
    return [row for row in TABLE if row.code == code]


ANYWHERE = frozenset(row.code for row in TABLE if row.is_anywhere)
"""Codes that any path may answer: `info` of the contract says so once, no operation repeats it."""

MODELLED = frozenset(row.code for row in TABLE if row.is_modelled)
"""Codes that the model of `tests/properties` foresees."""

CODES: list[str] = document().schema("ErrorCode")["enum"]
