"""The examples of a served contract as the requests that they show."""

import json
from collections.abc import Iterator
from typing import Any

from stub_server.contract.document import Operation


def raw(contract: Any, operation: Operation) -> Any:
    """The operation in a served contract."""
    return contract["paths"][operation.path][operation.method.lower()]


def path_examples(contract: Any, operation: Operation) -> dict[str, dict[str, str]]:
    """By name of an example: the parameters in the path."""
    found: dict[str, dict[str, str]] = {}
    for parameter in raw(contract, operation).get("parameters", ()):
        if parameter.get("in") == "path":
            for name, example in parameter["examples"].items():
                found.setdefault(name, {})[parameter["name"]] = example["value"]
    return found


def bodies(contract: Any, message: Any) -> dict[str, Any]:
    """The examples of a request or an answer by name."""
    media = message.get("content", {}).get("application/json", {}).get("examples", {})
    components = contract["components"]["examples"]
    return {
        name: components[e["$ref"].rpartition("/")[2]] if "$ref" in e else e
        for name, e in media.items()
    }


def requests(contract: Any, operation: Operation) -> Iterator[tuple[str, bytes | None]]:
    """Path and body of each example of an operation."""
    shown = bodies(contract, raw(contract, operation).get("requestBody", {}))
    ids = path_examples(contract, operation)
    for name in shown or ids or [""]:
        path = operation.path
        for parameter, value in ids.get(name, {}).items():
            path = path.replace(f"{{{parameter}}}", value)
        yield path, json.dumps(shown[name]["value"]).encode() if name in shown else None
