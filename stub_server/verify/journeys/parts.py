"""What several journeys are made with."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ...contract.document import Operation
from ..places import pointer_of

NOWHERE_ID = "{the unknown id}"
SAYS_YES, SAYS_NO = "says_yes", "says_no"


def parameter_at(operation: Operation, name: str) -> str:
    for number, parameter in enumerate(operation.parameters):
        if parameter.name.lower() == name:
            return pointer_of(operation, "parameters", number)
    return pointer_of(operation)


def keys_of(body: Any) -> set[str]:
    return set(body) if isinstance(body, dict) else set()


def replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: replaced(inner, old, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [replaced(inner, old, new) for inner in value]
    return new if value == old else value


def nowhere(text: str) -> str:
    """An id that nothing has, drawn from a text."""
    return str(UUID(bytes=text.encode().ljust(16, b"v")[:16], version=4))
