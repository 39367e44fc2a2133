"""What is expected of the requests to a sandbox: which ones, how often, the nearest ones, and
likely slips.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from http import HTTPMethod
from itertools import chain, islice
from operator import eq, ge, le
from typing import Any
from urllib.parse import parse_qsl

from ...contract.document import Document
from ...contract.source import nodes
from ...core.problem import Invalid
from ...core.record import ABSENT, Body, Difference, differences, has_more_values, without
from ...core.text import MOST_GLOBS, did_you_mean, glob, is_glob
from ...engine.kept import Trace
from ..request import CONTROL
from .entries import body_of, brief, chosen, has_status, joined, plain

NEAREST = 3
MOST_DIFFERENCES = 20  # of one request
MOST_IDS = 100  # of requests that match
MOST_VALUES = 1_000  # that are expected of a request, with those in its bodies

_HOLDS = {"exactly": eq, "at_least": ge, "at_most": le}
_METHODS = tuple(method.value for method in HTTPMethod)
_OF_TARGET = ("operationId", "method", "path")
_LONGEST_NAME = 100  # characters of what was asked for
_PARAMETER = re.compile(r"\{[^{}]*\}")


class Expectation:
    """The body of a verification. Objects match as subsets; texts are globs with `*` and `?`."""

    def __init__(self, body: Body, documents: Mapping[str, Document]) -> None:
        """`body` as the contract has it; `documents` are the contracts by the base of their paths.

        Raises Invalid for a body that takes too long to compare with every request.
        """
        _check_size(body)
        self._body, self._documents = body, documents
        self._request, self._response = dict(body.get("request", {})), body.get("response", {})
        if "method" in self._request:
            self._request["method"] = self._request["method"].upper()
        if "header" in self._request:
            self._request["header"] = {
                name.lower(): wanted for name, wanted in self._request["header"].items()
            }
        looks_at_control = self._request.get("path", "").startswith(CONTROL)
        operation = self._request.get("operationId", "")
        if not _matches_any(operation, documents[""].operations):
            looks_at_control |= _matches_any(operation, documents[CONTROL].operations)
        self._compared = {"control": looks_at_control}
        for name in body.keys() & {"commands", "since"}:
            self._compared[name] = body[name]

    def judged(self, journal: Iterable[Trace]) -> Generator[None, None, Body]:
        """The report about requests, newest first; others may be served where it yields."""
        matched = list[str]()
        misses = list[tuple[bool, int, int, str, list[Difference]]]()
        compared = yield from chosen(journal, self._compared)
        for age, trace in enumerate(compared):
            yield
            elsewhere = list(self._target(trace))
            # of one that went to another target the rest is not compared
            found = elsewhere or list(islice(self._rest(trace), MOST_DIFFERENCES))
            if found:
                misses.append((bool(elsewhere), len(found), age, trace.id, found))
                misses = sorted(misses)[:NEAREST]
            else:
                matched.append(trace.id)
        times = self._body.get("times", {"at_least": 1})
        ((name, number),) = times.items()
        holds, nearest = _HOLDS[name](len(matched), number), []
        if not holds:
            for *_, ident, found in misses:
                nearest.append({"id": ident, "differences": list(map(_shown, found))})
        return {
            "ok": holds,
            "code": None if holds else "verification_failed",
            "matched": len(matched),
            "expected": times,
            "requests": matched[:MOST_IDS],
            "nearest": nearest,
        }

    def _target(self, trace: Trace) -> Iterator[Difference]:
        actual = {"method": trace.method, "path": trace.path}
        if trace.operation is not None:
            actual["operationId"] = trace.operation
        wanted = {name: self._request[name] for name in _OF_TARGET if name in self._request}
        return _misses(wanted, actual, "request")

    def _rest(self, trace: Trace) -> Iterator[Difference]:
        wanted = self._response.get("status")
        if wanted is not None and not has_status(str(wanted), trace.status):
            yield "response.status", wanted, trace.status or ABSENT
        query = parse_qsl(trace.query.decode("latin-1"), keep_blank_values=True, errors="replace")
        request = without(self._request, *_OF_TARGET)
        sent: Body = {"query": dict(query), "header": joined(trace.headers)}
        yield from _misses(request, sent | _body(request, trace.body), "request")
        answered = {} if trace.code is None else {"code": trace.code}
        answered |= _body(self._response, trace.answer)
        yield from _misses(without(self._response, "status"), answered, "response")

    def unknown(self) -> Iterator[str]:
        """Messages about an operation or a method that does not exist, which no request
        could match.
        """
        names = list(chain.from_iterable(each.operations for each in self._documents.values()))
        for name, what, known in (
            ("operationId", "operation", names),
            ("method", "method of HTTP", _METHODS),
        ):
            asked = self._request.get(name)
            if asked is not None and not _matches_any(asked, known):
                yield plain(
                    f"There is no {what} {asked[:_LONGEST_NAME]}.{did_you_mean(asked, known)}"
                )

    def warnings(self) -> Iterator[str]:
        """Codes of warnings, where nothing matched."""
        request, code = self._request, self._response.get("code")
        methods, codes = self._methods_at(request.get("path", "*")), list[str]()
        for document in self._documents.values():
            codes += document.raw["components"]["schemas"].get("ErrorCode", {}).get("enum", ())
        if not methods:
            yield "unknown_path"
        elif not _matches_any(request.get("method", "*"), methods):
            yield "unknown_method"
        if code is not None and not _matches_any(code, codes):
            yield "unknown_code"
        for body in (request.get("body"), self._response.get("body")):
            if isinstance(body, dict) and any(name.startswith(("$.", "$[")) for name in body):
                yield "path_as_name"
                return

    def _methods_at(self, path: str) -> set[str]:
        """The methods that paths have which a glob may match; none if there is no such path."""
        found = set()
        for base, document in self._documents.items():
            for operation in document.operations.values():
                if _may_be(path, base + operation.path):
                    found |= {operation.method, "OPTIONS"}  # which every path answers
        if "GET" in found:
            found.add("HEAD")
        return found


def _matches_any(pattern: str, known: Iterable[str]) -> bool:
    """Whether a glob matches one of some names."""
    return any(glob(pattern, name) for name in known)


def _check_size(body: Body) -> None:
    """Raises Invalid for what would delay others: very many values, or much text with wildcards."""
    if has_more_values(body, MOST_VALUES):
        raise Invalid.at(
            "request", f"At most {MOST_VALUES} values can be expected.", violation="max"
        )
    size = 0
    for _, node in nodes(body):
        for value in node.values() if isinstance(node, dict) else node:
            if isinstance(value, str) and is_glob(value):
                size += len(value)
    if size > MOST_GLOBS:
        raise Invalid.at(
            "request",
            f"The globs have at most {MOST_GLOBS} characters together.",
            violation="max",
        )


def _body(wanted: Body, body: bytes | None) -> Body:
    """The body as a member of what is compared, if one is wanted. Null matches an absent body."""
    if "body" in wanted and (body or wanted["body"] is None):
        return {"body": body_of(body)}
    return {}


def _misses(expected: Body, actual: Body, where: str) -> Iterator[Difference]:
    """In what a part of a request or answer is not as expected."""
    return differences(expected, actual, where, _is_like, in_full=False)


def _is_like(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str):
        return isinstance(actual, str) and glob(expected, actual)
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def _shown(found: Difference) -> Body:
    where, expected, actual = found
    entry = {"where": brief(where), "expected": brief(expected)}
    if actual is not ABSENT:
        entry["actual"] = brief(actual)
    return entry


def _may_be(asked: str, template: str) -> bool:
    """Whether a glob may match a path of a template, in which a segment of the glob
    may be an id.
    """
    if glob(asked, template):
        return True
    is_as_deep = asked.count("/") == template.count("/")
    return is_as_deep and glob(_PARAMETER.sub("?*", template), asked.replace("*", "x"))
