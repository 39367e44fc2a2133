"""The forms of a report for programs: JSON, JUnit's XML, SARIF 2.1.0 for code scanning, and the overlay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import yaml

from ...commands.options import json_text, printable
from ...version import __version__
from ..findings import CLASSES, GROUPS, RANKS, Divergence, Report
from ..where import Where
from . import words

_SERVER = "the whole backend"
_WIDTH = 110  # of the lines of an overlay
_LEVELS = {"documented": "error", "assumed": "warning"}


def json(report: Report, where: Where) -> str:
    """The report as a JSON object; docs/verify.md has its shape."""
    return json_text(
        {
            "target": report.target,
            "contract": report.contract,
            "mode": report.mode,
            "seed": report.seed,
            "seconds": report.seconds,
            "requests": report.requests,
            "exit": report.exit,
            "coverage": report.coverage,
            "operations": [
                {"operationId": row.operation} | {group: row.groups.get(group, "none") for group in GROUPS}
                for row in report.rows
            ],
            "unreached": [
                {"operationId": each.operation, "status": each.status, "reason": each.reason}
                for each in report.unreached
            ],
            "divergences": list(map(_divergence, report.divergences)),
            "left_behind": report.left_behind,
        },
        indent=2,
    )


def _divergence(divergence: Divergence) -> dict[str, Any]:
    return {
        "fingerprint": divergence.fingerprint,
        "class": divergence.kind,
        "operationId": divergence.operation,
        "operations": divergence.operations,
        "title": divergence.title,
        "basis": divergence.basis,
        "pointer": divergence.pointer,
        "count": divergence.count,
        "request": divergence.request._asdict(),
        "target": divergence.target._asdict(),
        "expected": divergence.expected._asdict(),
        "overlay": divergence.overlay,
    }


def junit(report: Report, where: Where) -> str:
    """The report as XML. A divergence fails each case that found it; what was not reached, or is hidden, is skipped."""
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
    """Add the result of a case; one that passed has none."""
    if divergences:
        first, *others = divergences
        more = f" (and {len(others)} more)" if others else ""
        failure = SubElement(case, "failure", type=first.kind, message=printable(first.title + more))
        failure.text = "\n\n".join(_failure(each, where) for each in divergences)
    elif state == "diverges":
        SubElement(case, "skipped", message="The baseline hides what diverges here.")
    elif state == "unreached":
        SubElement(case, "skipped", message="Out of reach.")
    elif state == "none":
        SubElement(case, "skipped", message="The contract has nothing to try here.")


def _failure(divergence: Divergence, where: Where) -> str:
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


def sarif(report: Report, where: Where) -> str:
    """The report as a SARIF log: errors depart from what is documented, warnings from what is assumed."""
    rules = [
        {
            "id": name,
            "shortDescription": {"text": name.replace("-", " ").capitalize()},
            "fullDescription": {"text": meaning},
            "help": {"text": meaning},
            "defaultConfiguration": {"level": "warning"},
        }
        for name, meaning in CLASSES.items()
    ]
    run = {
        "tool": {"driver": {"name": "stub-server verify", "version": __version__, "rules": rules}},
        "invocations": [{"executionSuccessful": report.exit in (0, 1), "exitCode": report.exit}],
        "results": [_result(divergence, where) for divergence in report.divergences],
        "properties": {name: getattr(report, name) for name in ("target", "contract", "mode", "seed", "coverage")},
    }
    return json_text(
        {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}, indent=2
    )


def _result(divergence: Divergence, where: Where) -> dict[str, Any]:
    line = where.line(divergence.pointer, divergence.operation)
    place = {"artifactLocation": {"uri": quote(line.file)}, "region": {"startLine": line.number}}
    return {
        "ruleId": divergence.kind,
        "ruleIndex": RANKS[divergence.kind],
        "level": _LEVELS[divergence.basis],
        "message": {
            "text": _plain(f"{divergence.title} ({words.operations_of(divergence)}). {words.advice(divergence)}")
        },
        "locations": [
            {
                "physicalLocation": place,
                "logicalLocations": [{"name": name, "kind": "function"} for name in divergence.operations],
            }
        ],
        # GitHub matches alerts of several runs only by this name.
        "partialFingerprints": {"primaryLocationLineHash": divergence.fingerprint},
        "occurrenceCount": divergence.count,
        "properties": {
            "basis": divergence.basis,
            "pointer": divergence.pointer,
            "request": words.request_of(divergence),
            "answered": words.said(divergence.target),
            "expected": words.said(divergence.expected),
        },
    }


def _plain(text: str) -> str:
    """Text with placeholders and links escaped, which have a meaning in messages of SARIF (3.11.5 and 3.11.6)."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def overlay(report: Report, where: Where) -> str:
    """The overlay. Actions against what the source document shows are commented out, with the line of the contract."""
    return "\n".join(_overlay_lines(report, where)) + "\n"


def _overlay_lines(report: Report, where: Where) -> Iterator[str]:
    head = {"overlay": "1.0.0", "info": {"title": f"Corrections for {report.target}", "version": "1.0.0"}}
    yield _yaml(head)
    yield "actions:"
    if not any(each.overlay is not None and each.basis == "assumed" for each in report.divergences):
        yield "  - { target: $.info, update: {} }  # an overlay needs an action, and this one changes nothing"
    written: list[object] = []
    for divergence in report.divergences:
        if divergence.overlay is not None:
            # An action may close several divergences; what it removes cannot be removed again.
            actions = [action for action in divergence.overlay["actions"] if action not in written]
            yield from _actions(divergence, actions, where)
            written += actions if divergence.basis == "assumed" else []
    others = [each for each in report.divergences if each.overlay is None]
    if others:
        yield "  # No overlay corrects these:"
        yield from (_comment(f"- {each.kind}: {each.title}") for each in others)


def _actions(divergence: Divergence, actions: list[object], where: Where) -> Iterator[str]:
    yield _comment(f"{divergence.kind}: {divergence.title}")
    margin = "  "
    if divergence.basis == "documented":
        line = where.line(divergence.pointer, divergence.operation)
        yield _comment(
            f"Commented out, since the source document shows otherwise: {line.file}:{line.number}: {line.text}"
        )
        margin = "  # "
    if actions:
        yield from (margin + line for line in _yaml(actions).splitlines())


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDTH).rstrip()


def _comment(text: str) -> str:
    return f"  # {printable(' '.join(text.split()))}"
