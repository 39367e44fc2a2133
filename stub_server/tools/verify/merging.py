"""Collects findings, and merges those that have one cause into one divergence."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from ...app import data_dir
from ...contract.document import Document
from ...contract.pointers import below, canonical, located
from ...contract.source import unescaped
from ...settings import Overlays
from .conformity import Conformity
from .findings import (
    CLASSES,
    GROUPS,
    SEVERITY,
    Divergence,
    Finding,
    Report,
    listed,
)
from .showing import Showing
from .where import Where

EVERYWHERE = "everywhere"
# operations in which a class can be everywhere: a run of one operation has no everywhere
_FEWEST = 3
_MISSING = "missing-operation"
# statuses that show an operation: a 404 may be like that of an unknown path
_OF_ROUTES = (200, 201, 202, 204, 409, 422)
_LISTING = {"filter": "ignores", "not-persisted": "does not store"}
"""Classes whose divergences list parameters or members, each with its verb."""
_REQUEST = ["request"]
_PARTS = {
    "parameters": _REQUEST,
    "requestBody": _REQUEST,
    "security": _REQUEST,
    "x-scopes": _REQUEST,
    "responses": ["response"],
}
"""The parts of `x-basis` to which members of an operation belong."""
_WHOLE = ["method", "path"]
_WORD = re.compile(r"[\w.-]+")
_VARIES = re.compile(r"[0-9.]+ |than \w+|\b(?:above|below) the \w+")
_MEMBER = re.compile(r".*/(properties|parameters)/([^/]+)").match
Pairs = set[tuple[str, int]]
"""OperationIds with statuses."""


class Ledger:
    """What was found and answered, by the contract.

    `pairs` are those of answers; `groups` are by operationId, `suspected` by class.
    """

    def __init__(self, overlays: Overlays, address: str, *, values: bool) -> None:
        """Without `values`, no report shows the values of records. Raises ContractError."""
        self.overlays, self._where = overlays, Where(data_dir("openapi"), overlays)
        self.document = self._where.document
        self.showing = Showing(self.document, address, values=values)
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
            contract=f"{contract['version']} {contract['digest'][:12]}",
            coverage=round(100 * reached / (reachable or 1), 1),
            rows=rows,
            divergences=shown,
            hidden=len(divergences) - len(shown),
            **more,
        )

    def divergences(self) -> list[Divergence]:
        """The divergences: first what costs data or money, then in the order of `CLASSES`.

        - Findings of one class with the same cause are merged: what an operation does not store, or
          refuses in the same words, the parameters that a list ignores, a check that bodies lack,
          or parameters, else a line of the contract.
        - A class found in more than half of its operations is one divergence. Its operations are
          those that were probed for it (`suspected`), else all that were probed.
        - Of a missing operation, nothing else is reported.
        """
        order = [*self.document.operations, ""]
        findings = [*self._settled()]
        findings.sort(key=lambda each: (order.index(each.operation), each.pointer))
        classes: dict[str, dict[str, list[Finding]]] = {kind: {} for kind in SEVERITY}
        for each in findings:
            classes[each.kind].setdefault(self._cause(each), []).append(each)
        found = []
        for kind, causes in classes.items():
            everything = [each for each in findings if each.kind == kind]
            if self._is_everywhere(kind, everything):
                causes = {EVERYWHERE: everything}
            found += [self._divergence(*each) for each in causes.items()]
        return found

    def _settled(self) -> Iterator[Finding]:
        """The findings by what all of them together show."""
        there = {name for name, status in self.pairs if status in _OF_ROUTES}
        missing = {each.operation for each in self.findings if each.kind == _MISSING} - there
        ignored, lost = set[tuple[str, str]](), dict[tuple[str, str], Finding]()
        members = [(each, self._member(each)) for each in self.findings]
        for each, member in members:
            if each.kind in ("filter", "sort") and member.startswith("?"):
                ignored.add((each.operation, member))
            elif each.kind == "not-persisted":
                lost[self._tag(each), member] = each
        for each, member in members:
            operation = each.operation
            if operation in missing and each.kind != _MISSING:
                continue
            is_there = operation in there and each.target.status == 404
            if is_there and each.kind == _MISSING:
                title = f"{operation} refuses an unknown record with 404 and no code."
                where = f"{each.pointer}/responses/404/x-codes"
                each = replace(each, kind="error-code", pointer=where, title=title)
            elif each.kind == "schema" and each.pointer.endswith(f"/properties/{member}"):
                # what answers lack may not be stored
                each = lost.get((self._tag(each), member), each)
            elif each.kind == "laxer" and (operation, member) in ignored:
                each = replace(each, kind="filter")
            yield each

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
        line = canonical(self.document, finding.pointer)
        member = self._member(finding)
        match finding.kind:
            case "idempotency":
                return ""
            case "uniqueness" if member:
                return member
            case "lifecycle" if " while " in finding.tries:
                return finding.tries.partition(" while ")[2]
            case "laxer" if finding.expected.status == 409:  # a rule between several members
                return _words(finding.expected.excerpt)
            case "laxer":
                check = _VARIES.sub("", finding.tries).strip() or "bounds"
                return "parameters" if member.startswith("?") else check
            case "stricter":  # whatever was sent
                return f"{finding.operation} {_words(finding.target.excerpt)}"
            case "not-persisted" | "not-deleted":
                return finding.operation
            case "filter" if member:
                return f"{finding.operation} parameters"
        return line

    def _is_everywhere(self, kind: str, findings: Collection[Finding]) -> bool:
        """Whether a class was found in more than half of the operations in which it can be."""
        among = self.groups.keys() & self.suspected.get(kind, self.groups.keys())
        shown = among & {each.operation for each in findings}
        is_often = len(shown) >= _FEWEST and 2 * len(shown) > len(among)
        return is_often and not CLASSES[kind].get("by_line")

    def _divergence(self, cause: str, findings: list[Finding]) -> Divergence:
        shown, found = findings[0], {each.operation for each in findings}
        known = f"{shown.kind}\n{cause}".encode("utf-8", "surrogatepass")
        return Divergence(
            fingerprint=blake2b(known, digest_size=16).hexdigest(),
            operations=[name for name in self.document.operations if name in found],
            title=self._title(cause, findings),
            basis=self._basis(shown),
            line=self._where.line(shown.pointer),
            findings=findings,
        )

    def _title(self, cause: str, findings: list[Finding]) -> str:
        """One title for findings with one cause."""
        shown, where = findings[0], f"{EVERYWHERE}: " if cause == EVERYWHERE else ""
        names = dict.fromkeys(map(self._member, findings))
        if shown.kind in _LISTING and len(names) > 1:
            listing = listed([name.removeprefix("?") for name in names if name])
            return f"{shown.operation} {_LISTING[shown.kind]} {listing}"
        return where + shown.title.removesuffix(".")

    def _basis(self, shown: Finding) -> str:
        """The source document shows requests and answers, but no rules."""
        is_refusal = shown.kind == "wrong-status" and shown.expected.status >= 400
        if is_refusal or CLASSES[shown.kind].get("always_assumed"):
            return "assumed"
        return basis_of(self.document, shown.pointer)


def basis_of(document: Document, pointer: str) -> str:
    """`documented` if the source document shows what a pointer leads to in full, else `assumed`.

    The nearest `x-basis` decides: that of a member of a schema, else that of a part of the
    operation. A part with an entry in `x-basis-notes` is assumed in part, most often its bounds.
    """
    place = canonical(document, pointer)
    holder, is_member, member = place.rpartition("/properties/")
    parts = [member.partition("/")[0]]
    if not is_member:
        steps = unescaped(place)
        holder, parts = below("#", *steps[:3]), _PARTS.get("".join(steps[3:4]), _WHOLE)
    node = document.resolve(located(document, holder)[1]) or {}
    basis, notes = node.get("x-basis", {}), node.get("x-basis-notes", {})
    is_shown = all(basis.get(part) == "documented" and part not in notes for part in parts)
    return "documented" if is_shown else "assumed"


def _words(text: str) -> str:
    """A refusal without ids and instants, which no two answers share."""
    return " ".join(word for word in _WORD.findall(text) if not any(map(str.isdigit, word)))
