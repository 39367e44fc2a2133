"""Writes into a contract what its files say once: the headers of answers, and the codes and bodies
of refusals.
"""

from collections.abc import Iterator

from ..core.record import without
from .document import JSON, Document
from .source import JsonObject, operations_in

REQUEST_ID = "req_01JDM4Z7Q8N3V5X2K9T6B1C0FH"
"""The request that every example of a refusal answers."""


def complete_answers(document: JsonObject) -> None:
    """Write the headers of `x-headers` into each answer, and `ErrorCode` and the bodies of refusals
    of `x-refusals`.

    Both members of the document are removed, and `x-examples` of its answers.
    """
    headers, known = document.pop("x-headers", {}), document.pop("x-refusals", None)
    examples: JsonObject = {}
    for status, response in _answers(document):
        common = headers.get("default", {})
        if status < "300":
            common = common | headers.get("2XX", {})
        response["headers"] = common | response.get("headers", {})
        if known is not None:
            _write_refusals(response, known, examples)
    if known is not None:
        schema = document["components"]["schemas"]["ErrorCode"]
        schema["enum"], schema["x-rules"] = list(known["codes"]), {}
        for code, refusal in known["codes"].items():
            if "kind" in refusal:
                schema["x-rules"][code] = without(refusal, "summary", "message", "details")
        examples |= document["components"].get("examples", {})
        document["components"]["examples"] = dict(sorted(examples.items()))


def _write_refusals(response: JsonObject, known: JsonObject, examples: JsonObject) -> None:
    """Write an example of each code of an answer into it; those that answers share go
    to `examples`.
    """
    own, named = response.pop("x-examples", {}), {}
    for code in response.get("x-codes", ()):
        refusal = known["codes"].get(code, {})
        if code in own:
            named[code] = _example(code, refusal | own[code])
        elif "message" in refusal:
            component = code.title().replace("_", "")
            examples[component] = _example(code, refusal)
            named[code] = {"$ref": f"#/components/examples/{component}"}
    if named:
        response["content"] = {JSON: {"schema": known["schema"], "examples": named}}


def _answers(document: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Each answer of the server and of an operation that has a status, with it.

    One that several share comes once.
    """
    resolve, seen = Document(document).resolve, set[int]()
    answers = [*document.get("x-server-answers", {}).items()]
    for _, _, operation in operations_in(document):
        answers += operation["responses"].items()
    for status, node in answers:
        response = resolve(node)
        if status != "default" and id(response) not in seen:
            seen.add(id(response))
            yield status, response


def _example(code: str, refusal: JsonObject) -> JsonObject:
    value = {
        "error": True,
        "message": refusal["message"],
        "code": code,
        "status": refusal["status"],
    }
    value |= {"request_id": REQUEST_ID, "details": refusal.get("details", [])}
    return {"summary": refusal["summary"], "value": value}
