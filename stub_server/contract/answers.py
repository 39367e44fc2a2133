"""Writes into a contract what its files say once: the headers of answers, and the codes and bodies
of refusals.
"""

from collections.abc import Iterable, Iterator

from .document import JSON, Document
from .source import JsonObject, operations_in

_OF_EXAMPLE = frozenset(("summary", "message", "details"))
REQUEST_ID = "req_01JDM4Z7Q8N3V5X2K9T6B1C0FH"
"""The request that every example of a refusal answers."""


def complete_answers(document: JsonObject) -> None:
    """Write the headers of `x-headers` into each answer, and `ErrorCode` and the bodies of refusals
    of `x-refusals`.

    Both members of the document are removed, and `x-examples` of its answers.
    """
    answers: dict[int, JsonObject] = {}  # one that several operations share comes once
    headers = document.pop("x-headers", {})
    for status, response in _answers(document):
        common = headers.get("default", {})
        if status < "300":
            common = common | headers.get("2XX", {})
        response["headers"] = common | response.get("headers", {})
        answers[id(response)] = response
    if "x-refusals" in document:
        _write_refusals(document, answers.values())


def _write_refusals(document: JsonObject, answers: Iterable[JsonObject]) -> None:
    """Write the codes of refusals, and an example of each code into the answers that have it."""
    known = document.pop("x-refusals")
    schema = document["components"]["schemas"]["ErrorCode"]
    schema["enum"], rules = list(known["codes"]), {}
    for code, refusal in known["codes"].items():
        if "kind" in refusal:
            rules[code] = {name: refusal[name] for name in refusal if name not in _OF_EXAMPLE}
    schema["x-rules"] = rules
    examples = document["components"].setdefault("examples", {})
    for response in answers:
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
    document["components"]["examples"] = dict(sorted(examples.items()))


def _answers(document: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Each answer of the server and of an operation that has a status, with it.

    One that several share comes for each.
    """
    resolve = Document(document).resolve
    for status, response in document.get("x-server-answers", {}).items():
        yield status, resolve(response)
    for _, _, operation in operations_in(document):
        for status, response in operation["responses"].items():
            if status != "default":
                yield status, resolve(response)


def _example(code: str, refusal: JsonObject) -> JsonObject:
    value = {
        "error": True,
        "message": refusal["message"],
        "code": code,
        "status": refusal["status"],
    }
    value |= {"request_id": REQUEST_ID, "details": refusal.get("details", [])}
    return {"summary": refusal["summary"], "value": value}
