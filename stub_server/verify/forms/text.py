"""A report for a terminal: the matrix of operations, each divergence in five lines, what was not reached."""

from __future__ import annotations

from collections.abc import Iterator

from ...commands.options import printable
from ..findings import GROUPS, Divergence, Report
from ..where import Where
from . import words

_LONGEST = 240  # characters of an answer that are shown


def render(report: Report, where: Where) -> str:
    """The report as text. What the target said is escaped where it would move the cursor."""
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
        yield "Left behind in the target:"
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
    yield f"   answered {_cut(words.said(divergence.target))}; expected {_cut(words.said(divergence.expected))}"
    yield f"   {line.file}:{line.number} ({divergence.basis}): {line.text}"
    yield f"   {words.advice(divergence)}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
