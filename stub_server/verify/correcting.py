"""Corrects the contract after a run: measures bounds, and proves each action by sending the probes again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

from ..contract.source import value_at
from .building import Builder
from .candidates import Action, Candidate, Candidates, Key, key_of
from .findings import Divergence, Finding, Report
from .measuring import measured
from .probe import Journey
from .run import Learned, Runner


class Correcting:
    """One per run."""

    def __init__(self, runner: Runner, progress: Callable[[int, int], None]) -> None:
        """`runner` is the one that has run; `progress` is as it is told there."""
        self._options, self._document, self._progress = runner.options, runner.document, progress
        probed = [operation for operation in runner.document.operations.values() if runner.includes(operation)]
        self._candidates = Candidates(runner.document, runner.options.seed, runner.options.overlays, probed)

    async def correct(self, report: Report, findings: Collection[Finding]) -> None:
        """Give the divergences of a report the actions that close them, each proved: twins that follow them are silent.

        `findings` are all of the run. What this costs beside it is added to the report.
        """
        self._report = report
        limits = await self._measure(report.divergences)
        await self._candidates.correct(report.divergences, findings, self._ask, limits)

    async def _ask(self, candidates: list[Candidate], file: Path) -> Collection[Finding] | None:
        names = tuple(name for name in self._document.operations if any(name in c.operations for c in candidates))
        options = replace(self._options, only=names, overlays=(*self._options.overlays, file))
        learned = await self._run(Runner(options, self._progress))
        return None if learned.away or learned.is_late or learned.is_interrupted else learned.findings

    async def _measure(self, divergences: Collection[Divergence]) -> dict[Key, list[Action]]:
        """The actions against bounds that are stricter or laxer, by finding: a few more probes find where they are."""
        writes, operations = self._options.write, self._document.operations
        wanted = {
            key_of(f): f
            for d in divergences
            for f in d.findings
            if f.kind in ("stricter", "laxer")
            and f.operation in operations
            and (writes or operations[f.operation].method == "GET")
        }
        found: dict[Key, list[Action]] = {}

        def asks(builder: Callable[[str], Builder]) -> Iterator[Journey]:
            for key, finding in wanted.items():
                at = self._candidates.place(finding.pointer)
                if at:
                    own, actions = builder(f"measures {'/'.join(key)}"), found.setdefault(key, [])
                    operation = operations[finding.operation]
                    steps = measured(own, operation, finding, at, value_at(self._document.raw, at), actions)
                    yield Journey(f"measures {finding.operation}", steps)

        if wanted:
            names = tuple(dict.fromkeys(finding.operation for finding in wanted.values()))
            await self._run(Runner(replace(self._options, only=names), self._progress, asks=asks))
        return found

    async def _run(self, runner: Runner) -> Learned:
        learned = await runner.run()
        self._report.requests += learned.requests
        self._report.seconds = round(self._report.seconds + learned.seconds, 1)
        self._report.left_behind += learned.left_behind
        return learned
