"""Writes into a contract what its files say once: the headers of answers, and the codes and bodies of refusals."""

from collections.abc import Iterator
from typing import Any

from .document import JSON, Document
from .source import METHODS, Json

_OF_EXAMPLE = frozenset(("summary", "message", "details"))
REQUEST_ID = "req_01JDM4Z7Q8N3V5X2K9T6B1C0FH"
"""The request that every example of a refusal answers."""


def complete_answers(document: dict[str, Json]) -> None:
    """Add the headers of `x-headers` to each answer, and the codes of `x-refusals`, each with its body.

    Both members of the document are removed.
    """
    headers, known = document.pop("x-headers", {}), document.pop("x-refusals", {"codes": {}})
    refusals = known["codes"]
    _add_codes(document, refusals)
    examples = document["components"].setdefault("examples", {})
    for status, response in _answers(document):
        if status == "default":  # an inbox answers what was set
            continue
        common = headers.get("default", {}) | (headers.get("2XX", {}) if status < "300" else {})
        response["headers"] = common | response.get("headers", {})
        codes = [code for code in response.get("x-codes", ()) if "message" in refusals.get(code, {})]
        if codes:
            response["content"] = {JSON: {"schema": known["schema"], "examples": _examples(codes, response)}}
            examples |= {_component(code): _example(code, refusals[code]) for code in codes}
    document["components"]["examples"] = dict(sorted(examples.items()))


def _add_codes(document: dict[str, Json], refusals: dict[str, Json]) -> None:
    """Make `ErrorCode` of the refusals: the codes, and the rule of each that has one."""
    if not refusals:
        return
    schema = document["components"]["schemas"]["ErrorCode"]
    schema["enum"] = list(refusals)
    schema["x-rules"] = {
        code: {name: value for name, value in refusal.items() if name not in _OF_EXAMPLE}
        for code, refusal in refusals.items()
        if "kind" in refusal
    }


def _answers(document: dict[str, Json]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each answer of the server and of an operation, with its status."""
    resolve = Document(document).resolve
    for status, response in document.get("x-server-answers", {}).items():
        yield status, resolve(response)
    for item in document["paths"].values():
        for operation in [item[method] for method in METHODS if method in item]:
            for status, response in operation["responses"].items():
                yield status, resolve(response)


def _examples(codes: list[str], response: dict[str, Json]) -> dict[str, Json]:
    """An example of each code: the one of the response, or the one that all have."""
    own: dict[str, Json] = response.get("content", {}).get(JSON, {}).get("examples", {})
    named: dict[str, Json] = {code: {"$ref": f"#/components/examples/{_component(code)}"} for code in codes}
    return named | own


def _component(code: str) -> str:
    return code.title().replace("_", "")


def _example(code: str, refusal: dict[str, Json]) -> dict[str, Json]:
    value = {"error": True, "message": refusal["message"], "code": code, "status": refusal["status"]}
    value |= {"request_id": REQUEST_ID, "details": refusal.get("details", [])}
    return {"summary": refusal["summary"], "value": value}
