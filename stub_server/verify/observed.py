"""Traffic that others send, held to the contract one exchange after the other, and the report of it."""

from __future__ import annotations

from collections import Counter

from ..contract.document import Document
from .conformity import Conformity
from .exchange import Exchange
from .findings import GROUPS, Finding, Report, Row
from .merging import merged
from .reporting import contract_of
from .showing import Showing

MOST = 5_000  # findings that differ


class Observed:
    """One per report. Values of records are shown to nobody: they are those of whoever sent the traffic."""

    def __init__(self, document: Document, target: str, mode: str) -> None:
        """`mode` is `har` or `proxy`."""
        self.requests = 0
        self._document, self._target, self._mode = document, target, mode
        self._conformity = Conformity(document, Showing(document, target, values=False))
        self._found: dict[tuple[str, ...], Finding] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._groups: dict[tuple[str, str], bool] = {}
        self._reached: set[tuple[str, int]] = set()

    def judge(self, exchange: Exchange) -> list[Finding]:
        """In what an exchange departs. A request of no operation is not counted."""
        operation = self._conformity.operation_of(exchange.request.method, exchange.request.path)
        status = exchange.answer.status
        group = "says_yes" if status < 400 or status >= 500 else "says_no"
        findings = self._conformity.findings(exchange, operation, group)
        for finding in findings:
            key = (finding.kind, finding.operation, group, finding.pointer, finding.cause)
            if key in self._found or len(self._found) < MOST:
                self._found.setdefault(key, finding)
                self._counts[key] += 1
        if operation is not None:
            self.requests += 1
            self._reached.add((operation.id, status))
            self._groups[operation.id, group] = self._groups.get((operation.id, group), True) and not findings
        return findings

    def report(self, seconds: float) -> Report:
        """The report of what was seen until now. It covers the statuses that some operation has answered."""
        findings = [finding for key, finding in self._found.items() for _ in range(self._counts[key])]
        documented = {(o.id, status) for o in self._document.operations.values() for status in o.responses}
        seen = [name for name in self._document.operations if any((name, group) in self._groups for group in GROUPS)]
        return Report(
            target=self._target,
            contract=contract_of(self._document),
            mode=self._mode,
            seed=0,
            seconds=seconds,
            requests=self.requests,
            exit=1 if findings else 0,
            coverage=100 * len(documented & self._reached) / (len(documented) or 1),
            rows=[Row(name, {group: self._state(name, group) for group in GROUPS}) for name in seen],
            unreached=[],
            divergences=merged(findings, self._document, seen),
        )

    def _state(self, operation: str, group: str) -> str:
        is_fine = self._groups.get((operation, group))
        return "none" if is_fine is None else "ok" if is_fine else "diverges"
