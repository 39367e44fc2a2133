"""What the verbs `verify` and `proxy` need: checks of their options, the outcome of a run, and the files they write."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import orjson

from ..app import data_dir
from ..commands.options import Unusable
from ..contract import bundle
from ..contract.document import Document
from ..contract.source import ContractError, read_text
from .findings import CLASSES, Report
from .forms import FORMS, render
from .har import BadHar, read
from .observed import Observed
from .reporting import CONFORMS, DIVERGES, FAILED, hide, notes, report_of
from .run import Learned, Options
from .where import Where


class Outcome(NamedTuple):
    """A report, where the contract's lines are, and notes for the terminal."""

    report: Report
    where: Where
    notes: list[str]


def contract_with(overlays: tuple[Path, ...]) -> tuple[Document, Where]:
    """The contract and where its lines are. Raises Unusable."""
    folder = data_dir("openapi")
    try:
        document = Document(bundle.load(folder / "openapi.yaml", overlays))
    except ContractError as error:
        raise Unusable(str(error)) from None
    return document, Where(folder, document, overlays)


def check_names(options: Options, document: Document) -> None:
    """Check that everything in `only` and `skip` exists. Raises Unusable."""
    tags = {operation.tag: None for operation in document.operations.values()}
    for name in (*options.only, *options.skip):
        if name not in document.operations and name not in tags and name not in CLASSES:
            message = f"{name}: is not an operationId, a tag or a class."
            raise Unusable(f"{message} Tags: {', '.join(tags)}. Classes: {', '.join(CLASSES)}.")


def of_run(learned: Learned, document: Document, options: Options, known: Collection[str], least: float) -> Outcome:
    """The outcome of a run; `known` and `least` are passed to `report_of`. Raises Unusable if nothing was learned."""
    report = report_of(learned, document, options, known, least)
    if learned.away and report.exit == FAILED and not (learned.left_behind or learned.is_cut_short):
        raise Unusable(f"{options.url} cannot be compared: it {learned.away}.")
    return Outcome(report, Where(data_dir("openapi"), document, options.overlays), [*notes(learned, options)])


def of_recorded(
    file: Path, url: str | None, overlays: tuple[Path, ...], known: Collection[str], *, corrects: bool = False
) -> Outcome:
    """The outcome of recorded traffic, only of requests below `url` if it is given. Raises Unusable.

    With `corrects`, divergences get the actions of an overlay that close them.
    """
    document, where = contract_with(overlays)
    try:
        archive = read(file, url)
    except BadHar as error:
        raise Unusable(str(error)) from None
    began, observed = monotonic(), Observed(document, url or "recorded traffic", "har")
    for exchange in archive.exchanges:
        observed.judge(exchange)
    report = observed.report(monotonic() - began)
    left_out = [f"Not judged: {count:,} ({reason})." for reason, count in sorted(archive.left_out.items())]
    if not report.requests:
        message = f"{file}: contains no request of the contract. Give the address above /v2 as URL."
        raise Unusable(" ".join([message, *left_out]))
    report.divergences, report.hidden = hide(report.divergences, known)
    if corrects:
        asyncio.run(observed.correct(report, overlays))
    report.exit = DIVERGES if report.divergences else CONFORMS
    return Outcome(report, where, left_out)


def known(path: Path) -> set[str]:
    """The fingerprints in a JSON report. Raises Unusable for any other file, and for one of more than 10 MB."""
    try:
        found = {divergence["fingerprint"] for divergence in orjson.loads(read_text(path, str(path)))["divergences"]}
    except ContractError as error:
        raise Unusable(f"{error}.") from None
    except (KeyError, TypeError, ValueError):
        found = {None}
    if not all(isinstance(fingerprint, str) for fingerprint in found):
        raise Unusable(f"{path}: is not a JSON report. Write one with --report json={path.name}.")
    return found


def forms_of(texts: Collection[str]) -> list[tuple[str, Path | None]]:
    """`FORM` or `FORM=FILE` of each `--report`. Raises Unusable."""
    found = []
    for each in texts:
        form, _, file = each.partition("=")
        if form not in FORMS:
            raise Unusable(f"{each}: is not a form of a report. Forms: {', '.join(FORMS)}.")
        if file and not Path(file).parent.is_dir():
            raise Unusable(f"{Path(file).parent}: no such directory.")
        found.append((form, Path(file) if file else None))
    return found


def written(report: Report, where: Where, forms: list[tuple[str, Path | None]]) -> Iterator[str]:
    """Write a report to files; yields the forms for the terminal. Raises Unusable."""
    for form, file in forms:
        text = render(form, report, where)
        if file is None:
            yield text
            continue
        save(file, text + "\n")


def save(file: Path, text: str) -> None:
    """Write a file. Raises Unusable."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror}.") from None
