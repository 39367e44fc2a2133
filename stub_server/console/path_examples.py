"""Path parameters of the served contract: each has an example for each example of its operation."""

from typing import Any

from ..contract.source import METHODS, Json


def with_path_examples(document: dict[str, Json]) -> dict[str, Json]:
    """The document with path parameters that have an example for each example of the request or the answer.

    Tools that send examples pair those of one name. The parameter's file holds one `example`, whatever the operation,
    so shared parameters are written out.
    """
    shared = document["components"].get("parameters", {})
    written_out = {name for name, parameter in shared.items() if _has_one_example(parameter)}
    if not written_out:
        return document
    paths = {
        path: {key: _with_examples(value, shared) if key in METHODS else value for key, value in item.items()}
        for path, item in document["paths"].items()
    }
    others = {name: parameter for name, parameter in shared.items() if name not in written_out}
    return {**document, "paths": paths, "components": {**document["components"], "parameters": others}}


def _with_examples(operation: dict[str, Any], shared: dict[str, Json]) -> dict[str, Any]:
    if "parameters" not in operation:
        return operation
    answers = [answer for status, answer in operation["responses"].items() if str(status).startswith("2")]
    names = _examples(operation.get("requestBody", {})) or [name for answer in answers for name in _examples(answer)]
    parameters = []
    for parameter in operation["parameters"]:
        whole = shared.get(str(parameter.get("$ref", "")).rpartition("/")[2], parameter)
        if _has_one_example(whole):
            parameter = whole
            if names:
                parameter = {key: value for key, value in whole.items() if key != "example"}
                parameter["examples"] = {name: {"value": whole["example"]} for name in names}
        parameters.append(parameter)
    return {**operation, "parameters": parameters}


def _has_one_example(parameter: dict[str, Json]) -> bool:
    return parameter.get("in") == "path" and "example" in parameter


def _examples(message: dict[str, Json]) -> list[str]:
    return [name for media in message.get("content", {}).values() for name in media.get("examples", {})]
