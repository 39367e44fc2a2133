"""Keys of maps with free keys, such as metadata: the bounds that OpenAPI 3.0 has no keyword for."""

from typing import Any

from .rewriting import rewritten
from .source import Json

LONGEST = 64  # characters
_NAME = f"^[^\\u0000]{{1,{LONGEST}}}$"


def with_names(node: Json) -> Json:
    """A translated schema whose maps from free keys to strings refuse keys that are empty, too long or have NUL.

    The same object if it has no such map. A validator of it tells only that something is wrong.
    """
    return rewritten(node, _name)


def _name(node: dict[str, Any]) -> bool:
    rest = node.get("additionalProperties")
    if not isinstance(rest, dict) or rest.get("type") != "string":
        return False
    node["patternProperties"], node["additionalProperties"] = {_NAME: rest}, False
    return True
