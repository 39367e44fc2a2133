"""Members of a JSON object that may be left out.

Imports nothing, so that the test kit can have it without the server.
"""

from typing import Any


def given(**members: Any) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value is not None}
