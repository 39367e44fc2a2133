"""Which operation a path means, and which one it may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

from ..contract.document import Document, Operation

_LONGEST = 300
_DEEPEST = 12


class Routed(NamedTuple):
    """The operations of a path by method, and the values of its parameters."""

    operations: dict[str, Operation]
    values: dict[str, str]


def routed(document: Document, path: str) -> Routed | None:
    """The operations that a path has; a literal segment wins over a parameter. None for an unknown path."""
    segments = path.split("/")[1:]
    best: tuple[tuple[bool, ...], str, dict[str, str]] | None = None
    for template in _templates(document):
        parts = template.split("/")[1:]
        values = _fits(parts, segments)
        if values is None:
            continue
        rank = tuple(not part.startswith("{") for part in parts)
        if best is None or rank > best[0]:
            best = rank, template, values
    if best is None:
        return None
    found = {o.method: o for o in document.operations.values() if o.path == best[1]}
    return Routed(found, best[2])


def filled(template: str, values: dict[str, str]) -> str:
    """A path with its parameters filled in."""
    for name, value in values.items():
        template = template.replace("{" + name + "}", value)
    return template


def alike(document: Document, method: str, path: str) -> Iterable[tuple[Operation, str]]:
    """Operations whose paths are like one that does not exist, the most similar first, each with its path.

    What stands where a parameter is stays there.
    """
    sent = [part for part in path[:_LONGEST].split("/") if part]
    if len(sent) > _DEEPEST:
        return []
    found = []
    for number, operation in enumerate(document.operations.values()):
        parts = operation.path.split("/")[1:]
        spelled = _spelled(parts, sent)
        likeness = SequenceMatcher(None, "/".join(sent), "/".join(spelled)).ratio()
        found.append((operation.method != method, -likeness, number, operation, "/" + "/".join(spelled)))
    return [(entry[3], entry[4]) for entry in sorted(found)]


def _templates(document: Document) -> Iterable[str]:
    return dict.fromkeys(operation.path for operation in document.operations.values())


def _fits(parts: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(parts) != len(segments):
        return None
    values = {}
    for part, segment in zip(parts, segments, strict=True):
        if part.startswith("{"):
            if not segment:
                return None
            values[part[1:-1]] = segment
        elif part != segment:
            return None
    return values


def _spelled(parts: list[str], sent: list[str]) -> list[str]:
    """A template with what was sent at its parameters, as far as that can be told."""
    offset = len(parts) - len(sent)
    spelled = []
    for place, part in enumerate(parts):
        if not part.startswith("{"):
            spelled.append(part)
            continue
        at = place - offset if 0 <= place - offset < len(sent) else place
        given = sent[at] if at < len(sent) and sent[at] not in parts else "-"
        spelled.append(given)
    return spelled
