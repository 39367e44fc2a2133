"""Gives the id in an operation's path an example of the same name as each example of its request or its answer.

Tools that send examples pair those of one name. The parameter's file holds one `example`, whatever the operation.
"""

from typing import Any

from .bundle import METHODS
from .source import Json

Operation = dict[str, Any]


def with_path_examples(document: dict[str, Json]) -> dict[str, Json]:
    """The document with named examples in place of the one of each path parameter, shared parameters written out."""
    shared = document.get("components", {}).get("parameters", {})
    paths = {
        path: {key: _named(value, shared) if key in METHODS else value for key, value in item.items()}
        for path, item in document["paths"].items()
    }
    written_out = {name for name, parameter in shared.items() if _takes_names(parameter)}
    left = {name: parameter for name, parameter in shared.items() if name not in written_out}
    if not written_out:
        return document
    return {**document, "paths": paths, "components": {**document["components"], "parameters": left}}


def _named(operation: Operation, shared: dict[str, Json]) -> Operation:
    if "parameters" not in operation:
        return operation
    names, parameters = _names(operation), []
    for parameter in operation["parameters"]:
        whole = shared.get(str(parameter.get("$ref", "")).rpartition("/")[2], parameter)
        if not _takes_names(whole):
            parameters.append(parameter)
        elif not names:
            parameters.append(whole)
        else:
            others = {key: value for key, value in whole.items() if key != "example"}
            parameters.append(others | {"examples": {name: {"value": whole["example"]} for name in names}})
    return {**operation, "parameters": parameters}


def _takes_names(parameter: dict[str, Json]) -> bool:
    return parameter.get("in") == "path" and "example" in parameter


def _names(operation: Operation) -> list[str]:
    """The names of the examples of what an operation is sent, or else of what it answers when it succeeds."""
    answers = [answer for status, answer in operation["responses"].items() if str(status).startswith("2")]
    return _examples(operation.get("requestBody", {})) or [name for answer in answers for name in _examples(answer)]


def _examples(message: dict[str, Json]) -> list[str]:
    return [name for media in message.get("content", {}).values() for name in media.get("examples", {})]
