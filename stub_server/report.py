"""What `stub-server assumptions` prints: the report of `/_sandbox/assumptions` for people, operation by operation."""

import textwrap
from collections.abc import Iterator

from .contract.document import Document
from .kernel.record import Body

NARROWEST, WIDEST = 60, 100
_LABEL = 26


def lines(report: Body, document: Document, width: int, *, every_field: bool) -> Iterator[str]:
    """The report in lines of at most `width`, held to 60 to 100; without `every_field` fields are only counted."""
    width = min(max(width, NARROWEST), WIDEST)
    entries: list[Body] = report["assumptions"]
    fields = _by_schema(entries)
    total = len(document.operations)
    head = f"{report['total']} entries; {report['documented_operations']} of {total} operations are documented in full."
    more = "" if every_field else " Of the fields only the number: --all shows each."
    yield from textwrap.wrap(f"{head}{more} An overlay corrects what is wrong.", width)
    for name, operation in document.operations.items():
        yield ""
        yield f"{name} ({operation.tag})"
        for entry in entries:
            if entry["kind"] == "operation" and entry["subject"] == name:
                yield from _row(entry["id"].rpartition(".")[2], entry["text"], width)
        mine = {schema: rows for schema, rows in fields.items() if rows[0]["operations"][:1] == [name]}
        yield from _fields(mine, width, every_field=every_field)
    loose = {schema: rows for schema, rows in fields.items() if not rows[0]["operations"]}
    if loose:
        yield from ("", "Refusals, and what webhooks receive")
        yield from _fields(loose, width, every_field=every_field)
    for kind, title in (("contradiction", "Contradictions of the source document"), ("limitation", "Limits")):
        yield from ("", title)
        for entry in entries:
            if entry["kind"] == kind:
                yield from _row(entry["id"], entry["text"], width)


def _by_schema(entries: list[Body]) -> dict[str, list[Body]]:
    """The entries about fields by the named schema that has them, members of members with it."""
    found: dict[str, list[Body]] = {}
    for entry in entries:
        if entry["kind"] == "property":
            found.setdefault(entry["id"].partition(".")[0], []).append(entry)
    return found


def _fields(schemas: dict[str, list[Body]], width: int, *, every_field: bool) -> Iterator[str]:
    if not every_field:
        if schemas:
            yield from _row("fields", ", ".join(f"{name} {len(rows)}" for name, rows in schemas.items()), width)
        return
    for name, rows in schemas.items():
        used = rows[0]["operations"][1:]
        yield from textwrap.wrap(
            f"{name}, also of {', '.join(used)}" if used else name, width, initial_indent="  ", subsequent_indent="    "
        )
        for entry in rows:
            yield from _row("  " + entry["id"].partition(".")[2], entry["text"], width)


def _row(label: str, text: str, width: int) -> Iterator[str]:
    """A label with its text beside it, or below it when the label is too long."""
    indent = " " * (_LABEL + 2)
    first = f"  {label:<{_LABEL - 1}} "
    if len(label) >= _LABEL:
        yield f"  {label}"
        first = indent
    # Names are not broken at hyphens, so that they can be searched for.
    yield from textwrap.wrap(text, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
