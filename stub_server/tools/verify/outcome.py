"""What the verbs `verify` and `proxy` need: checks of their options, reports, notes for the
terminal, and files.
"""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import orjson

from ...app import data_dir
from ...contract import bundle
from ...contract.document import Document, Operation, Response
from ...contract.source import read_text
from ...core.problem import UnusableInput
from .findings import CLASSES, Finding, Report, Unreached, contract_of, rows_of
from .forms import FORMS, overlay
from .har import read
from .judging import Run
from .merging import merged
from .observed import Observed
from .probes import costs
from .run import Options
from .target import PERSON
from .where import Where

_CONFORMS, _DIVERGES, _FAILED, _TOO_LITTLE = range(4)
_TOO_LARGE = "the contract does not say how large a body may be"
_BUSY = "only a busy or broken server answers this"
_OF_KEYS = frozenset(("ip_not_allowed",))
_ELSEWHERE = {
    413: _TOO_LARGE,
    408: _BUSY,
    429: _BUSY,
    500: _BUSY,
    502: _BUSY,
    503: _BUSY,
    504: _BUSY,
}


class Outcome(NamedTuple):
    """A report and notes for the terminal."""

    report: Report
    notes: list[str]


def contract_with(overlays: tuple[Path, ...]) -> Document:
    """The contract. Raises ContractError."""
    return Document(bundle.contracts(data_dir("openapi"), overlays)[0])


def check_names(options: Options, document: Document) -> None:
    """Check that everything in `only` and `skip` exists. Raises UnusableInput."""
    tags = {operation.tag: None for operation in document.operations.values()}
    for name in (*options.only, *options.skip):
        if name not in document.operations and name not in tags and name not in CLASSES:
            message = f"{name}: is not an operationId, a tag or a class."
            raise UnusableInput(
                f"{message} Tags: {', '.join(tags)}. Classes: {', '.join(CLASSES)}."
            )


def of_recorded(
    file: Path,
    url: str | None,
    overlays: tuple[Path, ...],
    known: Collection[str],
    *,
    corrects: bool = False,
) -> Outcome:
    """The outcome of recorded traffic, only of requests below `url` if it is given. Raises
    UnusableInput.

    With `corrects`, divergences get the actions of an overlay that close them.
    """
    archive = read(file, url)
    began, observed = (
        monotonic(),
        Observed(contract_with(overlays), url or "recorded traffic", "har", overlays),
    )
    for exchange in archive.exchanges:
        observed.judge(exchange)
    report = observed.report(monotonic() - began)
    left_out = [
        f"Not judged: {count:,} ({reason})." for reason, count in sorted(archive.left_out.items())
    ]
    if not report.requests and not report.divergences:
        message = f"{file}: contains no request of the contract. Give the address above /v2 as URL."
        raise UnusableInput(" ".join([message, *left_out]))
    hide(report, known)
    if corrects:
        asyncio.run(observed.correct(report))
    report.exit = _DIVERGES if report.divergences else _CONFORMS
    return Outcome(report, left_out)


def known(path: Path) -> set[str]:
    """The fingerprints in a JSON report. Raises UnusableInput for any other file."""
    try:
        found = {
            divergence["fingerprint"]
            for divergence in orjson.loads(read_text(path, str(path)))["divergences"]
        }
    except (KeyError, TypeError, ValueError):
        found = {None}
    if not all(isinstance(fingerprint, str) for fingerprint in found):
        raise UnusableInput(
            f"{path}: is not a JSON report. Write one with --report json={path.name}."
        )
    return found


def forms_of(texts: Collection[str]) -> list[tuple[str, Path | None]]:
    """`FORM` or `FORM=FILE` of each `--report`. Raises UnusableInput."""
    found = []
    for each in texts:
        form, _, file = each.partition("=")
        if form not in FORMS:
            raise UnusableInput(f"{each}: is not a form of a report. Forms: {', '.join(FORMS)}.")
        if file and not Path(file).parent.is_dir():
            raise UnusableInput(f"{Path(file).parent}: no such directory.")
        found.append((form, Path(file) if file else None))
    return found


def written(
    report: Report, forms: list[tuple[str, Path | None]], corrections: Path | None
) -> Iterator[str]:
    """Write a report and its corrections to files; yields the forms for the terminal.

    Raises UnusableInput.
    """
    if corrections is not None:
        save(corrections, overlay(report))
    for form, file in forms:
        text = FORMS[form](report)
        if file is None:
            yield text
        else:
            save(file, text + "\n")


