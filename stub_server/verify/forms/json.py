"""A report for programs, and for `--baseline`."""

from __future__ import annotations

from typing import Any

from ...commands.options import json_text
from ..findings import GROUPS, Divergence, Report
from ..where import Where


def render(report: Report, where: Where) -> str:
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
