"""Collects findings, and merges those that have one cause into one divergence."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b

from ...app import data_dir
from ...contract.document import JSON, Document
from ...contract.source import unescaped
from ...core.text import counted
from ...settings import Overlays
from .catalogue import below, canonical, located, pointer_of
from .findings import GROUPS, SEVERITY, Divergence, Finding, Rows, listed
from .where import Where

EVERYWHERE = "everywhere"
# operations in which a class can be everywhere: a run of one operation has no everywhere
_FEWEST = 3
_PARTS = {
    "parameters": ("request",),
    "requestBody": ("request",),
    "security": ("request",),
    "x-scopes": ("request",),
    "responses": ("response",),
}
_WHOLE = ("method", "path")
_OF_LINES = frozenset(
    (
        "not-persisted",
        "stricter",
        "laxer",
        "filter",
        "value",
        "schema",
        "undocumented-field",
        "undocumented-operation",
    )
)
"""Classes with a cause for each line of the contract: they are never everywhere."""
_NEVER_SHOWN = frozenset(
    (
        "auth",
        "scope",
        "filter",
        "sort",
        "paging",
        "uniqueness",
        "idempotency",
        "lifecycle",
        "value",
        "error-code",
        "missing-header",
    )
)
_MISSING = "missing-operation"
_REFUSALS = ("stricter", "lifecycle")
# statuses that show an operation, except a 404 like that of an unknown path
_OF_ROUTES = (404, 409, 422)
_UNSURE = frozenset((_MISSING, "transport", "server-error", "auth", "scope"))
_WORD = re.compile(r"[\w.-]+")
_VARIES = re.compile(r"[0-9.]+ |than \w+|\b(?:above|below) the \w+")
_MEMBER = re.compile(r".*/properties/([^/]+)").match
_PARAMETER = re.compile(r"#/paths/[^/]+/[^/]+/parameters/([0-9]+)").match
_Causes = dict[str, list[Finding]]
Pairs = set[tuple[str, int]]
"""OperationIds with statuses."""


class Ledger:
    """What was found and answered, by the contract.

    `pairs` are those of answers; `groups` are by operationId, `suspected` by class.
    """

    def __init__(self, overlays: Overlays) -> None:
        """Raises ContractError."""
        self.overlays, self._where = overlays, Where(data_dir("openapi"), overlays)
        self.document = self._where.document
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

    def divergences(self) -> list[Divergence]:
        """The divergences, with their lines in the contract."""
        answered = [name for name, status in self.pairs if 200 <= status < 300]
        found = merged(self.findings, self.document, self.groups, self.suspected, answered)
        for each in found:
            each.line = self._where.line(each.pointer)
        return found

    def documented(self, operations: Iterable[str]) -> Pairs:
        """The documented statuses of operations."""
        known = self.document.operations
        return {(name, status) for name in operations for status in known[name].responses}

    def coverage(self, pairs: Pairs) -> float:
        """Per cent of pairs of operation and status that were answered."""
        return round(100 * len(pairs & self.pairs) / (len(pairs) or 1), 1)

    def rows(
        self, operations: Iterable[str], divergences: Iterable[Divergence], unseen: str
    ) -> Rows:
        """The states of the groups; `unseen` is that of what every operation has."""
        rows = {}
        for name in operations:
            row = dict.fromkeys(GROUPS, "none") | {"accepts": unseen, "rejects": unseen}
            rows[name] = row | dict.fromkeys(self.groups.get(name, ()), "ok")
        for divergence in divergences:
            for name, group in divergence.cases:
                if name in rows:
                    rows[name][group] = "diverges"
        return rows


def merged(
    findings: Collection[Finding],
    document: Document,
    probed: Collection[str],
    of_class: Mapping[str, Collection[str]],
    answered: Collection[str],
) -> list[Divergence]:
    """The divergences of a run: first what costs data or money, then in the order of `CLASSES`.

    - Findings of one class with the same cause are merged: what an operation does not store, the
      parameters that a list ignores, a check that bodies lack, or parameters, else a line of the
      contract.
    - A class found in more than half of its operations is one divergence. Its operations are those
      that were probed for it (`of_class`), else all that were `probed`, as operationIds.
    - Of a missing operation, nothing else is reported. An operation that `answered`, or refused in
      another way, is not missing: its 404 says that a record does not exist.
    """
    there = {*answered}
    for each in findings:
        if each.kind not in _UNSURE and each.target.status in _OF_ROUTES:
            there.add(each.operation)
    missing = {each.operation for each in findings if each.kind == _MISSING} - there
    order = {name: number for number, name in enumerate(document.operations)}
    classes: dict[str, _Causes] = {}
    for each in sorted(
        _settled(findings, document, there, missing),
        key=lambda each: (
            SEVERITY[each.kind],
            order.get(each.operation, len(order)),
            each.pointer or each.cause,
        ),
    ):
        causes = classes.setdefault(each.kind, {})
        causes.setdefault(_cause(each, document), []).append(each)
    found: list[Divergence] = []
    for kind, causes in classes.items():
        among = order.keys() & {*probed} & {*of_class.get(kind, order)}
        found += _divergences(causes, document, among if kind == _MISSING else among - missing)
    return found


def _settled(
    findings: Iterable[Finding], document: Document, there: set[str], missing: set[str]
) -> Iterator[Finding]:
    """The findings by what all of them together show."""
    # a parameter that is ignored is not also one whose values are not checked
    ignored = {
        (each.operation, name)
        for each in findings
        if each.kind in ("filter", "sort") and (name := _parameter(each, document))
    }
    # what an operation refuses with the same words, whatever is sent, is one
    checks = {
        (each.operation, _words(each), _check(each)) for each in findings if each.kind in _REFUSALS
    }
    words = Counter(check[:2] for check in checks)
    # what is not stored is not also a member that answers lack
    lost = {
        (_tag(each, document), each.pointer.rpartition("/")[2]): each
        for each in findings
        if each.kind == "not-persisted"
    }
    for each in findings:
        operation, said = each.operation, _words(each)
        if each.kind == _MISSING:
            if operation in there and each.target.status == 404:
                title = f"{operation} refuses an unknown record with 404 and no code."
                where = f"{each.pointer}/responses"
                each = replace(each, kind="error-code", pointer=where, cause="no code", title=title)
        elif operation in missing:
            continue
        elif each.kind in _REFUSALS and words[operation, said] > _FEWEST:
            each = replace(each, cause=f"{operation} {said}", pointer="")
        elif each.kind == "schema" and each.cause == "lacks":
            each = lost.get((_tag(each, document), each.pointer.rpartition("/")[2]), each)
        elif each.kind == "laxer" and (operation, _parameter(each, document)) in ignored:
            each = replace(each, kind="filter")
        yield each


def _tag(finding: Finding, document: Document) -> str:
    operation = document.operations.get(finding.operation)
    return "" if operation is None else operation.tag


def _parameter(finding: Finding, document: Document) -> str:
    """The name of the parameter that a finding is about; empty where it is about none."""
    operation, found = document.operations.get(finding.operation), _PARAMETER(finding.pointer)
    return "" if operation is None or found is None else operation.parameters[int(found[1])].name


def _words(finding: Finding) -> str:
    """What the target said, without ids and instants, which no two of its answers share."""
    words = _WORD.findall(finding.target.excerpt)
    return " ".join(word for word in words if not any(map(str.isdigit, word)))


def _check(finding: Finding) -> str:
    """What a body or parameter is not checked for, without the limits."""
    if finding.group not in GROUPS:
        return "what others need"
    return _VARIES.sub("", finding.cause).strip() or "bounds"


def _cause(finding: Finding, document: Document) -> str:
    """What findings of one class have in common that are one divergence."""
    line = canonical(document, finding.pointer) or finding.cause
    match finding.kind:
        case "idempotency":
            return ""
        case "uniqueness":
            member = _MEMBER(line)
            return member[1] if member else line
        case "lifecycle" if " while " in finding.cause:
            return finding.cause.partition(" while ")[2]
        case "laxer":
            return "parameters" if _parameter(finding, document) else _check(finding)
        case "stricter" if not line.endswith("/enum"):
            return _check(finding)
        case "not-persisted" | "not-deleted":
            return finding.operation
        case "filter" if _parameter(finding, document):
            return f"{finding.operation} parameters"
    return line


def _divergences(
    causes: _Causes, document: Document, among: Collection[str]
) -> Iterator[Divergence]:
    """The divergences of one class, from its findings by cause."""

    def operations(findings: Iterable[Finding]) -> set[str]:
        return {each.operation for each in findings}

    everything = [each for findings in causes.values() for each in findings]
    shown = operations(everything).intersection(among)
    if everything[0].kind in _OF_LINES or len(shown) < _FEWEST or 2 * len(shown) <= len(among):
        for cause, findings in causes.items():
            yield _divergence(findings, document, _title(findings, document), cause)
        return
    widest = max(causes.values(), key=lambda findings: len(operations(findings)))
    more = f" (and {counted(len(causes) - 1, 'other cause')})" if len(causes) > 1 else ""
    title = f"{EVERYWHERE}: {widest[0].title.removesuffix('.')}{more}"
    # The widest cause may differ from run to run, so the fingerprint has none.
    everything.sort(key=lambda each: each not in widest)
    yield _divergence(everything, document, title, EVERYWHERE)


def _title(findings: list[Finding], document: Document) -> str:
    """One title for findings with one cause."""
    shown = findings[0]
    places = dict.fromkeys(canonical(document, each.pointer) for each in findings)
    names: list[str] = []
    if shown.kind == "filter":
        names, verb = [_parameter(each, document) for each in findings], "ignores"
    elif shown.kind == "not-persisted":
        names, verb = [unescaped(p)[-1] for p in places if "/properties/" in p], "does not store"
    if len(names := [*dict.fromkeys(filter(None, names))]) > 1:
        return f"{shown.operation} {verb} {listed(names)}"
    more = f" (and {counted(len(places) - 1, 'other place')})" if len(places) > 1 else ""
    return shown.title.removesuffix(".") + more


def _divergence(findings: list[Finding], document: Document, title: str, cause: str) -> Divergence:
    shown, found = findings[0], {each.operation for each in findings}
    known = f"{shown.kind}\n{cause}".encode("utf-8", "surrogatepass")
    operations = [each for each in document.operations.values() if each.id in found]
    return Divergence(
        fingerprint=blake2b(known, digest_size=16).hexdigest(),
        operations=[each.id for each in operations],
        title=title,
        basis=_basis(shown, document, found),
        pointer=shown.pointer or "".join(map(pointer_of, operations[:1])),
        findings=findings,
    )


def _basis(shown: Finding, document: Document, operations: set[str]) -> str:
    """The basis of a divergence. The source document shows requests and answers, but no rules."""
    is_refusal = shown.kind == "wrong-status" and shown.expected.status >= 400
    if is_refusal or shown.kind in _NEVER_SHOWN:
        return "assumed"
    root = "/".join(shown.pointer.split("/")[:4])
    bases = []
    for name in operations & document.operations.keys():
        operation = document.operations[name]
        for response in operation.responses.values():
            if response.media.get(JSON, {}).get("$ref") == root:
                bases.append(operation.basis["response"])
    if bases and "documented" not in bases:
        return "assumed"  # the source document shows the schema for another operation only
    return basis_of(document, shown.pointer)


def basis_of(document: Document, pointer: str) -> str:
    """`documented` if the source document shows what a pointer leads to in full, else `assumed`.

    The nearest `x-basis` decides: that of a member of a schema, else that of a part of the
    operation. A part with an entry in `x-basis-notes` is assumed in part, most often its bounds.
    """
    steps, place = unescaped(pointer), located(document, pointer)[0]
    documented = False
    if steps[:1] == ["paths"] and len(steps) > 2:
        operation = located(document, below("#", *steps[:3]))[1]
        parts = _PARTS.get("".join(steps[3:4]), _WHOLE)
        documented = all(_is_shown(operation, part) for part in parts)
    for number, step in enumerate(place[:-1]):
        if step == "properties":
            holder = located(document, below("#", *place[:number]))[1]
            documented = _is_shown(document.resolve(holder or {}), str(place[number + 1]))
    return "documented" if documented else "assumed"


def _is_shown(node: Mapping[str, Mapping[str, str]] | None, part: str) -> bool:
    node = node or {}
    basis, notes = node.get("x-basis", {}), node.get("x-basis-notes", {})
    return basis.get(part) == "documented" and part not in notes
