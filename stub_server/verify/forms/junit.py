"""A report for CI servers, as JUnit's XML: a case for each operation and group of probes."""

from __future__ import annotations

from collections import defaultdict
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ...commands.options import printable
from ..findings import GROUPS, Divergence, Report
from ..where import Where
from . import words

_SERVER = "the whole target"


def render(report: Report, where: Where) -> str:
    """The report as XML. A divergence fails each case that found it; what was not reached, or is known, is skipped."""
    found: dict[tuple[str, str], list[Divergence]] = defaultdict(list)
    for divergence in report.divergences:
        for case in divergence.cases:
            found[case].append(divergence)
    states = {(row.operation, group): row.groups.get(group, "none") for row in report.rows for group in GROUPS}
    suite = Element("testsuite", name="stub-server verify", time=f"{report.seconds:.3f}")
    properties = SubElement(suite, "properties")
    for name in ("target", "contract", "mode", "seed", "coverage"):
        SubElement(properties, "property", name=name, value=printable(str(getattr(report, name))))
    for operation, group in dict.fromkeys([*states, *found]):
        element = SubElement(suite, "testcase", classname=operation or _SERVER, name=GROUPS[group])
        _end(element, states.get((operation, group), "diverges"), found.get((operation, group), []), where)
    for name, count in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
        suite.set(name, str(len(suite.findall(count))))
    suite.set("errors", "0")
    suites = Element("testsuites")
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode")


def _end(case: Element, state: str, divergences: list[Divergence], where: Where) -> None:
    """Say how a case ended; nothing of one that passed."""
    if divergences:
        first, *others = divergences
        more = f" (and {len(others)} more)" if others else ""
        failure = SubElement(case, "failure", type=first.kind, message=printable(first.title + more))
        failure.text = "\n\n".join(_text(each, where) for each in divergences)
    elif state == "diverges":
        SubElement(case, "skipped", message="The baseline knows what diverges here.")
    elif state == "unreached":
        SubElement(case, "skipped", message="Out of reach.")
    elif state == "none":
        SubElement(case, "skipped", message="The contract has nothing of this group to probe.")


def _text(divergence: Divergence, where: Where) -> str:
    line = where.line(divergence.pointer, divergence.operation)
    parts = (
        f"{divergence.kind}: {divergence.title} ({words.operations_of(divergence)})",
        *words.request_of(divergence).split("\n"),
        f"answered {words.said(divergence.target)}",
        f"expected {words.said(divergence.expected)}",
        f"{line.file}:{line.number} ({divergence.basis}): {line.text}",
        words.advice(divergence),
    )
    return "\n".join(map(printable, parts))
