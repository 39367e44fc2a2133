"""Corrects the contract: actions of an overlay that may close divergences, and the proof that they do."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
import yaml

from ...contract.document import Document, Operation
from ...contract.source import ContractError, Json, Place, json_path, nodes, unescaped
from .catalogue import located, pointer_of
from .findings import Divergence, Finding, Report
from .judging import Run
from .merging import EVERYWHERE
from .run import Runner
from .twin import Twin
from .variants import keyword_of

Action = dict[str, Any]
Key = tuple[str, str, str]
_SEEN = frozenset(("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern", "format"))
"""Keywords that an answer may violate, and that can be removed from the contract."""
_TOGETHER = {"format": ("pattern",), "maxLength": (), "pattern": ("format",)}
"""Keywords that may refuse a value together."""
_HEAD = {"overlay": "1.0.0", "info": {"title": "Candidates", "version": "1.0.0"}}


class Candidate(NamedTuple):
    """Actions that may close a divergence, and the operations that they concern."""

    divergence: Divergence
    actions: list[Action]
    operations: set[str]


class Candidates:
    """One per contract and its overlays."""

    def __init__(
        self,
        document: Document,
        seed: int,
        overlays: tuple[Path, ...],
        probed: Sequence[Operation] | None = None,
        measured: Mapping[tuple[str, str], Any] = MappingProxyType({}),
    ) -> None:
        """`probed` are the operations that a proof may send; all by default. `measured` are limits of the target."""
        self._measured = measured
        self._document, self._seed, self._overlays = document, seed, overlays
        self._probed = [*document.operations.values()] if probed is None else probed

    async def correct(
        self,
        divergences: Collection[Divergence],
        before: Collection[Finding],
        ask: Callable[[list[Candidate], Path], Awaitable[Collection[Finding] | None]],
    ) -> None:
        """Set the actions of the divergences that an overlay closes, each of them proved.

        `before` are all findings. `ask` returns those of the same requests under an overlay with candidates, or None
        if it could not find out.
        """
        for divergence in divergences:
            divergence.is_tried = True
        left = [*self._of(divergences)]
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

    def _of(self, divergences: Collection[Divergence]) -> Iterator[Candidate]:
        gone = {f.operation for d in divergences for f in d.findings if f.kind == "missing-operation"}
        for divergence in divergences:
            actions = [action for f in divergence.findings for action in self._actions(f, divergence, gone)]
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
        """The actions against one finding; none if no overlay helps."""
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
            case "laxer" | "stricter":
                return [*self._bounded(finding)]
        return []

    def _bounded(self, finding: Finding) -> Iterator[Action]:
        """Remove the keyword of a limit that the target does not have, or set the target's own."""
        at, node = self.place(finding.pointer)
        if not isinstance(node, dict):
            return
        keyword = keyword_of(finding.cause, node)
        if finding.kind == "laxer" and keyword not in ("", "enum"):
            yield from (
                _removal([*at, each]) for each in dict.fromkeys((keyword, *_TOGETHER.get(keyword, ()))) if each in node
            )
        elif (limit := self._measured.get((finding.pointer, keyword))) is not None:
            yield {"target": json_path(at), "update": {keyword: limit}}
        elif (option := finding.cause.removeprefix("the value ")) in node.get("enum", ()):
            yield {"target": json_path([*at, "enum"]) + equal(option), "remove": True}

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

    def __init__(self, runner: Runner, run: Run, progress: Callable[[int, int], None]) -> None:
        """`run` is that of the runner; `progress` is called as by a run."""
        self._options, self._document, self._progress = runner.options, runner.document, progress
        probed = [operation for operation in runner.document.operations.values() if runner.options.includes(operation)]
        options = runner.options
        self._candidates = Candidates(runner.document, options.seed, options.overlays, probed, run.measured)

    async def correct(self, report: Report, findings: Collection[Finding]) -> None:
        """Set the actions of the divergences that an overlay closes: another run with twins that follow it is silent.

        `findings` are all of the run. The requests and seconds of this work are added to the report.
        """
        self._report = report
        await self._candidates.correct(report.divergences, findings, self._ask)

    async def _ask(self, candidates: list[Candidate], file: Path) -> Collection[Finding] | None:
        names = tuple(name for name in self._document.operations if any(name in c.operations for c in candidates))
        options = replace(self._options, only=names, overlays=(*self._options.overlays, file))
        run = await self._run(Runner(options, self._progress))
        return None if run.away or run.is_late or run.is_interrupted else run.findings

    async def _run(self, runner: Runner) -> Run:
        run = await runner.run()
        self._report.requests += run.target.requests
        self._report.seconds = round(self._report.seconds + run.seconds, 1)
        self._report.left_behind += run.cleanup.left_behind
        return run


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