def of_run(run: Run, options: Options, known: Collection[str], least: float) -> Outcome:
    """The outcome of a run. Divergences with `known` fingerprints are hidden; a run must reach
    `least` per cent.

    Raises UnusableInput if nothing was learned.
    """
    document = run.catalogue.document
    answered = [
        name
        for name, statuses in run.statuses.items()
        if any(200 <= status < 300 for status in statuses)
    ]
    findings = [_as_shown(finding, run) for finding in run.findings]
    divergences = merged(findings, document, set(run.groups), run.suspected, answered)
    classes = options.classes or CLASSES
    divergences = [
        each
        for each in divergences
        if each.kind in classes
        and each.kind not in options.skip
        and (not each.operations or {*each.operations} & {*run.chosen})
    ]
    unreached = [*_unreached(run, document, options)]
    report = Report(
        target=options.url,
        contract=contract_of(document),
        mode="write" if options.write else "read",
        seed=options.seed,
        seconds=round(run.seconds, 1),
        requests=run.target.requests,
        exit=_CONFORMS,
        coverage=_coverage(run, document, unreached),
        rows=rows_of(run.chosen, run.groups, divergences, unseen="unreached"),
        unreached=unreached,
        divergences=divergences,
        left_behind=run.cleanup.left_behind,
        tag=run.cleanup.tag,
    )
    hide(report, known)
    Where(data_dir("openapi"), document, options.overlays).locate(report.divergences)
    if report.divergences and not run.is_interrupted:
        report.exit = _DIVERGES
    elif not run.groups or run.is_interrupted:
        report.exit = _FAILED
    elif report.coverage < least:
        report.exit = _TOO_LITTLE
    if run.away and report.exit == _FAILED and not (report.left_behind or run.cleanup.is_cut_short):
        raise UnusableInput(f"{options.url} cannot be compared: it {run.away}.")
    return Outcome(report, [*_notes(run, options)])


def _as_shown(finding: Finding, run: Run) -> Finding:
    """A finding of a member that is not stored or may refer to nothing.

    Of a member that no answer shows, it is one of the schema.
    """
    operation = run.catalogue.document.operations.get(finding.operation)
    record = None if operation is None else run.catalogue.record_at(operation)
    if record is None or finding.kind not in ("not-persisted", "reference"):
        return finding
    # of an object or a map, whether it is shown at all
    place = tuple(finding.cause.split("."))[: len(record[0]) + 1]
    if finding.kind == "reference" and "/properties/" in finding.pointer:
        place = (*record[0], finding.pointer.rpartition("/")[2])
    if place in run.shown:
        return finding
    member = place[-1]
    title = f"{finding.operation} takes {member}, which no answer shows."
    return replace(finding, kind="schema", cause=f"{member} is never shown", title=title)


def hide(report: Report, known: Collection[str]) -> None:
    """Leave out the divergences whose fingerprints are known, and count them."""
    shown = [divergence for divergence in report.divergences if divergence.fingerprint not in known]
    report.hidden, report.divergences = len(report.divergences) - len(shown), shown


def _notes(run: Run, options: Options) -> Iterator[str]:
    """Sentences about what a run could not do."""
    limited, repeated, lost = run.target.limited, run.target.repeated, len(run.unanswered)
    if run.away:
        yield (
            f"The run ended early: the backend {run.away}. The report has what was learned until"
            " then."
        )
    if run.is_interrupted:
        yield "Interrupted: the report has what was learned until then."
    if run.is_late:
        yield (
            f"The budget of {options.budget:g} s is used up: raise it with --budget, or limit the"
            " run with --only."
        )
    if limited:
        yield (
            f"The backend answered 429 to {limited:,} requests, which were repeated when it asked"
            " for that."
        )
    if repeated:
        yield (
            f"{repeated:,} requests got no answer at first and were repeated. Where this left the"
            " state of a record unknown, the rest of the journey was skipped."
        )
    if lost:
        yield (
            "The backend may have more records of this run than are listed: it did not answer"
            f" {lost:,} requests."
        )
    if len(run.created) == 1:
        yield "All records have the same `createdAt`: instants were not compared."
    if run.cleanup.is_cut_short:
        yield (
            "Cleaning up was cut short: search the backend for records whose names begin with"
            f" {run.cleanup.tag}."
        )


def _unreached(run: Run, document: Document, options: Options) -> Iterator[Unreached]:
    """The documented statuses that were not answered, with the reason."""
    for operation in (document.operations[name] for name in run.chosen):
        for response in operation.responses.values():
            if response.status not in run.statuses.get(operation.id, ()):
                yield Unreached(
                    operation.id, response.status, _reason(run, operation, response, options)
                )


def _reason(run: Run, operation: Operation, response: Response, options: Options) -> str:
    """Why a documented status was not answered; empty if a request should have been answered so."""
    status, rights = response.status, run.rights
    if operation.id in rights.closed:
        return rights.closed[operation.id]
    if status in _ELSEWHERE:
        return _ELSEWHERE[status]
    if not options.write and (operation.method != "GET" or status in (403, 409)):
        return "needs --write"
    if not options.write and "{" in operation.path and status < 300:
        return "no list of the backend shows such a record"
    if status == 403 and set(response.codes) <= _OF_KEYS:
        return "needs a key with other settings"
    if status == 403 and rights.kind != PERSON:
        return "needs a JWT, which creates keys with fewer scopes"
    if status == 403 and not run.statuses["createApiKey"] & {201}:
        return "no API key with fewer scopes could be created"
    if costs(operation) and not options.charges:
        return "needs --charges"
    needed = [
        f"needs {name}: {why}"
        for name, why in rights.closed.items()
        if name in run.needs.get(operation.id, ())
    ]
    return needed[0] if needed else ""


def _coverage(run: Run, document: Document, unreached: list[Unreached]) -> float:
    """Per cent of the documented statuses within reach that were answered."""
    away = {(each.operation, each.status) for each in unreached if each.reason}
    within = {
        (name, status) for name in run.chosen for status in document.operations[name].responses
    } - away
    reached = {(name, status) for name, status in within if status in run.statuses.get(name, ())}
    return round(100 * len(reached) / len(within), 1) if within else 0.0


def save(file: Path, text: str) -> None:
    """Write a file. Raises UnusableInput."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnusableInput(f"{file}: {error.strerror}.") from None
