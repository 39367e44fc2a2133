"""Collects findings, and merges those that have one cause into one divergence."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from hashlib import blake2b
from typing import Any

from ...app import data_dir
from ...contract.document import JSON
from ...contract.pointers import below, canonical, located
from ...contract.source import unescaped
from ...settings import Overlays
from .conformity import Conformity, words
from .findings import CLASSES, GROUPS, LISTED, SEVERITY, Divergence, Finding, Report, listed
from .showing import Showing
from .where import Where

EVERYWHERE = "everywhere"
# operations in which a class can be everywhere: a run of one operation has no everywhere
_FEWEST = 3
_MISSING = "missing-operation"
# statuses that show an operation: a 404 may be like that of an unknown path
_OF_ROUTES = (200, 201, 202, 204, 409, 422)
_LIMITS = ("Length", "imum")
"""How keywords end that operations share with others."""
_VARIES = re.compile(r"[0-9.]+ |than \w+|the \w+, .*|\b(?:above|below) the \w+")
_MEMBER = re.compile(r".*/(properties|parameters)/([^/]+)").match
Pairs = set[tuple[str, int]]
"""OperationIds with statuses."""


class Ledger:
    """What was found and answered, by the contract.

    `pairs` are those of answers; `groups` are by operationId, `suspected` by class.
    """

    def __init__(self, overlays: Overlays, address: str, mode: str) -> None:
        """`mode` is that of the report. Only one that writes shows values of records: they are its
        own. Raises ContractError.
        """
        self.overlays, self._where = overlays, Where(data_dir("openapi"), overlays)
        self.document, self.address, self._mode = self._where.document, address, mode
        self.showing = Showing(self.document, address, values=mode == "write")
        self.conformity = Conformity(self.document)
        self.findings: list[Finding] = []
        self.pairs: Pairs = set()
        self.groups: dict[str, set[str]] = defaultdict(set)
        self.suspected: dict[str, set[str]] = defaultdict(set)

    def answered(self, operation: str, status: int, group: str, about: str = "") -> None:
        """Note that an answer was judged, which may be about another operation too."""
        self.pairs.add((operation, status))
        if group in GROUPS:
            self.groups[operation].add(group)
            self.groups[about or operation].add(group)

    def ended(
        self,
        divergences: Collection[Divergence],
        known: Collection[str],
        *,
        among: Collection[str],
        beyond: int,
        unseen: str,
        **more: Any,
    ) -> Report:
        """The report of these divergences but for those of `known` fingerprints.

        Its coverage is how many of the documented statuses of the operations `among` were answered;
        `beyond` reach are some. `unseen` is the state of a group that was not probed.
        """
        rows, documented = {}, Pairs()
        for name in among:
            statuses = self.document.operations[name].responses
            documented |= {(name, status) for status in statuses}
            row = dict.fromkeys(GROUPS, "none") | {"accepts": unseen, "rejects": unseen}
            rows[name] = row | dict.fromkeys(self.groups.get(name, ()), "ok")
        for divergence in divergences:
            for name, group in divergence.cases:
                if name in rows:
                    rows[name][group] = "diverges"
        shown = [each for each in divergences if each.fingerprint not in known]
        contract = self.document.identity
        reached, reachable = len(documented & self.pairs), len(documented) - beyond
        return Report(
            target=self.address,
            mode=self._mode,
            contract=f"{contract['version']} {contract['digest'][:12]}",
            coverage=round(100 * reached / (reachable or 1), 1),
            rows=rows,
            divergences=shown,
            hidden=len(divergences) - len(shown),
            **more,
        )

    def divergences(self) -> list[Divergence]:
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

        def place(each: Finding) -> tuple[int, bool, str]:
            is_move = each.group == "transitions"  # what is refused in any state is no move
            return order.index(each.operation), is_move, each.pointer

        findings = sorted(self._independent(), key=place)
        causes: dict[tuple[str, str], list[Finding]] = defaultdict(list)
        everywhere = {kind for kind in CLASSES if self._is_everywhere(kind, findings)}
        for each in findings:
            cause = EVERYWHERE if each.kind in everywhere else self._cause(each)
            causes[each.kind, cause].append(each)
        found = [self._divergence(cause, merged) for (_, cause), merged in causes.items()]
        return sorted(found, key=_rank)

    def _independent(self) -> Iterator[Finding]:
        """The findings that do not follow from others, by what they share: a class `follows` from
        others in fixtures/verify.yaml.
        """
        there = {name for name, status in self.pairs if status in _OF_ROUTES}
        missing = {each.operation for each in self.findings if each.kind == _MISSING} - there
        findings = []
        for each in self.findings:
            if (each.operation in missing) is (each.kind == _MISSING):
                findings.append(each)
        known = set[tuple[str, str, Any]]()
        for each in findings:
            known |= {(each.kind, *pair) for pair in self._shared(each).items()}
        for each in findings:
            shared, follows = self._shared(each), CLASSES[each.kind].get("follows", {})
            if known.isdisjoint((kind, name, shared.get(name)) for kind, name in follows.items()):
                yield each

    def _shared(self, finding: Finding) -> dict[str, Any]:
        """What findings of one cause have in common, by the names that `follows` has for it."""
        operation, member, records = finding.operation, self._member(finding), self._tag(finding)
        # of what is there, the schema says more
        is_inside = finding.kind == "schema" and not finding.pointer.endswith(f"/{member}")
        shared: dict[str, Any] = {"operation": operation}
        if finding.target.excerpt:
            shared["refusal"] = _refusal(finding)
        if member or finding.place:
            shared["written"] = operation, member or finding.place
        if member and not is_inside:
            shared["member"] = records, member
        if finding.kind == "not-deleted" or (finding.tries, finding.target.status) == (LISTED, 404):
            shared["deleted"] = records
        return shared

    def _tag(self, finding: Finding) -> str:
        operation = self.document.operations.get(finding.operation)
        return "" if operation is None else operation.tag

    def _member(self, finding: Finding) -> str:
        """The member that a finding is about, or the parameter as `?name`; empty where there is
        none.
        """
        found = _MEMBER(finding.pointer)
        kind, name = found.groups() if found else ("", "")
        if kind == "parameters" and name.isdecimal():
            operation = self.document.operations[finding.operation]
            name = f"?{operation.parameters[int(name)].name}"
        return name

    def _cause(self, finding: Finding) -> str:
        """What findings of one class have in common that are one divergence."""
        member, place = self._member(finding), canonical(self.document, finding.pointer)
        match finding.kind:
            case "figures" if member:
                return member
            case "value" | "default" if member:
                return f"{self._tag(finding)} {member}"
            case "schema" if finding.pointer.endswith("/format"):
                return finding.title.rpartition(" that is ")[2]
            case "rule":
                code = finding.expected.excerpt.partition('"code":"')[2].partition('"')[0]
                return code or words(finding.expected.excerpt)
            case "laxer" if finding.pointer.endswith("/content"):
                return "a body that is no JSON object"
            case "laxer" | "incomplete":
                check = _VARIES.sub("", finding.tries).strip() or "beyond a limit"
                return "a wrong parameter" if member.startswith("?") else check
            case "stricter" if member == "?sort":
                return member
            case "stricter" if not place.endswith(_LIMITS):  # whatever was sent
                return " ".join(_refusal(finding))
            case "stricter" if "/properties/" in place:
                return f"{self._tag(finding)} {place.rpartition('/properties/')[2]}"
            case "undocumented-field":
                return place.rpartition("/properties/")[0]
            case "missing-header":
                return place.rpartition("/")[2]
            case "wrong-status":
                return f"{finding.target.status}, not {finding.expected.status}"
            case "not-persisted" | "read-only":
                return self._tag(finding) if self._basis(finding) == "documented" else ""
            case "scope" if finding.tries.startswith("a key"):
                return finding.tries
            case "scope":
                return finding.operation
        is_one = "phrase" in CLASSES[finding.kind]
        return "" if is_one else place

    def _name(self, finding: Finding) -> str:
        """What a title names of a finding beside its operation."""
        if finding.kind == "lifecycle":
            move = finding.tries.removeprefix(f"{finding.operation} ")
            return f"{move} ({finding.target.status})"
        return finding.place or self._member(finding).removeprefix("?")

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
        # a baseline hides no member that is new
        is_named = not cause or shown.kind == "undocumented-field"
        known = [shown.kind, cause, *(parts if is_named else ())]
        title = shown.title.removesuffix(".")
        causes = listed([*dict.fromkeys(map(self._cause, findings))], "; ")
        phrase = CLASSES[shown.kind].get("phrase", "").format(cause=causes)
        if phrase and (len(parts) > 1 or "," in parts[0]):
            named = parts if "costs" in CLASSES[shown.kind] else [listed(parts, "; ")]
            title = f"{phrase}: {'; '.join(named)}"
        return Divergence(
            fingerprint=blake2b(
                "\n".join(known).encode("utf-8", "surrogatepass"), digest_size=16
            ).hexdigest(),
            operations=[name for name in self.document.operations if name in members],
            title=f"{EVERYWHERE}: {title}" if cause == EVERYWHERE else title,
            basis=self._basis(shown),
            line=self._where.line(shown.pointer),
            findings=findings,
        )

    def _basis(self, shown: Finding) -> str:
        """The source document shows requests and answers, but no rules."""
        is_refusal = shown.kind == "wrong-status" and shown.expected.status >= 400
        if is_refusal or CLASSES[shown.kind].get("always_assumed"):
            return "assumed"
        return "documented" if self._is_shown(shown) else "assumed"

    def _is_shown(self, finding: Finding) -> bool:
        """Whether the source document shows in full what the pointer of a finding leads to.

        The nearest `x-basis` decides: that of a member of a schema, else that of a part of the
        operation. A part with an entry in `x-basis-notes` is assumed in part, most often its
        bounds: they say nothing about what is stored. What an answer has around a record is shown
        only of the operations whose responses are.
        """
        document, pointer = self.document, finding.pointer
        place = canonical(document, pointer)
        holder, is_member, member = place.rpartition("/properties/")
        parts = [member.partition("/")[0]]
        if not is_member:
            steps = unescaped(place)
            holder, parts = below("#", *steps[:3]), ["method", "path"]
            if len(steps) > 3:
                parts = ["response" if steps[3] == "responses" else "request"]
        node = document.resolve(located(document, holder)[1]) or {}
        basis, notes = node.get("x-basis", {}), node.get("x-basis-notes", {})
        if finding.kind in ("not-persisted", "read-only") or pointer.endswith(("/type", "/format")):
            notes = {}
        operation = document.operations.get(finding.operation)
        if operation is not None and is_member and "id" not in node.get("properties", {}):
            around = [each.media.get(JSON, {}).get("$ref") for each in operation.responses.values()]
            if holder in around and operation.basis["response"] == "assumed":
                return False
        return all(basis.get(part) == "documented" and part not in notes for part in parts)


def _rank(divergence: Divergence) -> tuple[bool, bool, int]:
    kind, is_shown = divergence.kind, divergence.basis == "documented"
    is_certain = is_shown or bool(CLASSES[kind].get("certain"))
    is_everywhere = divergence.title.startswith(EVERYWHERE)
    return is_everywhere and not is_certain, not is_certain, SEVERITY.index(kind)


def _refusal(finding: Finding) -> tuple[str, str]:
    """An operation, and in which words it refuses."""
    return finding.operation, words(finding.target.excerpt)
