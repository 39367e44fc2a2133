"""Which operation a path means, and which one it may have meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

from ..contract.document import Document, Operation

_LONGEST = 300
_CLOSE = 0.75  # how similar a segment is to the one that it may be a slip of
_VERSION = re.compile(r"api|v[0-9]+").fullmatch


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


def alike(document: Document, method: str, path: str) -> list[tuple[Operation, str]]:
    """Operations of a method whose paths one that does not exist may be a slip of, the most similar first.

    Each comes with its path, in which what stands where a parameter is stays. Another resource is none: nobody who
    mistypes the address of one record should be shown how to delete another.
    """
    sent = _unversioned(path[:_LONGEST].strip("/").split("/"))
    found = []
    for number, operation in enumerate(document.operations.values()):
        parts = operation.path.split("/")[1:]
        spelled = _spelled(_unversioned(parts), sent)
        if spelled is not None and operation.method == ("GET" if method == "HEAD" else method):
            whole = "/" + "/".join(parts[: len(parts) - len(spelled)] + spelled)
            found.append((-SequenceMatcher(None, "/".join(sent), "/".join(spelled)).ratio(), number, operation, whole))
    return [(entry[2], entry[3]) for entry in sorted(found)]


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


def _unversioned(segments: list[str]) -> list[str]:
    """A path's segments without what comes before its resource."""
    start = 0
    while start < len(segments) - 1 and _VERSION(segments[start]):
        start += 1
    return segments[start:]


def _spelled(parts: list[str], sent: list[str]) -> list[str] | None:
    """A template with what was sent at its parameters; None where a literal segment is another word."""
    if len(parts) != len(sent):
        return None
    spelled = []
    for part, given in zip(parts, sent, strict=True):
        if part.startswith("{"):
            spelled.append(given)
        elif SequenceMatcher(None, part, given.lower()).ratio() >= _CLOSE:
            spelled.append(part)
        else:
            return None
    return spelled
