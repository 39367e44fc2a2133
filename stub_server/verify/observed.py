"""The report of traffic that others sent: each exchange is compared with the contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable
from pathlib import Path

from ..app import data_dir
from ..contract import bundle
from ..contract.document import Document
from .candidates import Candidate, Candidates
from .conformity import Conformity
from .exchange import Exchange
from .findings import GROUPS, Finding, Report, Row
from .merging import merged
from .reporting import contract_of
from .showing import Showing

MOST = 5_000  # different findings
EXAMPLES = 64 * 1024 * 1024  # bytes of exchanges that are kept, to prove corrections
_OVERHEAD = 2_000  # bytes of an exchange without its bodies
_SEED = 1


class Observed:
    """One per report. It shows no values of records: they belong to the sender of the traffic."""

    def __init__(self, document: Document, target: str, mode: str) -> None:
        """`mode` is `har` or `proxy`."""
        self.requests = 0
        self._document, self._target, self._mode = document, target, mode
        self._conformity = Conformity(document, Showing(document, target, values=False))
        self._found: dict[tuple[str, ...], Finding] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._groups: dict[tuple[str, str], bool] = {}
        self._reached: set[tuple[str, int]] = set()
        self._examples: dict[Hashable, Exchange] = {}
        self._room = EXAMPLES

    def judge(self, exchange: Exchange) -> list[Finding]:
        """In what an exchange departs. Requests that are no operation are not counted."""
        operation = self._conformity.operation_of(exchange.request.method, exchange.request.path)
        status = exchange.answer.status
        group = "says_yes" if status < 400 or status >= 500 else "says_no"
        findings = self._conformity.findings(exchange, operation, group)
        for finding in findings:
            key = (finding.kind, finding.operation, group, finding.pointer, finding.cause)
            if key in self._found or len(self._found) < MOST:
                self._found.setdefault(key, finding)
                self._counts[key] += 1
                self._keep(key, exchange)
        if operation is not None:
            self.requests += 1
            self._reached.add((operation.id, status))
            self._keep((operation.id, status), exchange)
            self._groups[operation.id, group] = self._groups.get((operation.id, group), True) and not findings
        return findings

    def report(self, seconds: float) -> Report:
        """The report of what was seen until now. Its coverage is the share of all documented statuses."""
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

    async def correct(self, report: Report, overlays: tuple[Path, ...]) -> None:
        """Set the actions of the divergences that an overlay closes.

        Each is proved: one exchange of each finding and status is compared with the corrected contract.
        """
        if self._room < 0:
            return

        async def ask(_: list[Candidate], file: Path) -> Collection[Finding]:
            document = Document(bundle.load(data_dir("openapi") / "openapi.yaml", (*overlays, file)))
            again = Observed(document, self._target, self._mode)
            return [finding for exchange in self._examples.values() for finding in again.judge(exchange)]

        candidates = Candidates(self._document, _SEED, overlays)
        await candidates.correct(report.divergences, self._found.values(), ask)

    def _keep(self, key: Hashable, exchange: Exchange) -> None:
        """Keep the first exchange of its kind. Without room for all of them, nothing can be proved."""
        if key not in self._examples and self._room >= 0:
            self._room -= len(exchange.answer.body) + len(exchange.request.body) + _OVERHEAD
            self._examples[key] = exchange

    def _state(self, operation: str, group: str) -> str:
        is_fine = self._groups.get((operation, group))
        return "none" if is_fine is None else "ok" if is_fine else "diverges"
