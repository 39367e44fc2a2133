"""Members of a JSON object that may be left out."""

from typing import Any


def given(**members: Any) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value is not None}
