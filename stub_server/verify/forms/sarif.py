"""A report for code scanning, as SARIF 2.1.0: each divergence at its line of the contract."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ...commands.options import json_text
from ...version import __version__
from ..findings import CLASSES, RANKS, Divergence, Report
from ..where import Where
from . import words

_LEVELS = {"documented": "error", "assumed": "warning"}


def render(report: Report, where: Where) -> str:
    """The report as a SARIF log: an error departs from what is documented, a warning from what is assumed."""
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
        # GitHub matches alerts from run to run by this name alone.
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
    """Text without placeholders and links, which messages of SARIF may have (3.11.5 and 3.11.6)."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")
