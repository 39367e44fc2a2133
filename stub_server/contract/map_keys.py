"""Keys of maps with free keys, such as metadata: the bounds that OpenAPI 3.0 has no keyword for."""

from .source import Json

LONGEST = 64  # characters
_NAME = f"^[^\\u0000]{{1,{LONGEST}}}$"


def with_names(node: Json) -> Json:
    """A translated schema whose maps from free keys to strings refuse keys that are empty, too long or have NUL.

    The same object if it has no such map. A validator of it tells only that something is wrong.
    """
    if isinstance(node, list):
        named = [with_names(value) for value in node]
        return named if any(a is not b for a, b in zip(named, node, strict=True)) else node
    if not isinstance(node, dict):
        return node
    result = {key: value if key == "enum" else with_names(value) for key, value in node.items()}
    rest = node.get("additionalProperties")
    if isinstance(rest, dict) and rest.get("type") == "string":
        result["patternProperties"] = {_NAME: result["additionalProperties"]}
        result["additionalProperties"] = False
    elif all(result[key] is value for key, value in node.items()):
        return node
    return result
