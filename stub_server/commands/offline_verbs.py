"""The verbs that need no server: `init`, `check` and `assumptions`; exit codes 0 fine, 1 faults, 2 usage."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import Unusable, UserPath, json_option, of_overlays, printable, verb

if TYPE_CHECKING:
    from ..contract.document import Document
    from ..kernel.record import Body

_LABEL = 26
TOOLS: Mapping[str, Sequence[str]] = {
    "compose": ["compose"],
    "github-actions": ["github-actions"],
    "playwright": ["typescript", "playwright"],
    "pytest": ["pytest"],
    "schemathesis": ["schemathesis"],
    "vitest": ["typescript", "vitest"],
}
"""By tool the folders of `fixtures/init/` whose files are written."""


@click.command(short_help="Write files for a tool, such as pytest.")
@click.argument("tool", metavar="TOOL", type=click.Choice(sorted(TOOLS)))
@click.argument("folder", type=UserPath(file_okay=False), default=Path("."))
def init(tool: str, folder: Path) -> None:
    """Write first tests, settings or a workflow for TOOL to FOLDER.

    \b
    TOOL is one of compose, github-actions, playwright, pytest, schemathesis
    and vitest.

    The first lines of each file say how to use it. No file is overwritten. A file that already has the same content
    stays as it is.
    """
    from ..app import data_dir

    sources = [data_dir("fixtures") / "init" / name for name in TOOLS[tool]]
    files = {
        folder / file.relative_to(source): file.read_bytes()
        for source in sources
        for file in sorted(source.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }
    try:
        existing = [target for target in files if os.path.lexists(target)]
        same = [target for target in existing if not target.is_symlink() and target.read_bytes() == files[target]]
        if existing != same:
            names = ", ".join(str(target) for target in existing if target not in same)
            raise Unusable(f"{names} exists already. Remove it, or name another folder and copy from there.")
        for target in (target for target in files if target not in same):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:  # follows no link that somebody puts there meanwhile
                file.write(files[target])
            click.echo(target)
    except OSError as error:
        raise Unusable(f"{error.filename}: {error.strerror}.") from None


@verb(short_help="Check the contract against OpenAPI 3.0.")
@of_overlays
def check(overlays: tuple[Path, ...]) -> None:
    """Check the contract, with overlays, against OpenAPI 3.0 and count its parts.

    Exit code 1 for everything that stops the start. What only readers and clients meet is a warning, such as an event
    that nothing raises, a broken link, or an example that does not fit its schema.
    """
    from ..app import contracts, create_app
    from ..contract import checks
    from ..contract.formats import formats
    from ..contract.source import ContractError
    from ..data.files import ScenarioError
    from ..domain.documents import is_document_here, is_document_unchecked
    from ..settings import Settings

    try:
        loaded = document, control, shipped, named = contracts(overlays)
        if shipped is None:  # else that is done
            named.refuse(checks.faults(document, document))
        named.refuse(checks.faults(control, control))
        of_requests = formats(is_document_here, is_document_unchecked)
        for warning in (*checks.warnings(document, control), *checks.unfit_examples(document, of_requests)):
            click.echo(f"Warning: {printable(named.named(warning))}", err=True)
        if overlays:
            with suppress(ScenarioError):  # a fault of the data, not of the contract
                create_app(Settings(overlays=overlays), loaded)
    except ContractError as error:
        for fault in str(error).split("\n"):
            click.echo(f"Error: {printable(fault)}", err=True)
        sys.exit(1)
    counts = {
        "operations": len(document.operations),
        "schemas": len(document.raw["components"]["schemas"]),
        "events": len(document.events),
        "scopes": len(document.scopes),
        "lifecycles": len(document.lifecycles),
        "control operations": len(control.operations),
    }
    click.echo("The contract is valid OpenAPI 3.0: " + ", ".join(f"{n} {name}" for name, n in counts.items()) + ".")


@verb(short_help="List what the source document does not say.")
@of_overlays
@click.option("--all", "every_field", is_flag=True, help="List every field, not only their number.")
@json_option
def assumptions(overlays: tuple[Path, ...], every_field: bool, as_json: bool) -> None:
    """Print what the source document does not show and how it was decided, operation by operation."""
    import orjson

    from ..app import data_dir
    from ..contract import bundle
    from ..contract.assumptions import assumptions_of
    from ..contract.document import Document

    document = Document(bundle.contracts(data_dir("openapi"), overlays)[0])
    found = assumptions_of(document)
    if as_json:
        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
        return
    for line in _report_lines(found, document, every_field=every_field):
        click.echo(line)


def _report_lines(report: Body, document: Document, *, every_field: bool) -> Iterator[str]:
    """The report of `/_sandbox/assumptions` for people, operation by operation, a line for each entry.

    Without `every_field` fields are only counted.
    """
    entries: list[Body] = report["assumptions"]
    fields: dict[str, list[Body]] = {}  # by the named schema that has them, members of members with it
    for entry in entries:
        if entry["kind"] == "property":
            fields.setdefault(entry["id"].partition(".")[0], []).append(entry)
    total = len(document.operations)
    yield f"{report['total']} entries; {report['documented_operations']} of {total} operations are documented in full."
    if not every_field:
        yield "Of the fields only the number: --all shows each."
    yield "An overlay corrects what is wrong."
    for name, operation in document.operations.items():
        yield f"\n{name} ({operation.tag})"
        for entry in entries:
            if entry["kind"] == "operation" and entry["subject"] == name:
                yield _row(entry["id"].rpartition(".")[2], entry["text"])
        mine = {schema: rows for schema, rows in fields.items() if rows[0]["operations"][:1] == [name]}
        yield from _fields(mine, every_field=every_field)
    loose = {schema: rows for schema, rows in fields.items() if not rows[0]["operations"]}
    yield "\nRefusals, and what webhooks receive"
    yield from _fields(loose, every_field=every_field)
    for kind, title in (("contradiction", "Contradictions of the source document"), ("limitation", "Limits")):
        yield f"\n{title}"
        for entry in entries:
            if entry["kind"] == kind:
                yield _row(entry["id"], entry["text"])


def _fields(schemas: dict[str, list[Body]], *, every_field: bool) -> Iterator[str]:
    if not every_field:
        if schemas:
            yield _row("fields", ", ".join(f"{name} {len(rows)}" for name, rows in schemas.items()))
        return
    for name, rows in schemas.items():
        used = rows[0]["operations"][1:]
        yield f"  {name}, also of {', '.join(used)}" if used else f"  {name}"
        for entry in rows:
            yield _row("  " + entry["id"].partition(".")[2], entry["text"])


def _row(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}}{' '.join(text.split())}"
