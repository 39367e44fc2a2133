"""The forms of a report for people: text for a terminal, and one HTML page that needs no other file and no script."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader

from ...commands.options import json_text, printable, printable_lines
from ..findings import CLASSES, GROUPS, Divergence, Report
from ..showing import cut
from ..where import Where
from . import words

_LONGEST = 240  # characters of an answer that are shown


def text(report: Report, where: Where) -> str:
    """The report as text. Control characters from the target are escaped."""
    return "\n".join(map(printable, _lines(report, where)))


def _lines(report: Report, where: Where) -> Iterator[str]:
    yield f"{report.target} compared with {report.contract}"
    yield ""
    yield from _matrix(report)
    for number, divergence in enumerate(report.divergences, 1):
        yield ""
        yield from _divergence(number, divergence, where)
    if report.unreached:
        yield ""
        yield "Out of reach:"
        for reason, operations in words.unreached(report).items():
            yield f"  {reason}: {operations}"
    if report.left_behind:
        yield ""
        yield "Left behind in the backend:"
        yield from (f"  {path}" for path in words.left_behind(report))
    yield ""
    yield words.summary(report)


def _matrix(report: Report) -> Iterator[str]:
    width = max((len(row.operation) for row in report.rows), default=0)
    yield "  ".join(("".ljust(width), *GROUPS.values()))
    for row in report.rows:
        marks = (words.MARKS[row.groups.get(group, "none")].center(len(name)) for group, name in GROUPS.items())
        yield "  ".join((row.operation.ljust(width), *marks)).rstrip()
    yield words.LEGEND


def _divergence(number: int, divergence: Divergence, where: Where) -> Iterator[str]:
    line = where.line(divergence.pointer, divergence.operation)
    yield f"{number}. {divergence.kind}: {divergence.title} ({words.operations_of(divergence)})"
    yield from f"   {words.request_of(divergence)}".split("\n")
    answered, expected = (cut(words.said(said), _LONGEST) for said in (divergence.target, divergence.expected))
    yield f"   answered {answered}; expected {expected}"
    yield f"   {line.file}:{line.number} ({divergence.basis}): {line.text}"
    yield f"   {words.advice(divergence)}"


def html(report: Report, where: Where) -> str:
    """The report as HTML, for light and dark screens."""
    environment = Environment(
        loader=PackageLoader(__package__), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_visible
    )
    lines = [where.line(divergence.pointer, divergence.operation) for divergence in report.divergences]
    return environment.get_template("report.html").render(
        report=report, lines=lines, words=words, classes=CLASSES, groups=GROUPS, action=partial(json_text, indent=2)
    )


def _visible(value: Any) -> Any:
    """Text without characters that hide or reorder others."""
    return printable_lines(value) if isinstance(value, str) else value
