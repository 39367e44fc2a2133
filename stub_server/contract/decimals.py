"""Bounds and steps of decimals, such as `multipleOf: 0.01`, checked in a fraction of the time jsonschema-rs takes.

jsonschema-rs compares with a bound that is no whole number in exact fractions, a microsecond each; a request for an
order has four of them. Only yes or no is asked here: what is wrong with a number is jsonschema-rs's to say.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .source import Json

if TYPE_CHECKING:
    from jsonschema_rs import KeywordValidator

KEYWORD = "decimal"
_MOVED = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
_EXACT = 10**15  # a number of steps below this has fifteen digits, and a float tells any two such decimals apart
_FINEST = 1e-6


def quicken(node: Json) -> Json:
    """A translated schema with the bounds of decimals under KEYWORD; the same object where it has none."""
    if isinstance(node, list):
        quick = [quicken(value) for value in node]
        return quick if any(a is not b for a, b in zip(quick, node, strict=True)) else node
    if not isinstance(node, dict):
        return node
    result = {key: value if key == "enum" else quicken(value) for key, value in node.items()}
    if any(isinstance(node.get(key), float) for key in _MOVED) and _has_step(node.get("multipleOf")):
        result[KEYWORD] = {key: result.pop(key) for key in _MOVED if key in result}
    elif all(result[key] is value for key, value in node.items()):
        return node
    return result


def _has_step(step: float | None) -> bool:
    """Whether a step divides one evenly, as 0.01 does, so that a number can be counted in it."""
    return step is None or (step >= _FINEST and Decimal(1) % Decimal(repr(step)) == 0)


class DecimalKeyword:
    """The keyword, as jsonschema-rs wants one: made once for a place in a schema, asked for every value there."""

    def __init__(self, _parent: Any, value: dict[str, Any], _path: Any) -> None:
        self._low, self._over = value.get("minimum"), value.get("exclusiveMinimum", False)
        self._high, self._under = value.get("maximum"), value.get("exclusiveMaximum", False)
        self._step = value.get("multipleOf")
        self._per_one = None if self._step is None else int(1 / Decimal(repr(self._step)))

    def validate(self, value: Any) -> None:
        """Raises ValueError for a number out of bounds or between two steps; what is no number is not meant."""
        if type(value) is not float and type(value) is not int:
            return
        low, high, per_one = self._low, self._high, self._per_one
        if low is not None and (value < low or (self._over and value == low)):
            raise ValueError("too small")
        if high is not None and (value > high or (self._under and value == high)):
            raise ValueError("too large")
        if per_one is None or type(value) is int:  # a whole number is a multiple of every step that divides one
            return
        steps = value * per_one
        if -_EXACT < steps < _EXACT:
            fits = round(steps) / per_one == value
        else:
            fits = value % 1 == 0 or Decimal(repr(value)) % Decimal(repr(self._step)) == 0
        if not fits:
            raise ValueError("between two steps")


KEYWORDS: dict[str, "type[KeywordValidator]"] = {KEYWORD: DecimalKeyword}
