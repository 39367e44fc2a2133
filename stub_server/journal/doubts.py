"""What of an expectation no request can have, as a slip makes it: an operation, a method, a path, a name, a code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPMethod

from ..contract.document import Document, Operation
from ..kernel.record import Body
from ..kernel.text import glob, nearest
from .showing import plain

_METHODS = tuple(method.value for method in HTTPMethod)
_ALWAYS = ("OPTIONS",)  # every path answers it
_SHOWN = 100  # characters of what was asked for
_PATHS = ("$.", "$[")  # what a member of a body is called that was meant to be its path


def unknown(expected: Body, documents: Mapping[str, Document]) -> Iterator[str]:
    """What is said of an operation and a method that do not exist: that there was no such request would always hold."""
    request = expected.get("request", {})
    asked, method = request.get("operationId"), request.get("method")
    names = [name for document in documents.values() for name in document.operations]
    if asked is not None and not any(glob(asked, name) for name in names):
        yield _unknown(asked, "operation", names)
    if method is not None and not any(glob(method.upper(), known) for known in _METHODS):
        yield _unknown(method, "method of HTTP", _METHODS)


def _unknown(asked: str, what: str, known: Sequence[str]) -> str:
    meant = nearest(asked, known)
    return plain(f"There is no {what} {asked[:_SHOWN]}." + (f" Did you mean {meant}?" if meant else ""))


def is_of(expected: Body, document: Document) -> bool:
    """Whether an expectation names an operation of a contract."""
    asked = expected.get("request", {}).get("operationId")
    return asked is not None and any(glob(asked, name) for name in document.operations)


def doubts(expected: Body, documents: Mapping[str, Document]) -> Iterator[str]:
    """Codes of warnings, where nothing matched; `documents` are by the base of their paths."""
    request = expected.get("request", {})
    known = [(base, operation) for base, document in documents.items() for operation in document.operations.values()]
    if "path" in request:
        segments = request["path"].split("/")
        known = [(base, o) for base, o in known if _may_be(segments, f"{base}{o.path}".split("/"))]
        if not known:
            yield "unknown_path"
    if "method" in request and known:
        methods = {*_ALWAYS, *(method for _, operation in known for method in _methods(operation))}
        if not any(glob(request["method"].upper(), method) for method in methods):
            yield "unknown_method"
    code = expected.get("response", {}).get("code")
    if code is not None and not any(glob(code, known) for document in documents.values() for known in _codes(document)):
        yield "unknown_code"
    bodies = (request.get("body"), expected.get("response", {}).get("body"))
    if any(name.startswith(_PATHS) for body in bodies if isinstance(body, dict) for name in body):
        yield "path_as_name"


def _codes(document: Document) -> Sequence[str]:
    return document.raw["components"]["schemas"].get("ErrorCode", {}).get("enum", ())  # type: ignore[no-any-return]


def _methods(operation: Operation) -> tuple[str, ...]:
    return (operation.method, "HEAD") if operation.method == "GET" else (operation.method,)


def _may_be(asked: Sequence[str], template: Sequence[str]) -> bool:
    """Whether a path of a template may fit a glob, both in segments. True rather too often: `*` may span several."""
    if not asked or not template:
        return not asked and not template
    first, rest = asked[0], asked[1:]
    if "*" not in first:
        return _are_alike(first, template[0], len(first)) and _may_be(rest, template[1:])
    head, tail = first.split("*")[0], first.split("*")[-1]
    return _are_alike(head, template[0], None) and any(
        _are_alike(tail[::-1], _turned(template[last - 1]), None) and _may_be(rest, template[last:])
        for last in range(1, len(template) + 1)
    )


def _turned(part: str) -> str:
    return part if part.startswith("{") else part[::-1]


def _are_alike(wanted: str, part: str, length: int | None) -> bool:
    """Whether a segment of a template may begin with a text, and be of its length if one is told."""
    if part.startswith("{"):
        return length != 0
    fits = len(part) >= len(wanted) if length is None else len(part) == length
    return fits and all(sign in ("?", found) for sign, found in zip(wanted, part, strict=False))
