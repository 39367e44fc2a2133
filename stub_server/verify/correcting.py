"""Corrects the contract: actions of an overlay that may close divergences, and the proof that they do."""

from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson
import yaml

from ..contract.document import Document, Operation
from ..contract.source import ContractError, Json, Place, json_path, nodes, unescaped
from .catalogue import at, located, pointer_of
from .findings import Divergence, Finding, Report
from .judging import Run
from .merging import EVERYWHERE
from .probes import SETUP, Builder, Journey, Probe, Seen, query_text
from .run import Runner
from .twin import Twin
from .variants import Variant, replaced_at

Action = dict[str, Any]
Key = tuple[str, str, str]
Asked = Generator[Probe, Seen, bool | None]
_SEEN = frozenset(("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern", "format"))
"""Keywords that an answer may violate, and that can be removed from the contract."""
_SIZES = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
_NOT_LIMITS = frozenset(("type", "properties", "required", "items", "oneOf", "allOf", "anyOf"))
_HEAD = {"overlay": "1.0.0", "info": {"title": "Candidates", "version": "1.0.0"}}


class Candidate(NamedTuple):
    """Actions that may close a divergence, and the operations that they concern."""

    divergence: Divergence
    actions: list[Action]
    operations: set[str]


class Candidates:
    """One per contract and its overlays."""

    def __init__(
        self, document: Document, seed: int, overlays: tuple[Path, ...], probed: Sequence[Operation] | None = None
    ) -> None:
        """`probed` are the operations that a proof may send; all of them by default."""
        self._document, self._seed, self._overlays = document, seed, overlays
        self._probed = [*document.operations.values()] if probed is None else probed

    async def correct(
        self,
        divergences: Collection[Divergence],
        before: Collection[Finding],
        ask: Callable[[list[Candidate], Path], Awaitable[Collection[Finding] | None]],
        limits: Mapping[Key, list[Action]] | None = None,
    ) -> None:
        """Set the actions of the divergences that an overlay closes, each of them proved.

        `before` are all findings. `ask` returns those of the same requests under an overlay with candidates, or None
        if it could not find out. `limits` has the actions against findings about bounds.
        """
        left = [*self._of(divergences, limits or {})]
        known = {key for finding in before for key in (key_of(finding), _kept_key(finding))}
        with TemporaryDirectory() as folder:
            file = Path(folder) / "candidate.yaml"
            for _ in range(2):
                left = self._followed(left, file)
                if not left:
                    return
                _write(file, left)
                after = await ask(left, file)
                if after is None:
                    return
                found = set(map(key_of, after))
                spoiled = {f.operation for f in after if not {key_of(f), _kept_key(f)} & known}
                good = [
                    each
                    for each in left
                    if found.isdisjoint(map(key_of, each.divergence.findings)) and spoiled.isdisjoint(each.operations)
                ]
                if len(good) == len(left):
                    break
                left = good
            # Only these are written as actions; the others are comments.
            written = self._followed([each for each in left if each.divergence.basis == "assumed"], file)
        for candidate in left:
            if candidate in written or candidate.divergence.basis == "documented":
                candidate.divergence.overlay = {"actions": candidate.actions}

    def _of(self, divergences: Collection[Divergence], limits: Mapping[Key, list[Action]]) -> Iterator[Candidate]:
        gone = {f.operation for d in divergences for f in d.findings if f.kind == "missing-operation"}
        for divergence in divergences:
            actions = [
                action
                for f in divergence.findings
                for action in limits.get(key_of(f)) or self._actions(f, divergence, gone)
            ]
            if actions and (operations := self._concerned(divergence, actions)):
                unlike = {orjson.dumps(action): action for action in actions}
                yield Candidate(divergence, [*unlike.values()], operations)

    def _followed(self, candidates: list[Candidate], file: Path) -> list[Candidate]:
        """The candidates with which a server starts."""
        if not candidates or self._starts(candidates, file):
            return candidates
        followed: list[Candidate] = []
        for candidate in candidates:
            if self._starts([*followed, candidate], file):
                followed.append(candidate)
        return followed

    def _starts(self, candidates: list[Candidate], file: Path) -> bool:
        _write(file, candidates)
        try:
            Twin(self._seed, (*self._overlays, file))
        except ContractError:
            return False
        return True

    def _actions(self, finding: Finding, divergence: Divergence, gone: Collection[str]) -> list[Action]:
        """The actions against one finding; none if no overlay helps, or if it is about a bound."""
        operation = self._document.operations.get(finding.operation)
        if operation is None:
            return []
        match finding.kind:
            case "missing-operation":
                here = {o.id for o in self._document.operations.values() if o.path == operation.path}
                return [_removal(operation.at[:-1] if here <= set(gone) else operation.at)]
            case "missing-header":
                at, response = self.place(pointer_of(operation, "responses", finding.target.status))
                name, is_everywhere = finding.cause, divergence.title.startswith(EVERYWHERE)
                if is_everywhere and finding.pointer.startswith("#/components/headers/"):
                    return [{"target": json_path([*unescaped(finding.pointer)]), "update": {"required": False}}]
                return [_removal([*at, "headers", name])] if name in (response or {}).get("headers", {}) else []
            case "scope" if finding.target.status < 300:
                at, scopes = self.place(pointer_of(operation, "x-scopes"))
                number = unescaped(finding.pointer)[-1]
                if not scopes or not number.isdecimal():
                    return []
                return [{"target": f"{json_path(at)}{equal(scopes[int(number)])}", "remove": True}]
            case "wrong-status" | "undocumented-status" if 200 <= finding.target.status < 300:
                return _moved(operation, finding.target.status)
            case "schema":
                return [*self._loosened(finding)]
        return []

    def _loosened(self, finding: Finding) -> Iterator[Action]:
        """Remove the keyword that an answer violates, or add the value that an enum does not list."""
        at, schema = self.place(finding.pointer)
        name, _, kind = finding.cause.rpartition(": ")
        keyword = kind[:1].lower() + kind[1:]
        if not isinstance(schema, dict) or keyword not in schema:
            return
        if keyword in _SEEN:
            yield _removal([*at, keyword])
        elif keyword == "enum":
            try:
                value = orjson.loads(finding.target.excerpt.removeprefix(f"{name}: "))
            except ValueError:  # the report shows its type only
                return
            yield {"target": json_path([*at, "enum"]), "update": [value]}

    def _concerned(self, divergence: Divergence, actions: list[Action]) -> set[str]:
        """The operations to probe again: those that use what changes, and a neighbour of each that is removed."""
        operations = self._document.operations
        if divergence.kind == "missing-operation":
            gone = set(divergence.operations)
            others = [o for o in self._probed if o.id not in gone] or [
                o for o in operations.values() if o.id not in gone
            ]
            return {_neighbour(operations[name], others) for name in gone} if others else set()
        changed = {action["target"].partition(".components.")[2] for action in actions} - {""}
        names = {tuple(each.split(".")[:2]) for each in changed}
        return set(divergence.operations) | {o.id for o in self._probed if names & self._uses(o.raw)}

    def _uses(self, part: Json, seen: set[tuple[str, ...]] | None = None) -> set[tuple[str, ...]]:
        """The components that a part of the contract refers to, as (kind, name)."""
        seen = set() if seen is None else seen
        for _, node in nodes(part):
            reference = node.get("$ref") if isinstance(node, dict) else None
            if isinstance(reference, str) and (name := tuple(unescaped(reference)[1:3])) not in seen:
                seen.add(name)
                self._uses(self._document.resolve(node), seen)
        return seen

    def place(self, pointer: str) -> tuple[Place, Any]:
        """The place of what a pointer leads to, and what is there, with references followed; None if nothing is."""
        at, node = located(self._document, pointer)
        while isinstance(node, dict) and "$ref" in node:
            at, node = located(self._document, node["$ref"])
        return at, node


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
        run = await self._run(Runner(options, self._progress))
        return None if run.away or run.is_late or run.is_interrupted else run.findings

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
        measures: dict[Key, _Measure] = {}

        def asks(builder: Callable[[str], Builder]) -> Iterator[Journey]:
            for key, finding in wanted.items():
                place, node = self._candidates.place(finding.pointer)
                if node is not None:
                    own = builder(f"measures {'/'.join(key)}")
                    measures[key] = _Measure(own, operations[finding.operation], finding, place, node)
                    yield measures[key].journey()

        if wanted:
            names = tuple(dict.fromkeys(finding.operation for finding in wanted.values()))
            await self._run(Runner(replace(self._options, only=names), self._progress, asks=asks))
        return {key: measure.actions for key, measure in measures.items()}

    async def _run(self, runner: Runner) -> Run:
        run = await runner.run()
        self._report.requests += run.target.requests
        self._report.seconds = round(self._report.seconds + run.seconds, 1)
        self._report.left_behind += run.cleanup.left_behind
        return run


