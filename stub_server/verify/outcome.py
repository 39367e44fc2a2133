"""What a run and recorded traffic come to: the report, and what is said beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from ..app import data_dir
from ..commands.options import Unusable
from ..contract import bundle
from ..contract.document import Document
from ..contract.source import ContractError
from .baseline import hide
from .findings import CLASSES, Report
from .har import BadHar, judged, read
from .reporting import CONFORMS, DIVERGES, FAILED, notes, report_of
from .run import Learned, Options
from .where import Where


class Outcome(NamedTuple):
    """A report, where the contract's lines are, and sentences for whoever reads it."""

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
    """Refuse what `only` and `skip` name and nothing is called. Raises Unusable."""
    tags = {operation.tag: None for operation in document.operations.values()}
    for name in (*options.only, *options.skip):
        if name not in document.operations and name not in tags and name not in CLASSES:
            raise Unusable(
                f"{name}: is no operationId, tag or class. Tags: {', '.join(tags)}. Classes: {', '.join(CLASSES)}."
            )


def of_run(learned: Learned, document: Document, options: Options, known: Collection[str], least: float) -> Outcome:
    """What a run comes to. `known` and `least` are those of `report_of`. Raises Unusable where nothing was learned."""
    report = report_of(learned, document, options, known, least)
    if learned.away and report.exit == FAILED and not (learned.left_behind or learned.is_cut_short):
        raise Unusable(f"{options.url} cannot be compared: {learned.away}.")
    return Outcome(report, Where(data_dir("openapi"), document, options.overlays), [*notes(learned, options)])


def of_recorded(
    file: Path, url: str | None, overlays: tuple[Path, ...], known: Collection[str], *, corrects: bool = False
) -> Outcome:
    """What the traffic in an archive comes to; of `url` alone, if it is given. Raises Unusable.

    `corrects` has the divergences tell the actions of an overlay that close them.
    """
    document, where = contract_with(overlays)
    try:
        archive = read(file, url)
    except BadHar as error:
        raise Unusable(str(error)) from None
    observed, report = judged(archive, document)
    left_out = [f"Not judged: {count:,} ({reason})." for reason, count in sorted(archive.left_out.items())]
    if not report.requests:
        message = f"{file}: no request in it is one of the contract. Give the address above /v2 as URL."
        raise Unusable(" ".join([message, *left_out]))
    report.divergences, report.hidden = hide(report.divergences, known)
    if corrects:
        asyncio.run(observed.correct(report, overlays))
    report.exit = DIVERGES if report.divergences else CONFORMS
    return Outcome(report, where, left_out)
