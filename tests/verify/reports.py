"""Findings and a report made by hand, over the real contract."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stub_server.core.record import Body
from stub_server.tools.verify.findings import (
    CLASSES,
    GROUPS,
    Finding,
    Said,
    Shown,
)
from stub_server.tools.verify.merging import Coverage, Report
from stub_server.tools.verify.where import Where

from ..support.contract import OPENAPI

HOSTILE = (
    "\x1b[2J\x00\u202e<script>alert(1)</script> ]]> &amp; {0} [link](https://evil.example)"
    " \ud800\ufffe\n2. forged"
)
"""What a target may answer to be more than text."""
OVERLAY = {
    "target": "$.components.schemas.CustomerCreate",
    "update": {"properties": {"name": {"maxLength": 60}}},
}
NAME = "#/components/schemas/CustomerCreate/properties/name/maxLength"


def finding(
    kind: str = "stricter", operation: str = "createCustomer", pointer: str = NAME, **other: object
) -> Finding:
    """A finding that is plain but for what is given."""
    plain = Finding(
        kind=kind,
        operation=operation,
        group="accepts",
        pointer=pointer,
        tries="longest text",
        title="a name of 120 characters is refused",
        request=Shown(
            "POST",
            "/v2/customers",
            "curl -X POST https://api.example.com/v2/customers --data-raw '{}'",
        ),
        target=Said(422, '{"error":true}'),
        expected=Said(201, '{"error":false}'),
    )
    return replace(plain, **other)  # type: ignore[arg-type]


def ledger(
    findings: Iterable[Finding], probed: Iterable[str], answered: Iterable[str] = ()
) -> Report:
    """What a run found that has probed these operations, of which some have succeeded."""
    made = Report((), "https://api.example.com", "write")
    made.findings += findings
    made.groups |= {name: {"accepts"} for name in probed}
    made.pairs |= {(each.operation, each.target.status) for each in made.findings}
    made.pairs |= {(name, 200) for name in answered}
    return made


def report(*findings: Finding, overlay: dict[str, Any] | None = None) -> Report:
    """The report of a run that found these, in two operations. `overlay` corrects all of them."""
    rows = {name: dict.fromkeys(GROUPS, "ok") for name in ("createCustomer", "listOrders")}
    rows["createCustomer"] |= {"accepts": "diverges", "persists": "diverges", "transitions": "none"}
    rows["listOrders"] |= {"filters": "unreached"}
    for each in findings:
        if each.operation:
            row = rows.setdefault(each.operation, dict.fromkeys(GROUPS, "ok"))
            row[each.group] = "diverges"
    made = ledger(findings, rows)
    made.divergences = made.merge()
    for divergence in made.divergences:
        divergence.overlay = overlay
    made.seed, made.seconds, made.requests, made.exit = 7, 12.25, 321, 1
    made.begins, made.left_behind = "verify-0a1b2c", ("/v2/projects/7d2f0c1e",)
    unreached: list[Body] = [
        {"operationId": "createOrder", "status": status, "reason": "needs --charges"}
        for status in (201, 409)
    ]
    made.coverage = Coverage(rows, unreached, 96.5)
    return made


def of_every_class() -> list[Finding]:
    """One finding of each class."""
    found = [finding(kind, title=f"a {kind} divergence") for kind in CLASSES]
    alone = {
        "missing-operation": "getApiInfo",
        "scope": "getMerchantByPublicKey",
        "not-persisted": "updateCustomer",
    }
    alone |= dict.fromkeys(("laxer", "schema", "default"), "createPlan")
    return [
        replace(each, operation=alone.get(each.kind, each.operation), target=Said(404, each.kind))
        for each in found
    ]


def where() -> Where:
    """The lines of the real contract."""
    return Where(OPENAPI)