class _Measure:
    """Measures the schema at a place, which a finding of an operation is about."""

    def __init__(self, builder: Builder, operation: Operation, finding: Finding, place: Place, node: Json) -> None:
        self.actions: list[Action] = []
        self._builder, self._operation, self._pointer = builder, operation, finding.pointer
        self._is_stricter, self._place, self._node = finding.kind == "stricter", place, node

    def journey(self) -> Journey:
        """Try the limits of the schema, and note the actions against them."""
        if not self._builder.may_prepare(self._operation):
            return
        yield from self._builder.prepare(self._operation)
        self._body = self._builder.body(self._operation)
        for name, variant in [each for each in self._variants() if each[1].is_accepted is self._is_stricter]:
            was_accepted = yield from self._ask(name, variant.value, variant.places)
            if was_accepted is None or was_accepted is variant.is_accepted:
                continue
            value = variant.value if name else at(variant.value, next(iter(variant.places), ()))
            if was_accepted:
                self.actions += [_removal([*self._place, each]) for each in self._limits(value)]
            elif isinstance(value, str) and value in self._node.get("enum", ()):
                self.actions.append({"target": json_path([*self._place, "enum"]) + equal(value), "remove": True})
            elif (limit := self._limit(value)) is not None:
                kept = yield from self._kept(limit, name, variant)
                if kept is not None:
                    self.actions.append({"target": json_path(self._place), "update": {limit: kept}})

    def _variants(self) -> Iterator[tuple[str, Variant]]:
        """The variants of this schema, each with the name of its parameter; the name is empty for a body."""
        for name, variant in self._builder.parameter_variants(self._operation):
            if variant.pointer == self._pointer:
                yield name, variant
        if self._body is not None:
            for variant in self._builder.body_variants(self._operation, self._body):
                if variant.pointer == self._pointer and variant.places:
                    yield "", variant

    def _ask(self, name: str, value: Any, places: frozenset[tuple[str, ...]]) -> Asked:
        """Whether the target accepts the value of a parameter, or a body; None if its answer does not show it."""
        builder, operation = self._builder, self._operation
        query = {name: query_text(value)} if name else {}
        makes, body = "", None
        if not name:
            resource = builder.resource_of(operation)
            if resource is not None and operation in resource.creates:
                value, makes = builder.fresh.renewed(value, places), f"{resource.role} more"
            body = builder.harmless(operation, value)
        seen = yield builder.probe(
            operation, SETUP, "where the bound is", self._pointer, query=query, body=body, makes=makes, keeps=False,
            is_checked=False,
        )  # fmt: skip
        return True if seen.target.is_success else False if seen.target.status in (400, 422) else None

    def _limits(self, value: Any) -> list[str]:
        """The keywords of the schema that refuse a value: one, or a format with its pattern."""
        accepts = self._builder.variants.accepts
        keys = [key for key in self._node if key not in _NOT_LIMITS and not key.startswith("x-")]
        for gone in (*([key] for key in keys), ["format", "pattern"]):
            if accepts({key: inner for key, inner in self._node.items() if key not in gone}, value):
                return [key for key in gone if key in self._node]
        return []

    def _limit(self, value: Any) -> str | None:
        """The keyword of the bound that a value is equal to."""
        size = len(value) if isinstance(value, (str, list)) else value
        names = _SIZES.get(str(self._node.get("type")), ("minimum", "maximum"))
        return next((name for name in names if size is not None and self._node.get(name) == size), None)

    def _kept(self, limit: str, name: str, variant: Variant) -> Generator[Probe, Seen, Any]:
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
        return (yield from self._ask(name, sent, variant.places))


