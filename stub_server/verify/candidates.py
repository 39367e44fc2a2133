"""Actions of an overlay that may close divergences, and the proof that they do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import yaml

from ..contract.document import Document, Operation
from ..contract.source import ContractError, Json, Place, json_path, unescaped, value_at
from .findings import Divergence, Finding
from .merging import EVERYWHERE
from .places import pointer_of
from .twin import Twin

Action = dict[str, Any]
Key = tuple[str, str, str]
_SEEN = frozenset(("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern", "format"))
"""Keywords that an answer may violate, and that can be removed from the contract."""
_HEAD = {"overlay": "1.0.0", "info": {"title": "Candidates", "version": "1.0.0"}}


@dataclass(slots=True)
class Candidate:
    """Actions that may close a divergence, and the operations that they concern."""

    divergence: Divergence
    actions: list[Action]
    operations: set[str]

    def closes(self, found: Iterable[Finding]) -> bool:
        """Whether none of the divergence's findings is among these."""
        return not set(map(key_of, self.divergence.findings)) & set(map(key_of, found))


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
                spoiled = {f.operation for f in after if not {key_of(f), _kept_key(f)} & known}
                good = [c for c in left if c.closes(after) and not c.operations & spoiled]
                if len(good) == len(left):
                    break
                left = good
        for candidate in left:
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
                at: Place = ["paths", operation.path]
                return [_removal(at if here <= set(gone) else [*at, operation.method.lower()])]
            case "missing-header":
                at = self.place(pointer_of(operation, "responses", finding.target.status))
                name, is_everywhere = finding.cause, divergence.title.startswith(EVERYWHERE)
                if is_everywhere and finding.pointer.startswith("#/components/headers/"):
                    return [{"target": json_path([*unescaped(finding.pointer)]), "update": {"required": False}}]
                return [_removal([*at, "headers", name])] if at and name in self._at(at).get("headers", {}) else []
            case "scope" if finding.target.status < 300:
                at = self.place(pointer_of(operation, "x-scopes"))
                number = unescaped(finding.pointer)[-1]
                if not at or not number.isdecimal():
                    return []
                return [{"target": f"{json_path(at)}{equal(self._at(at)[int(number)])}", "remove": True}]
            case "wrong-status" | "undocumented-status" if 200 <= finding.target.status < 300:
                return _moved(operation, finding.target.status)
            case "schema":
                return [*self._loosened(finding)]
        return []

    def _at(self, place: Place) -> Any:
        return value_at(self._document.raw, place)

    def _loosened(self, finding: Finding) -> Iterator[Action]:
        """Remove the keyword that an answer violates, or add the value that an enum does not list."""
        at = self.place(finding.pointer)
        name, _, kind = finding.cause.rpartition(": ")
        keyword = kind[:1].lower() + kind[1:]
        if at and keyword in _SEEN and keyword in self._at(at):
            yield _removal([*at, keyword])
        elif at and keyword == "enum" and "enum" in self._at(at):
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

    def _uses(self, node: Json, seen: set[tuple[str, ...]] | None = None) -> set[tuple[str, ...]]:
        """The components that a part of the contract refers to, as (kind, name)."""
        seen = set() if seen is None else seen
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and (name := tuple(unescaped(reference)[1:3])) not in seen:
                seen.add(name)
                self._uses(self._document.resolve({"$ref": reference}), seen)
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            self._uses(inner, seen)
        return seen

    def place(self, pointer: str) -> Place:
        """The place of what a pointer leads to, with references followed; empty if there is nothing."""
        at: Place = []
        node: Any = self._document.raw
        for step in [*unescaped(pointer), None]:
            while isinstance(node, dict) and "$ref" in node:
                at, node = [*unescaped(node["$ref"])], self._document.resolve({"$ref": node["$ref"]})
            if step is None:
                break
            key = int(step) if isinstance(node, list) and step.isdecimal() else step
            try:
                node = node[key]
            except (KeyError, IndexError, TypeError):
                return []
            at.append(key)
        return at


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
    old, at = str(operation.successes[0]), ["paths", operation.path, operation.method.lower(), "responses"]
    response = dict(operation.raw["responses"][old])
    if status == 204:
        response = {name: value for name, value in response.items() if name not in ("content", "links")}
    return [{"target": json_path([*at]), "update": {str(status): response}}, _removal([*at, old])]


def _removal(at: Place) -> Action:
    return {"target": json_path(at), "remove": True}


def _write(file: Path, candidates: Iterable[Candidate]) -> None:
    actions = {orjson.dumps(action): action for candidate in candidates for action in candidate.actions}
    file.write_text(yaml.safe_dump({**_HEAD, "actions": [*actions.values()]}), encoding="utf-8")
