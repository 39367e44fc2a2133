"""The refusal of a second record with the value of a unique key (`x-unique` of the contract)."""

import re
from typing import Any

from ..kernel.problem import Conflict, detail
from ..kernel.record import UniqueKey

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def duplicate(resource: str, key: UniqueKey, value: Any) -> Conflict:
    """409 for a resource, such as `Plan`, whose value of a key another one has."""
    assert key.code is not None  # only keys that requests can choose are refused
    within = "merchant" if key.scope is None or value[-1] is None else key.scope.removesuffix("Id")
    noun = _WORD.sub(" ", resource).lower()
    message = f"Another {noun} of this {within} has this {' and '.join(key.members)}."
    return Conflict(message, code=key.code, details=[detail(member, key.code, message) for member in key.members])
