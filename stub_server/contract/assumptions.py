"""Everything the service does that the source document does not say, read from the contract."""

from collections.abc import Iterator

from ..contract.document import Document
from ..kernel.record import Body

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
    found = [*_operations(document), *_properties(document), *_contradictions(document), *_limitations()]
    documented = sum(o.is_documented for o in document.operations.values())
    return {"total": len(found), "documented_operations": documented, "assumptions": found}


def _operations(document: Document) -> Iterator[Body]:
    for operation in document.operations.values():
        for part, basis in operation.basis.items():
            if basis == "assumed":
                text = {
                    "method": f"The method {operation.method} is assumed.",
                    "path": f"The path {operation.path} is assumed.",
                    "request": "What the request holds is assumed.",
                    "response": "What the answer holds is assumed.",
                }[part]
                yield _entry("operation", f"{operation.id}.{part}", operation.id, "assumed", text)


def _properties(document: Document) -> Iterator[Body]:
    for name, schema in document.raw["components"]["schemas"].items():
        yield from _schema(name, schema)


def _schema(name: str, schema: Body) -> Iterator[Body]:
    notes = schema.get("x-basis-notes", {})
    for member, basis in schema.get("x-basis", {}).items():
        if basis == "assumed":
            yield _entry(
                "property", f"{name}.{member}", name, basis, notes.get(member, f"The field {member} is assumed.")
            )
        elif member in notes:
            yield _entry("property", f"{name}.{member}", name, basis, notes[member])
    for member, inner in schema.get("properties", {}).items():
        items = inner.get("items", {}) if isinstance(inner, dict) else {}
        for part in (inner, items):
            if isinstance(part, dict) and "x-basis" in part:
                yield from _schema(f"{name}.{member}", part)


def _contradictions(document: Document) -> Iterator[Body]:
    for entry in document.raw.get("x-contradictions", ()):
        text = f"{entry['contradiction']} {entry['reading']}"
        yield _entry("contradiction", entry["id"], ", ".join(entry["bites"]), "documented", text)


def _limitations() -> Iterator[Body]:
    for ident, text in LIMITATIONS:
        yield _entry("limitation", ident, "server", "assumed", text)


def _entry(kind: str, ident: str, subject: str, basis: str, text: str) -> Body:
    return {"kind": kind, "id": ident, "subject": subject, "basis": basis, "text": text}
