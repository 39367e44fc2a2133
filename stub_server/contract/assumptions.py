"""The report of assumptions: behaviour that the source document does not state, read from the contract."""

from collections.abc import Iterator

from ..kernel.record import Body
from . import wording
from .document import Document

LIMITATIONS = (
    ("one-server", "State lives in the memory of one process and is gone when it stops."),
    ("no-cards", "Card data is never accepted: a first order by card is decided by hand, its renewals are charged."),
    (
        "no-production-oracle",
        "No public client of the real service was found: fidelity to the contract is tested, "
        "fidelity to production cannot be.",
    ),
)


def assumptions_of(document: Document) -> Body:
    """The report of `/_sandbox/assumptions`."""
    using: dict[str, list[str]] = {}
    for operation in document.operations.values():
        for name in wording.schemas_of(operation, document):
            using.setdefault(name, []).append(operation.id)
    found = [*_operations(document), *_properties(document, using), *_contradictions(document), *_limitations()]
    documented = sum(o.is_documented for o in document.operations.values())
    return {"total": len(found), "documented_operations": documented, "assumptions": found}


def _operations(document: Document) -> Iterator[Body]:
    for operation in document.operations.values():
        for part, basis in operation.basis.items():
            if basis == "assumed":
                text = {
                    "method": f"The method is {operation.method}.",
                    "path": f"The path is {operation.path}.",
                    "request": f"It takes {wording.request(operation, document)}.",
                    "response": f"It answers {wording.response(operation, document)}.",
                }[part]
                yield _entry("operation", f"{operation.id}.{part}", operation.id, "assumed", text, [operation.id])


def _properties(document: Document, using: dict[str, list[str]]) -> Iterator[Body]:
    for name, schema in document.raw["components"]["schemas"].items():
        for entry in _schema(name, schema, document):
            yield entry | {"operations": using.get(name, [])}


def _schema(name: str, schema: Body, document: Document) -> Iterator[Body]:
    notes = schema.get("x-basis-notes", {})
    properties = schema.get("properties", {})
    for member, basis in schema.get("x-basis", {}).items():
        if basis == "assumed" or member in notes:
            decided = wording.decided(properties.get(member, {}), member in schema.get("required", ()), document)
            text = " ".join(part for part in (decided, notes.get(member)) if part)
            yield _entry("property", f"{name}.{member}", name, basis, text, [])
    for member, inner in properties.items():
        items = inner.get("items", {}) if isinstance(inner, dict) else {}
        for part in (inner, items):
            if isinstance(part, dict) and "x-basis" in part:
                yield from _schema(f"{name}.{member}", part, document)


def _contradictions(document: Document) -> Iterator[Body]:
    for entry in document.raw.get("x-contradictions", ()):
        text = f"{entry['contradiction']} {entry['reading']}"
        bites = [name for name in entry["bites"] if name in document.operations]
        yield _entry("contradiction", entry["id"], ", ".join(entry["bites"]), "documented", text, bites)


def _limitations() -> Iterator[Body]:
    for ident, text in LIMITATIONS:
        yield _entry("limitation", ident, "server", "assumed", text, [])


def _entry(kind: str, ident: str, subject: str, basis: str, text: str, operations: list[str]) -> Body:
    return {"kind": kind, "id": ident, "subject": subject, "operations": operations, "basis": basis, "text": text}
