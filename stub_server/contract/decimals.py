"""Bounds and steps of decimals, such as `multipleOf: 0.01`, checked in a fraction of the time jsonschema-rs takes.

jsonschema-rs compares with a bound that is not whole in exact fractions, a microsecond each; a request for an order has
four of them. This keyword only accepts or rejects; the error message comes from jsonschema-rs.
"""

from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING, Any

from .rewriting import rewritten
from .source import Json

if TYPE_CHECKING:
    from jsonschema_rs import KeywordValidator

KEYWORD = "decimal"
_MOVED = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
_EXACT = 10**15  # below this a number of steps has fifteen digits, and floats of any two such decimals differ
_FINEST = 1e-6


def quicken(node: Json) -> Json:
    """A translated schema with the bounds of decimals moved to KEYWORD; the same object if it has none."""
    return rewritten(node, _move)


def _move(node: dict[str, Any]) -> bool:
    if not any(isinstance(node.get(key), float) for key in _MOVED) or not _has_step(node.get("multipleOf")):
        return False
    node[KEYWORD] = {key: node.pop(key) for key in _MOVED if key in node}
    return True


def _has_step(step: float | None) -> bool:
    """Whether 1 is a whole number of steps, as with 0.01, so that a value can be counted in steps."""
    return step is None or (step >= _FINEST and Decimal(1) % Decimal(repr(step)) == 0)


class DecimalKeyword:
    """The keyword's class for jsonschema-rs: one instance for a place in a schema, called for every value there."""

    def __init__(self, _parent: Any, value: dict[str, Any], _path: Any) -> None:
        low, high, step = value.get("minimum"), value.get("maximum"), value.get("multipleOf")
        self._low, self._high = -inf if low is None else low, inf if high is None else high
        # The bounds that are exclusive.
        self._shut = {
            bound
            for bound, name in ((self._low, "exclusiveMinimum"), (self._high, "exclusiveMaximum"))
            if value.get(name)
        }
        self._step = step
        self._per_one = None if step is None else int(1 / Decimal(repr(step)))

    def validate(self, value: Any) -> None:
        """Raises ValueError for a number out of bounds or between two steps. Other types pass."""
        kind = type(value)
        if kind is not float and kind is not int:
            return
        if not self._low <= value <= self._high or (self._shut and value in self._shut):
            raise ValueError("out of bounds")
        per_one = self._per_one
        if kind is int or per_one is None:  # a whole number is a multiple of every step that divides one
            return
        steps = value * per_one
        if -_EXACT < steps < _EXACT:
            if round(steps) / per_one != value:
                raise ValueError("between two steps")
        elif value % 1 != 0 and Decimal(repr(value)) % Decimal(repr(self._step)) != 0:
            raise ValueError("between two steps")


KEYWORDS: dict[str, "type[KeywordValidator]"] = {KEYWORD: DecimalKeyword}
