"""The report: collects findings, and merges those that have one cause into one divergence."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

from ...app import data_dir
from ...contract.document import Operation, Response
from ...contract.pointers import canonical, located
from ...core.record import Body
from ...settings import Overlays
from .conformity import Conformity, words
from .findings import CLASSES, GROUPS, LISTED, SEVERITY, Divergence, Finding, listed
from .showing import Showing
from .where import Where

EVERYWHERE = "everywhere"
# operations in which a class can be everywhere: a run of one operation has no everywhere
_FEWEST = 3
_MISSING = "missing-operation"
# statuses that show an operation: a 404 may be like that of an unknown path
_OF_ROUTES = (200, 201, 202, 204, 409, 422)
_VARIES = re.compile(r"[0-9.]+ |than \w+|the \w+, .*|\bbeyond the \w+")
_MEMBER = re.compile(r".*/(?:properties|responses/\w+/headers)/([^/]+)").match
Pairs = set[tuple[str, int]]
"""OperationIds with statuses."""


class Coverage(NamedTuple):
    """What of the contract was answered. `rows` have by operationId `ok`, `diverges`, `unreached`,
    or `none` for each of `GROUPS`; `percent` is of the documented statuses.
    """

    rows: dict[str, dict[str, str]]
    unreached: list[Body]
    percent: float


class Report:
    """The report of a run. It collects findings and statuses, and merges the findings.

    `pairs` are those of answers; `groups` are by operationId, `suspected` by class. The rest is
    there once it has ended.
    """

    exit, hidden, seed, requests = 0, 0, 0, 0
    """The exit code is 0 to 3. Those hidden are divergences that a baseline has."""
    seconds, begins = 0.0, ""
    """The names of the run's records begin so."""
    left_behind, notes = tuple[str, ...](), tuple[str, ...]()
    """Paths of records, and sentences for the terminal."""

    def __init__(self, overlays: Overlays, address: str, mode: str) -> None:
        """`mode` is `read`, `write`, `har` or `proxy`. Only one that writes shows values of
        records: they are its own. Raises ContractError.
        """
        self.overlays, self._where = overlays, Where(data_dir("openapi"), overlays)
        self.document, self.address, self.mode = self._where.document, address, mode
        self.showing = Showing(self.document, address, values=mode == "write")
        self.conformity = Conformity(self.document)
        self.findings: list[Finding] = []
        self.pairs: Pairs = set()
        self.groups: dict[str, set[str]] = defaultdict(set)
        self.suspected: dict[str, set[str]] = defaultdict(set)
        self.divergences: list[Divergence] = []
        self.coverage = Coverage({}, [], 0.0)
        self._traits = cache(self._traits_of)

    @property
    def head(self) -> Body:
        """What a report is about, for programs."""
        known = self.document.identity
        contract = f"{known['version']} {known['digest'][:12]}"
        about = {"target": self.address, "contract": contract, "mode": self.mode}
        return about | {"seed": self.seed, "coverage": self.coverage.percent}

    def answered(self, operation: str, status: int, group: str, about: str = "") -> None:
        """Note that an answer was judged, which may be about another operation too."""
        self.pairs.add((operation, status))
        if group in GROUPS:
            self.groups[operation].add(group)
            self.groups[about or operation].add(group)

    def end(
        self,
        among: Collection[str],
        known: Collection[str],
        reasons: Callable[[Operation, Response], Iterable[str | None]] = lambda *_: (),
    ) -> None:
        """Count what was reached of the operations `among`, and hide the divergences of `known`
        fingerprints. A documented status that there are `reasons` not to reach counts for nothing.
        """
        rows, unreached, documented = {}, list[Body](), 0
        for name in among:
            operation = self.document.operations[name]
            row = dict.fromkeys(GROUPS, "none") | {"accepts": "unreached", "rejects": "unreached"}
            rows[name] = row | dict.fromkeys(self.groups.get(name, ()), "ok")
            documented += len(operation.responses)
            for status, response in operation.responses.items():
                if (name, status) not in self.pairs:
                    why = next(filter(None, reasons(operation, response)), "")
                    unreached.append({"operationId": name, "status": status, "reason": why})
        reached = documented - len(unreached)
        beyond = sum(bool(it["reason"]) for it in unreached)
        percent = round(100 * reached / (documented - beyond or 1), 1)
        self.coverage = Coverage(rows, unreached, percent)
        for divergence in [*self.divergences]:
            for name, group in divergence.cases:
                if name in rows:
                    rows[name][group] = "diverges"
            if divergence.fingerprint in known:
                self.divergences.remove(divergence)
                self.hidden += 1

    def merge(self) -> list[Divergence]:
        """The divergences: first what the source document shows and what no backend may do, last
        what is so everywhere; each time first what costs data or money.

        - Findings of one class with the same cause are merged: a check that bodies lack, or
          parameters, what is refused in the same words, or a whole class with a `phrase`, else a
          line of the contract.
        - A class found in more than half of its operations is one divergence. Its operations are
          those that were probed for it (`suspected`), else all that were probed.
        - Of a missing operation, nothing else is reported, and nothing of what follows from others.
        """
        order = [*self.document.operations, ""]

        def place(each: Finding) -> tuple[int, bool, bool, str]:
            is_move = each.group == "transitions"  # what is refused in any state is no move
            return order.index(each.operation), is_move, not each.place, each.pointer

        findings = sorted(self._independent(), key=place)
        causes: dict[tuple[str, str], list[Finding]] = defaultdict(list)
        everywhere = {kind for kind in CLASSES if self._is_everywhere(kind, findings)}
        for each in findings:
            is_assumed = each.kind in everywhere and self._basis(each) == "assumed"
            cause = EVERYWHERE if is_assumed else self._cause(each)
            causes[each.kind, cause].append(each)
        found = [self._divergence(cause, merged) for (_, cause), merged in causes.items()]
        return sorted(found, key=_rank)

    def _independent(self) -> Iterator[Finding]:
        """The findings that do not follow from others, by what they share: a class `follows` from
        others in fixtures/verify.yaml.
        """
        there = {name for name, status in self.pairs if status in _OF_ROUTES}
        findings = []
        for each in self.findings:
            if each.kind != _MISSING or each.operation not in there:
                findings.append(each)
        known = set[tuple[str, str, str]]()
        for each in findings:
            known |= {(each.kind, *trait) for trait in self._traits(each).items()}
        for each in findings:
            traits = self._traits(each)
            follows = {_MISSING: "operation"} | CLASSES[each.kind].get("follows", {})
            shared = {(kind, name, traits.get(name)) for kind, name in follows.items()}
            if each.kind == _MISSING or known.isdisjoint(shared):
                yield each

    def _traits_of(self, it: Finding) -> dict[str, str]:
        """What findings of one cause have in common, by the names that fixtures/verify.yaml has
        for it.
        """
        place, named = canonical(self.document, it.pointer), _MEMBER(it.pointer)
        parameter = it.place if "/parameters/" in it.pointer else ""
        name = parameter or (named[1] if named else "")
        operation = self.document.operations.get(it.operation)
        records = "" if operation is None else operation.tag
        check = _VARIES.sub("", it.tries).strip() or "beyond a limit"
        if place.endswith("/content"):
            check = "a body that is no JSON object"
        is_gone = it.kind == "not-deleted" or (it.tries, it.target.status) == (LISTED, 404)
        said = words(it.target.excerpt)
        code = it.expected.excerpt.partition('"code":"')[2].partition('"')[0]
        traits = {
            "operation": it.operation,
            "place": place,
            "holder": place.rpartition("/properties/")[0],
            "name": name,
            "member": name and f"{records} {name}",
            "written": f"{it.operation} {name or it.place}" if name or it.place else "",
            "deleted": records if is_gone else "",
            "documented": records if self._basis(it) == "documented" else "",
            "refusal": said and f"{it.operation} {said}",
            "words": said and f"{records} {said}",
            "statuses": f"{it.target.status}, not {it.expected.status}",
            "rule": code or words(it.expected.excerpt),
            "parameter": parameter,
            "check": "a wrong parameter" if parameter else check,
            "key": it.tries if it.tries.startswith("a key") else "",
        }
        return {trait: value for trait, value in traits.items() if value}

    def _cause(self, finding: Finding) -> str:
        """What findings of one class have in common that are one divergence."""
        traits, by = self._traits(finding), CLASSES[finding.kind].get("by", ["place"])
        return next((traits[name] for name in by if name in traits), "")

    def _name(self, finding: Finding) -> str:
        """What a title names of a finding beside its operation."""
        if finding.kind == "lifecycle":
            move = finding.tries.removeprefix(f"{finding.operation} ")
            return f"{move} ({finding.target.status})"
        return finding.place or self._traits(finding).get("name", "")

    def _is_everywhere(self, kind: str, findings: Collection[Finding]) -> bool:
        """Whether a class was found in more than half of the operations in which it can be."""
        among = self.groups.keys() & self.suspected.get(kind, self.groups.keys())
        shown = among & {each.operation for each in findings if each.kind == kind}
        is_often = len(shown) >= _FEWEST and 2 * len(shown) > len(among)
        return is_often and not CLASSES[kind].get("by_line")

    def _divergence(self, cause: str, findings: list[Finding]) -> Divergence:
        shown, members = findings[0], defaultdict[str, dict[str, None]](dict)
        for each in findings:
            members[each.operation].setdefault(self._name(each))
        parts = []
        for name, inner in members.items():
            parts.append(f"{name} {', '.join(filter(None, inner))}".strip())
        title = shown.title.removesuffix(".")
        causes = listed([*dict.fromkeys(map(self._cause, findings))], "; ")
        phrase = CLASSES[shown.kind].get("phrase", "").format(cause=causes)
        if phrase and (len(parts) > 1 or "," in parts[0]):
            title = f"{phrase}: {'; '.join(parts)}"
        return Divergence(
            # a baseline hides no member that is new
            fingerprint=blake2b(
                repr((shown.kind, cause, parts)).encode(), digest_size=16
            ).hexdigest(),
            operations=[name for name in self.document.operations if name in members],
            title=f"{EVERYWHERE}: {title}" if cause == EVERYWHERE else title,
            basis=self._basis(shown),
            line=self._where.line(shown.pointer),
            findings=findings,
        )

    def _basis(self, finding: Finding) -> str:
        """Whether the source document shows in full what the pointer of a finding leads to: it
        shows requests and answers, but no rules.

        The `x-basis` of a schema says it of a member, that of the operation of anything else. A
        member with an entry in `x-basis-notes` is assumed in part, most often its bounds: they say
        nothing about what is stored. What an answer has around a record is shown only of the
        operations whose responses are.
        """
        kind, operation = finding.kind, self.document.operations.get(finding.operation)
        is_refusal = kind == "wrong-status" and finding.expected.status >= 400
        if operation is None or is_refusal or CLASSES[kind].get("always_assumed"):
            return "assumed"
        place = canonical(self.document, finding.pointer)
        holder, is_member, inside = place.partition("/properties/")
        own = "documented" if operation.is_documented else "assumed"
        if not is_member:
            return own if place.startswith("#/paths/") else "assumed"
        schema, member = located(self.document, holder)[1] or {}, inside.partition("/")[0]
        is_around = kind == "schema" and "id" not in schema.get("properties", ())
        is_in_part = member in schema.get("x-basis-notes", ())
        if kind in ("not-persisted", "read-only") or place.endswith(("/type", "/format")):
            is_in_part = False
        if is_in_part or (is_around and own == "assumed"):
            return "assumed"
        return str(schema.get("x-basis", {}).get(member, "assumed"))


def _rank(divergence: Divergence) -> tuple[bool, bool, int]:
    kind, is_shown = divergence.kind, divergence.basis == "documented"
    is_certain = is_shown or bool(CLASSES[kind].get("certain"))
    is_everywhere = divergence.title.startswith(EVERYWHERE)
    return is_everywhere and not is_certain, not is_certain, SEVERITY.index(kind)