def equal(value: Any) -> str:
    """The end of a JSONPath: the entries of a list that are equal to a value."""
    return f"[?@ == {orjson.dumps(value).decode()}]"


def key_of(finding: Finding) -> Key:
    """What is the same for a finding in each run."""
    return finding.kind, finding.operation, finding.pointer or finding.cause


def _kept_key(finding: Finding) -> Key:
    """A finding without its pointer, which an action may change."""
    return finding.kind, finding.operation, f"{finding.group} {finding.cause} {finding.target.status}"


def _neighbour(gone: Operation, others: list[Operation]) -> str:
    """The operation with the most similar path: its journeys probably send the removed one too."""

    def shared(other: Operation) -> int:
        pairs = zip(gone.path.split("/"), other.path.split("/"), strict=False)
        return next((number for number, (one, two) in enumerate(pairs) if one != two), len(other.path.split("/")))

    return max(others, key=shared).id


def _moved(operation: Operation, status: int) -> list[Action]:
    """Document the response of a success under another status."""
    if status in operation.responses or not operation.successes:
        return []
    old, at = str(operation.successes[0]), [*operation.at, "responses"]
    response = dict(operation.raw["responses"][old])
    if status == 204:
        response = {name: value for name, value in response.items() if name not in ("content", "links")}
    return [{"target": json_path(at), "update": {str(status): response}}, _removal([*at, old])]


def _removal(at: Place) -> Action:
    return {"target": json_path(at), "remove": True}


def _write(file: Path, candidates: Iterable[Candidate]) -> None:
    actions = {orjson.dumps(action): action for candidate in candidates for action in candidate.actions}
    file.write_text(yaml.safe_dump({**_HEAD, "actions": [*actions.values()]}), encoding="utf-8")
