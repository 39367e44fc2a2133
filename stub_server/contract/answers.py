"""Writes into each answer of a contract what its files say once: headers, and the bodies of refusals."""

from collections.abc import Iterator
from typing import Any

from .document import JSON, Document
from .source import METHODS, Json

REQUEST_ID = "req_01JDM4Z7Q8N3V5X2K9T6B1C0FH"
"""The request that every example of a refusal answers."""


def complete_answers(document: dict[str, Json]) -> None:
    """Add the headers of `x-headers` to each answer, and a body to each refusal whose codes `x-refusals` describes.

    Both members of the document are removed.
    """
    headers, refusals = document.pop("x-headers", {}), document.pop("x-refusals", {})
    examples = document["components"].setdefault("examples", {})
    for status, response in _answers(document):
        if status == "default":  # an inbox answers what was set
            continue
        common = headers.get("default", {}) | (headers.get("2XX", {}) if status < "300" else {})
        response["headers"] = common | response.get("headers", {})
        codes = [code for code in response.get("x-codes", ()) if code in refusals]
        if codes:
            response["content"] = _body(codes, response.get("content", {}))
            examples |= {_component(code): _example(code, refusals[code]) for code in codes}
    document["components"]["examples"] = dict(sorted(examples.items()))


def _answers(document: dict[str, Json]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each answer of an operation, with its status."""
    resolve = Document(document).resolve
    for item in document["paths"].values():
        for operation in [item[method] for method in METHODS if method in item]:
            for status, response in operation["responses"].items():
                yield status, resolve(response)


def _body(codes: list[str], own: dict[str, Json]) -> dict[str, Json]:
    """The content of a refusal: an example of each code, unless the response has one of its own."""
    named = {code: {"$ref": f"#/components/examples/{_component(code)}"} for code in codes}
    named |= own.get(JSON, {}).get("examples", {})
    return {JSON: {"schema": {"$ref": "#/components/schemas/Error"}, "examples": named}}


def _component(code: str) -> str:
    return code.title().replace("_", "")


def _example(code: str, refusal: dict[str, Json]) -> dict[str, Json]:
    value = {"error": True, "message": refusal["message"], "code": code, "status": refusal["status"]}
    value |= {"request_id": REQUEST_ID, "details": refusal.get("details", [])}
    return {"summary": refusal["summary"], "value": value}
