"""Corrects the contract after a run: measures bounds, and proves each action by sending the probes again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..contract.document import Operation
from ..contract.source import Json, Place, json_path, value_at
from .building import SETUP, Builder, query_text
from .candidates import Action, Candidate, Candidates, Key, equal, key_of
from .findings import Divergence, Finding, Report
from .places import body_of, pointer_of
from .probe import Journey, Probe, Seen
from .resources import at
from .run import Learned, Runner
from .variants import Variant, replaced_at

_SIZES = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
_NOT_LIMITS = frozenset(("type", "properties", "required", "items", "oneOf", "allOf", "anyOf"))
Asked = Generator[Probe, Seen, bool | None]


class Correcting:
    """One per run."""

    def __init__(self, runner: Runner, progress: Callable[[int, int], None]) -> None:
        """`runner` has run; `progress` is called as by a run."""
        self._options, self._document, self._progress = runner.options, runner.document, progress
        probed = [operation for operation in runner.document.operations.values() if runner.options.includes(operation)]
        self._candidates = Candidates(runner.document, runner.options.seed, runner.options.overlays, probed)

    async def correct(self, report: Report, findings: Collection[Finding]) -> None:
        """Set the actions of the divergences that an overlay closes: another run with twins that follow it is silent.

        `findings` are all of the run. The requests and seconds of this work are added to the report.
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
        """The actions against bounds that are stricter or laxer, by finding. A few more probes find these bounds."""
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
                    node = value_at(self._document.raw, at)
                    yield _measured(own, operations[finding.operation], finding, at, node, actions)

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


def _measured(
    builder: Builder,
    operation: Operation,
    finding: Finding,
    place: Place,
    node: Json,
    actions: list[dict[str, Any]],
) -> Journey:
    """Try the limits of the schema at `place`, which a finding is about; add to `actions`."""
    if not builder.may_prepare(operation):
        return
    yield from builder.prepare(operation)
    measure = _Measure(builder, operation, finding.pointer, node)
    for name, variant in [each for each in measure.variants() if each[1].is_accepted is (finding.kind == "stricter")]:
        was_accepted = yield from measure.ask(name, variant.value, variant.places)
        if was_accepted is None or was_accepted is variant.is_accepted:
            continue
        value = variant.value if name else at(variant.value, next(iter(variant.places), ()))
        if was_accepted:
            actions += [{"target": json_path([*place, each]), "remove": True} for each in measure.limits(value)]
            continue
        if isinstance(value, str) and value in node.get("enum", ()):
            actions.append({"target": json_path([*place, "enum"]) + equal(value), "remove": True})
            continue
        limit = measure.limit(value)
        if limit is not None:
            kept = yield from measure.kept(limit, name, variant)
            if kept is not None:
                actions.append({"target": json_path(place), "update": {limit: kept}})


class _Measure:
    """Measures one schema of one operation."""

    def __init__(self, builder: Builder, operation: Operation, pointer: str, node: Json) -> None:
        self._builder, self._operation, self._pointer, self._node = builder, operation, pointer, node
        self._body = builder.body(operation)
        self._resource = builder.resource_of(operation)

    def variants(self) -> Iterator[tuple[str, Variant]]:
        """The variants of this schema, each with the name of its parameter; the name is empty for a body."""
        builder = self._builder
        for number, parameter in enumerate(self._operation.parameters):
            if parameter.place == "query":
                pointer = pointer_of(self._operation, "parameters", number, "schema")
                for variant in builder.variants.of_parameter(parameter.schema, pointer, parameter.name, builder.fresh):
                    if variant.pointer == self._pointer:
                        yield parameter.name, variant
        if self._body is not None and self._operation.body is not None:
            pointer = body_of(self._operation)
            for variant in builder.variants.of_body(self._operation.body, pointer, self._body, builder.fresh):
                if variant.pointer == self._pointer and variant.places:
                    yield "", variant

    def ask(self, name: str, value: Any, places: frozenset[tuple[str, ...]]) -> Asked:
        """Whether the target accepts the value of a parameter, or a body; None if its answer does not show it."""
        builder, operation = self._builder, self._operation
        query = {name: query_text(value)} if name else {}
        makes, body = "", None
        if not name:
            if self._resource is not None and operation in self._resource.creates:
                value, makes = builder.fresh.renewed(value, places), f"{self._resource.role} more"
            body = builder.harmless(operation, value)
        seen = yield builder.probe(
            operation, SETUP, "where the bound is", self._pointer, query=query, body=body, makes=makes, keeps=False,
            is_checked=False,
        )  # fmt: skip
        status = seen.target.status
        return True if 200 <= status < 300 else False if status in (400, 422) else None

    def limits(self, value: Any) -> list[str]:
        """The keywords of the schema that refuse a value: one, or a format with its pattern."""
        accepts = self._builder.variants.accepts
        keys = [key for key in self._node if key not in _NOT_LIMITS and not key.startswith("x-")]
        for gone in (*([key] for key in keys), ["format", "pattern"]):
            if accepts({key: inner for key, inner in self._node.items() if key not in gone}, value):
                return [key for key in gone if key in self._node]
        return []

    def limit(self, value: Any) -> str | None:
        """The keyword of the bound that a value is equal to."""
        size = len(value) if isinstance(value, (str, list)) else value
        names = _SIZES.get(str(self._node.get("type")), ("minimum", "maximum"))
        return next((name for name in names if size is not None and self._node.get(name) == size), None)

    def kept(self, limit: str, name: str, variant: Variant) -> Generator[Probe, Seen, Any]:
        """The bound of the target, which refuses the value at the contract's. It is found by halving the distance."""
        step = self._node.get("multipleOf", 1) if limit in ("minimum", "maximum") else 1
        usual = at(self._body, next(iter(variant.places))) if not name else None
        size = len(usual) if isinstance(usual, (str, list)) else usual
        if not isinstance(size, (int, float)):
            least, most = (self._node.get(f"{end}{limit[3:]}") for end in ("min", "max"))
            size = most if limit.startswith("min") else 1 if least is None else least
        refused, accepted = round(self._node[limit] / step), None if size is None else round(size / step)
        if accepted is None or not (yield from self._takes(name, variant, accepted * step)):
            return None
        while abs(refused - accepted) > 1:
            middle = (refused + accepted) // 2
            answer = yield from self._takes(name, variant, middle * step)
            if answer is None:
                return None
            refused, accepted = (refused, middle) if answer else (middle, accepted)
        return round(accepted * step, 6)

    def _takes(self, name: str, variant: Variant, size: Any) -> Asked:
        """Whether the target accepts a value of a size."""
        value: Any = round(size, 6)
        if self._node.get("type") == "string":
            value = self._builder.fresh.text(size)
        elif self._node.get("type") == "array":
            items = self._builder.catalogue.document.resolve(self._node.get("items", {})).get("enum")
            value = items[:size] if items else at(variant.value, next(iter(variant.places)))[:1] * size
        if not self._builder.variants.accepts(self._node, value):
            return None
        sent = value if name else replaced_at(variant.value, next(iter(variant.places)), value)
        return (yield from self.ask(name, sent, variant.places))
