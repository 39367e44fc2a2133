"""Corrects the contract: for each divergence that an overlay can close, actions that are proved against the target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import yaml

from ..contract.document import Operation
from ..contract.source import ContractError, Json, json_path
from .building import Builder
from .findings import Divergence, Finding, Report
from .measuring import equal, measured
from .merging import EVERYWHERE
from .probe import Journey
from .resources import pointer_of
from .run import Learned, Runner
from .twin import Twin
from .where import steps_of

Action = dict[str, Any]
Place = list[str | int]
_SEEN = frozenset(("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern", "format"))
"""What an answer may break, and a contract do without."""
_HEAD = {"overlay": "1.0.0", "info": {"title": "Candidates", "version": "1.0.0"}}


@dataclass(slots=True)
class Candidate:
    """Actions that may close a divergence, and the operations that they concern."""

    divergence: Divergence
    actions: list[Action]
    operations: set[str]

    def closes(self, found: Iterable[Finding]) -> bool:
        """Whether nothing of the divergence is among findings."""
        return not set(map(_key, self.divergence.findings)) & set(map(_key, found))


class Correcting:
    """One per run."""

    def __init__(self, runner: Runner, progress: Callable[[int, int], None]) -> None:
        """`runner` is the one that has run; `progress` is as it is told there."""
        self._options, self._document, self._progress = runner.options, runner.document, progress
        self._meant = [operation for operation in runner.document.operations.values() if runner.is_meant(operation)]

    async def correct(self, report: Report, findings: Collection[Finding]) -> None:
        """Give the divergences of a report the actions that close them, each proved: twins that follow them are silent.

        `findings` are all of the run. What this costs beside it is added to the report.
        """
        self._report, divergences = report, report.divergences
        limits = await self._measure(divergences)
        candidates = []
        for divergence in divergences:
            actions = [
                action for f in divergence.findings for action in limits.get(_key(f)) or self._actions(f, divergence)
            ]
            if actions and (operations := self._concerned(divergence, actions)):
                unlike = {orjson.dumps(action): action for action in actions}
                candidates.append(Candidate(divergence, [*unlike.values()], operations))
        for candidate in await self._proved(candidates, findings):
            candidate.divergence.overlay = {"actions": candidate.actions}

    # -- what would correct the contract

    def _actions(self, finding: Finding, divergence: Divergence) -> list[Action]:
        """The actions against one finding; none where no overlay helps, or limits are to be measured first."""
        operation = self._document.operations.get(finding.operation)
        if operation is None:
            return []
        match finding.kind:
            case "missing-operation":
                gone = {f.operation for d in self._report.divergences for f in d.findings if f.kind == finding.kind}
                here = {o.id for o in self._document.operations.values() if o.path == operation.path}
                at: Place = ["paths", operation.path]
                return [_removal(at if here <= gone else [*at, operation.method.lower()])]
            case "missing-header":
                at = self._place(pointer_of(operation, "responses", str(finding.target.status)))
                name, is_everywhere = finding.cause, divergence.title.startswith(EVERYWHERE)
                if is_everywhere and finding.pointer.startswith("#/components/headers/"):
                    return [{"target": json_path([*steps_of(finding.pointer)]), "update": {"required": False}}]
                return [_removal([*at, "headers", name])] if at and name in self._at(at).get("headers", {}) else []
            case "scope" if finding.target.status < 300:
                at = self._place(pointer_of(operation, "x-scopes"))
                number = steps_of(finding.pointer)[-1]
                if not at or not number.isdecimal():
                    return []
                return [{"target": f"{json_path(at)}{equal(self._at(at)[int(number)])}", "remove": True}]
            case "wrong-status" | "undocumented-status" if 200 <= finding.target.status < 300:
                return _moved(operation, finding.target.status)
            case "schema":
                return [*self._loosened(finding)]
        return []

    def _loosened(self, finding: Finding) -> Iterator[Action]:
        """What answers break of a schema, removed from it; a value that an enum does not list, added to it."""
        at = self._place(finding.pointer)
        name, _, kind = finding.cause.rpartition(": ")
        keyword = kind[:1].lower() + kind[1:]
        if at and keyword in _SEEN and keyword in self._at(at):
            yield _removal([*at, keyword])
        elif at and keyword == "enum" and "enum" in self._at(at):
            try:
                value = orjson.loads(finding.target.excerpt.removeprefix(f"{name}: "))
            except ValueError:  # it is not shown
                return
            yield {"target": json_path([*at, "enum"]), "update": [value]}

    async def _measure(self, divergences: Collection[Divergence]) -> dict[tuple[str, str, str], list[Action]]:
        """The actions against bounds that are stricter or laxer, by finding: a few more probes find where they are."""
        wanted = {_key(f): f for d in divergences for f in d.findings if f.kind in ("stricter", "laxer")}
        found: dict[tuple[str, str, str], list[Action]] = {}
        writes = self._options.write
        operations = self._document.operations
        wanted = {
            key: f
            for key, f in wanted.items()
            if f.operation in operations and (writes or operations[f.operation].method == "GET")
        }

        def asks(builder: Callable[[str], Builder]) -> Iterator[Journey]:
            for key, finding in wanted.items():
                at = self._place(finding.pointer)
                if at:
                    own, actions = builder(f"measures {'/'.join(key)}"), found.setdefault(key, [])
                    operation = operations[finding.operation]
                    steps = measured(own, operation, finding, at, self._at(at), actions)
                    yield Journey(f"measures {finding.operation}", steps)

        if wanted:
            names = tuple(dict.fromkeys(finding.operation for finding in wanted.values()))
            runner = Runner(replace(self._options, only=names), self._progress, asks=asks)
            await self._run(runner)
        return found

    async def _run(self, runner: Runner) -> Learned:
        learned = await runner.run()
        self._report.requests += learned.requests
        self._report.seconds = round(self._report.seconds + learned.seconds, 1)
        self._report.left_behind += learned.left_behind
        return learned

    # -- the proof

    async def _proved(self, candidates: list[Candidate], before: Collection[Finding]) -> list[Candidate]:
        """Those that twins can follow and that leave nothing to be found of their divergence, and nothing new."""
        known = {key for finding in before for key in (_key(finding), _kept_key(finding))}
        with TemporaryDirectory() as folder:
            file = Path(folder) / "candidate.yaml"
            left = candidates
            for _ in range(2):
                left = self._followed(left, file)
                if not left:
                    return []
                _write(file, left)
                names = tuple(name for name in self._document.operations if any(name in c.operations for c in left))
                options = replace(self._options, only=names, overlays=(*self._options.overlays, file))
                learned = await self._run(Runner(options, self._progress))
                if learned.away or learned.is_late or learned.is_interrupted:
                    return []
                new = [f for f in learned.findings if not {_key(f), _kept_key(f)} & known]
                spoiled = {finding.operation for finding in new}
                good = [c for c in left if c.closes(learned.findings) and not c.operations & spoiled]
                if len(good) == len(left):
                    return good
                left = good
        return left

    def _followed(self, candidates: list[Candidate], file: Path) -> list[Candidate]:
        """Those with which a server starts."""
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
            Twin(self._options.seed, (*self._options.overlays, file))
        except ContractError:
            return False
        return True

    def _concerned(self, divergence: Divergence, actions: list[Action]) -> set[str]:
        """The operations to be probed again: those that use what changes, and a neighbour of one that goes."""
        operations = self._document.operations
        if divergence.kind == "missing-operation":
            gone = set(divergence.operations)
            others = [o for o in self._meant if o.id not in gone] or [
                o for o in operations.values() if o.id not in gone
            ]
            return {_neighbour(operations[name], others) for name in gone} if others else set()
        changed = {action["target"].partition(".components.")[2] for action in actions} - {""}
        names = {tuple(each.split(".")[:2]) for each in changed}
        return set(divergence.operations) | {o.id for o in self._meant if names & self._uses(o.raw)}

    def _uses(self, node: Json, seen: set[tuple[str, ...]] | None = None) -> set[tuple[str, ...]]:
        """The components that a part of the contract refers to, as (kind, name)."""
        seen = set() if seen is None else seen
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and (name := tuple(steps_of(reference)[1:3])) not in seen:
                seen.add(name)
                self._uses(self._document.resolve({"$ref": reference}), seen)
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            self._uses(inner, seen)
        return seen

    # -- places

    def _place(self, pointer: str) -> Place:
        """The keys to what a pointer leads to, with references followed; none where there is nothing."""
        at: Place = []
        node: Any = self._document.raw
        for step in [*steps_of(pointer), None]:
            while isinstance(node, dict) and "$ref" in node:
                at, node = [*steps_of(node["$ref"])], self._document.resolve({"$ref": node["$ref"]})
            if step is None:
                break
            key = int(step) if isinstance(node, list) and step.isdecimal() else step
            try:
                node = node[key]
            except (KeyError, IndexError, TypeError):
                return []
            at.append(key)
        return at

    def _at(self, place: Place) -> Any:
        node: Any = self._document.raw
        for step in place:
            node = node[step]
        return node


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.kind, finding.operation, finding.pointer or finding.cause


def _kept_key(finding: Finding) -> tuple[str, str, str]:
    """A finding without its place, which an action may move."""
    return finding.kind, finding.operation, f"{finding.group} {finding.cause} {finding.target.status}"


def _neighbour(gone: Operation, others: list[Operation]) -> str:
    """The operation whose journeys are the likeliest to have asked one that is not there."""

    def shared(other: Operation) -> int:
        pairs = zip(gone.path.split("/"), other.path.split("/"), strict=False)
        return next((number for number, (one, two) in enumerate(pairs) if one != two), len(other.path.split("/")))

    return max(others, key=shared).id


def _moved(operation: Operation, status: int) -> list[Action]:
    """The response of a success under another status."""
    if status in operation.responses or not operation.successes:
        return []
    old, at = str(operation.successes[0]), ["paths", operation.path, operation.method.lower(), "responses"]
    response = dict(operation.raw["responses"][old])
    if status == 204:
        response = {name: value for name, value in response.items() if name not in ("content", "links")}
    return [{"target": json_path([*at]), "update": {str(status): response}}, _removal([*at, old])]


def _removal(at: Place) -> Action:
    return {"target": json_path(at), "remove": True}


# -- the file


def _write(file: Path, candidates: Iterable[Candidate]) -> None:
    actions = {orjson.dumps(action): action for candidate in candidates for action in candidate.actions}
    file.write_text(yaml.safe_dump({**_HEAD, "actions": [*actions.values()]}), encoding="utf-8")
