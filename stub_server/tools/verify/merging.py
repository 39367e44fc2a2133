"""Merges the findings that have one cause into one divergence."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from types import MappingProxyType

from ...contract.document import JSON, Document
from ...contract.source import Json, unescaped
from ...core.text import counted
from .catalogue import canonical
from .findings import SEVERITY, Divergence, Finding, listed

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
# statuses that show an operation, except a 404 like that of an unknown path
_OF_ROUTES = (404, 409, 422)
_UNSURE = frozenset((_MISSING, "transport", "server-error", "auth", "scope"))
_VARIES = re.compile(r"[0-9.]+ |than \w+|\b(?:above|below) the \w+")
_MEMBER = re.compile(r".*/properties/([^/]+)").match
_PARAMETER = re.compile(r"#/paths/[^/]+/[^/]+/parameters/([0-9]+)").match


def merged(
    findings: Iterable[Finding],
    document: Document,
    probed: Collection[str],
    of_class: Mapping[str, Collection[str]] = MappingProxyType({}),
    answered: Collection[str] = (),
) -> list[Divergence]:
    """The divergences of a run: first what costs data or money, then in the order of `CLASSES`.

    - Findings of one class with the same cause are merged: what an operation does not store, the
      parameters that a
      list ignores, a check that bodies lack, or parameters, else a line of the contract.
    - A class found in more than half of its operations is one divergence. Its operations are those
      that were probed for
      it (`of_class`), else all that were `probed`, as operationIds.
    - Of a missing operation, nothing else is reported. An operation that `answered`, or refused in
      another way, is not
      missing: its 404 says that a record does not exist.
    """
    findings = [*findings]
    there = {
        finding.operation
        for finding in findings
        if finding.kind not in _UNSURE and finding.target.status in _OF_ROUTES
    }
    there.update(answered)
    findings = [
        _as_refusal(finding) if finding.operation in there else finding for finding in findings
    ]
    missing = {finding.operation for finding in findings if finding.kind == _MISSING} - there
    findings = [
        finding
        for finding in findings
        if finding.kind == _MISSING or finding.operation not in missing
    ]
    findings = _with_ignored(_with_one_refusal(findings), document)
    order = {name: number for number, name in enumerate(document.operations)}
    among = order.keys() & set(probed)

    def rank(finding: Finding) -> tuple[int, int, str]:
        return (
            SEVERITY[finding.kind],
            order.get(finding.operation, len(order)),
            finding.pointer or finding.cause,
        )

    classes: dict[str, dict[str, list[Finding]]] = {}
    for finding in sorted(findings, key=rank):
        classes.setdefault(finding.kind, {}).setdefault(_cause(finding, document), []).append(
            finding
        )
    return [
        each
        for kind, causes in classes.items()
        for each in _divergences(
            causes,
            document,
            (among if kind == _MISSING else among - missing).intersection(
                of_class.get(kind, among)
            ),
        )
    ]


def _with_one_refusal(findings: list[Finding]) -> list[Finding]:
    """The findings, in which those are one that an operation refuses with the same words, whatever
    is sent.
    """
    causes: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for each in findings:
        causes[each.kind, each.operation, each.target.excerpt].add(_check(each))
    return [
        (
            replace(each, cause=f"{each.operation} {each.target.excerpt}", pointer="")
            if each.kind == "stricter"
            and len(causes[each.kind, each.operation, each.target.excerpt]) > _FEWEST
            else each
        )
        for each in findings
    ]


def _with_ignored(findings: list[Finding], document: Document) -> list[Finding]:
    """The findings, in which a parameter that is ignored is not also one whose values are
    not checked.
    """
    ignored = {
        (finding.operation, name)
        for finding in findings
        if finding.kind in ("filter", "sort") and (name := _parameter(finding, document))
    }
    return [
        (
            replace(finding, kind="filter")
            if finding.kind == "laxer"
            and (finding.operation, _parameter(finding, document)) in ignored
            else finding
        )
        for finding in findings
    ]


def _parameter(finding: Finding, document: Document) -> str:
    """The name of the parameter that a finding is about; empty where it is about none."""
    operation, found = document.operations.get(finding.operation), _PARAMETER(finding.pointer)
    return "" if operation is None or found is None else operation.parameters[int(found[1])].name


def _check(finding: Finding) -> str:
    """What a body or parameter is not checked for, without the limits."""
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


def _as_refusal(finding: Finding) -> Finding:
    if finding.kind != _MISSING or finding.target.status != 404:
        return finding
    title = f"{finding.operation} refuses an unknown record with 404 and no code."
    return replace(
        finding,
        kind="error-code",
        pointer=f"{finding.pointer}/responses",
        cause="no code",
        title=title,
    )


def _divergences(
    causes: dict[str, list[Finding]], document: Document, among: Collection[str]
) -> Iterator[Divergence]:
    """The divergences of one class, from its findings by cause."""
    everything = [finding for findings in causes.values() for finding in findings]
    shown = {finding.operation for finding in everything}.intersection(among)
    if everything[0].kind in _OF_LINES or len(shown) < _FEWEST or 2 * len(shown) <= len(among):
        for cause, findings in causes.items():
            yield _divergence(findings, document, _title(findings, document), cause)
        return
    widest = max(
        causes.values(), key=lambda findings: len({finding.operation for finding in findings})
    )
    more = f" (and {counted(len(causes) - 1, 'other cause')})" if len(causes) > 1 else ""
    title = f"{EVERYWHERE}: {_phrase(widest[0].title)}{more}"
    # The widest cause may differ from run to run, so the fingerprint has none.
    yield _divergence(
        [*widest, *(each for each in everything if each not in widest)], document, title, EVERYWHERE
    )


def _title(findings: list[Finding], document: Document) -> str:
    """One title for findings with one cause."""
    shown = findings[0]
    places = dict.fromkeys(canonical(document, finding.pointer) for finding in findings)
    if shown.kind == "filter":
        names = dict.fromkeys(filter(None, (_parameter(finding, document) for finding in findings)))
        if len(names) > 1:
            return f"{shown.operation} ignores {listed([*names])}"
    if shown.kind == "not-persisted":
        names = dict.fromkeys(
            unescaped(pointer)[-1] for pointer in places if "/properties/" in pointer
        )
        if len(names) > 1:
            return f"{shown.operation} does not store {listed([*names])}"
    others = len(places) - 1
    return _phrase(shown.title) + (f" (and {counted(others, 'other place')})" if others else "")


def _divergence(findings: list[Finding], document: Document, title: str, cause: str) -> Divergence:
    shown, found = findings[0], {finding.operation for finding in findings}
    return Divergence(
        fingerprint=blake2b(
            f"{shown.kind}\n{cause}".encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest(),
        kind=shown.kind,
        operations=[name for name in document.operations if name in found],
        title=title,
        basis=_basis(shown, document, found),
        pointer=shown.pointer,
        request=shown.request,
        target=shown.target,
        expected=shown.expected,
        findings=findings,
    )


def _basis(shown: Finding, document: Document, operations: Collection[str]) -> str:
    """The basis of a divergence. The source document shows requests and answers, but no rules."""
    steps = unescaped(shown.pointer)
    roots = {
        str(operation.responses[status].media.get(JSON, {}).get("$ref")): operation
        for name in operations
        if (operation := document.operations.get(name))
        for status in operation.responses
    }
    root = roots.get("#/" + "/".join(steps[:3]))
    if root is not None and root.raw.get("x-basis", {}).get("response") != "documented":
        return "assumed"  # the source document shows the schema for another operation only
    is_refusal = shown.kind == "wrong-status" and shown.expected.status >= 400
    return (
        "assumed" if is_refusal or shown.kind in _NEVER_SHOWN else basis_of(document, shown.pointer)
    )


def _phrase(title: str) -> str:
    """A title without its full stop, so that words can follow."""
    return title.removesuffix(".")


def basis_of(document: Document, pointer: str) -> str:
    """`documented` if the source document shows what a pointer leads to in full, else `assumed`.

    The nearest `x-basis` decides: that of a member of a schema, else that of a part of the
    operation. A part with an entry in `x-basis-notes` is assumed in part, most often its bounds.
    """
    steps = unescaped(pointer)
    documented, node = False, document.raw
    for number, step in enumerate(steps):
        node = document.resolve(node)
        if isinstance(node, list):
            node = node[int(step)] if step.isdecimal() and int(step) < len(node) else None
            continue
        if not isinstance(node, dict) or step not in node:
            break
        if step == "properties" and number + 1 < len(steps):
            documented = _is_shown(node, steps[number + 1])
        node = node[step]
        if number == 2 and steps[0] == "paths":
            parts = _PARTS.get(steps[3], _WHOLE) if len(steps) > 3 else _WHOLE
            documented = all(_is_shown(node, part) for part in parts)
    return "documented" if documented else "assumed"


def _is_shown(node: Json, part: str) -> bool:
    return node.get("x-basis", {}).get(part) == "documented" and part not in node.get(
        "x-basis-notes", {}
    )
