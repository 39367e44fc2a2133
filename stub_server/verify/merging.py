"""Makes one divergence of the findings that have one cause."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from types import MappingProxyType

from ..contract.document import Document
from ..contract.source import Json
from .findings import CLASSES, Divergence, Finding
from .where import steps_of

EVERYWHERE = "everywhere"
_FEWEST = 3  # operations in which a class can be everywhere: a run of one operation has no everywhere
_PARTS = {
    "parameters": ("request",),
    "requestBody": ("request",),
    "security": ("request",),
    "x-scopes": ("request",),
    "responses": ("response",),
}
_WHOLE = ("method", "path")


def merged(
    findings: Iterable[Finding],
    document: Document,
    probed: Collection[str],
    of_class: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> list[Divergence]:
    """The divergences of a run, in the order of `CLASSES`, then of the contract's operations.

    Findings of one class with the same contract pointer are one; without a pointer, those with the same cause. A class
    that shows in more than half of its operations is one: those that probes have tried for it, `of_class`, else all
    that were `probed` (operationIds).
    """
    order = {name: number for number, name in enumerate(document.operations)}
    among = order.keys() & set(probed)

    def rank(finding: Finding) -> tuple[int, int, str]:
        return CLASSES.index(finding.kind), order.get(finding.operation, len(order)), _cause(finding)

    classes: dict[str, dict[str, list[Finding]]] = {}
    for finding in sorted(findings, key=rank):
        classes.setdefault(finding.kind, {}).setdefault(_cause(finding), []).append(finding)
    return [
        each
        for kind, causes in classes.items()
        for each in _divergences(causes, document, among.intersection(of_class.get(kind, among)))
    ]


def _cause(finding: Finding) -> str:
    return finding.pointer or finding.cause


def _divergences(causes: dict[str, list[Finding]], document: Document, among: Collection[str]) -> Iterator[Divergence]:
    """The divergences of one class, whose findings are given by cause."""
    everything = [finding for findings in causes.values() for finding in findings]
    shown = {finding.operation for finding in everything}.intersection(among)
    if len(shown) < _FEWEST or 2 * len(shown) <= len(among):
        for cause, findings in causes.items():
            yield _divergence(findings[0], findings, document, findings[0].title, cause)
        return
    widest = max(causes.values(), key=lambda findings: len({finding.operation for finding in findings}))
    others = len(causes) - 1
    more = f" (and {others} other cause{'s'[: others > 1]})" if others else ""
    title = f"{EVERYWHERE}: {_phrase(widest[0].title)}{more}"
    # Which cause is the widest may differ from run to run, so the fingerprint names none.
    yield _divergence(widest[0], everything, document, title, EVERYWHERE)


def _divergence(shown: Finding, findings: list[Finding], document: Document, title: str, cause: str) -> Divergence:
    found = {finding.operation for finding in findings}
    operations = [name for name in document.operations if name in found]
    return Divergence(
        fingerprint=blake2b(f"{shown.kind}\n{cause}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest(),
        kind=shown.kind,
        operation=operations[0] if operations else shown.operation,
        operations=operations,
        title=_phrase(title),
        basis=basis_of(document, shown.pointer),
        pointer=shown.pointer,
        count=len(findings),
        request=shown.request,
        target=shown.target,
        expected=shown.expected,
        overlay=next((finding.overlay for finding in [shown, *findings] if finding.overlay is not None), None),
        cases=list(dict.fromkeys((finding.operation, finding.group) for finding in findings)),
        findings=findings,
    )


def _phrase(title: str) -> str:
    """A title that other words can follow."""
    return title.removesuffix(".")


def basis_of(document: Document, pointer: str) -> str:
    """`documented` if the source document shows what a pointer leads to in full, else `assumed`.

    The nearest `x-basis` says so: that of a member of a schema, else that of a part of the operation. What
    `x-basis-notes` tells of is assumed in part, most often its bounds.
    """
    steps = steps_of(pointer)
    documented, node = False, document.raw
    for number, step in enumerate(steps):
        node = document.resolve(node)
        if isinstance(node, list):
            node = node[int(step)] if step.isdecimal() and int(step) < len(node) else None
            continue
        if not isinstance(node, dict) or step not in node:
            break
        if step == "properties" and number + 1 < len(steps) and isinstance(node.get("x-basis"), dict):
            documented = _is_shown(node, steps[number + 1])
        node = node[step]
        if number == 2 and steps[0] == "paths":
            parts = _PARTS.get(steps[3], _WHOLE) if len(steps) > 3 else _WHOLE
            documented = all(_is_shown(node, part) for part in parts)
    return "documented" if documented else "assumed"


def _is_shown(node: Json, part: str) -> bool:
    return node.get("x-basis", {}).get(part) == "documented" and part not in node.get("x-basis-notes", {})
