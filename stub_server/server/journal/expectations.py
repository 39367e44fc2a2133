"""What is expected of the requests to a sandbox: which ones, how often, the nearest ones, and
likely slips.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from http import HTTPMethod
from itertools import islice
from operator import eq, ge, le
from typing import Any, Final
from urllib.parse import parse_qsl

from ...contract.document import Document
from ...contract.formats import end_of_range
from ...contract.source import nodes
from ...core.problem import Invalid
from ...core.record import Body, has_more_values, without
from ...core.text import (
    MOST_GLOBS,
    did_you_mean,
    glob,
    is_glob,
)
from ...engine.kept import Trace
from ..request import CONTROL
from .entries import body_of, brief, has_status, joined, plain

NEAREST = 3
MOST_DIFFERENCES = 20  # of one request
MOST_IDS = 100  # of requests that match
MOST_VALUES = 1_000  # that are expected of a request, with those in its bodies
LONGEST_GLOB = 200  # characters
_AWAY = 100  # how much farther a request to another target is than one that differs in a value

_HOLDS = {"exactly": eq, "at_least": ge, "at_most": le}
Difference = tuple[str, Any, Any]
_ABSENT: Final = object()  # no value, as JSON's null is one
_METHODS = tuple(method.value for method in HTTPMethod)
_OF_TARGET = ("operationId", "method", "path")
_LONGEST_NAME = 100  # characters of what was asked for
_PARAMETER = re.compile(r"\{[^{}]*\}")
_PATHS = ("$.", "$[")  # how a name of a member begins that was intended as a path


class Expectation:
    """The body of a verification. Objects match as subsets; texts are globs with `*` and `?`."""

    def __init__(self, body: Body, documents: Mapping[str, Document]) -> None:
        """`body` as the contract has it; `documents` are the contracts by the base of their paths.

        Raises Invalid for a body that takes too long to compare with every request.
        """
        _check_size(body)
        self._documents = documents
        self._request, self._response = dict(body.get("request", {})), body.get("response", {})
        if "method" in self._request:
            self._request["method"] = self._request["method"].upper()
        if "header" in self._request:
            headers = self._request["header"].items()
            self._request["header"] = {name.lower(): wanted for name, wanted in headers}
        self._counts_commands: bool = body.get("commands", False)
        self._times: Mapping[str, int] = body.get("times", {"at_least": 1})
        self._since = end_of_range(body, "since")
        self._looks_at_control = self._request.get("path", "").startswith(CONTROL)
        operation = self._request.get("operationId", "")
        if not _matches_any(operation, documents[""].operations):
            self._looks_at_control |= _matches_any(operation, documents[CONTROL].operations)

    def judged(self, journal: Iterable[Trace]) -> Generator[None, None, Body]:
        """The report about requests, newest first; others may be served where it yields."""
        matched: list[str] = []
        misses: list[tuple[int, int, str, list[Difference]]] = []
        for age, trace in enumerate(journal):
            yield
            if not self._counts(trace):
                continue
            found = list(self._target(trace))
            weight = _AWAY * len(found)
            if not found:  # else it went to another target, and the rest is not compared
                found = list(islice(self._rest(trace), MOST_DIFFERENCES))
                weight = len(found)
            if found:
                misses.append((weight, age, trace.id, found))
                misses = sorted(misses, key=lambda miss: miss[:2])[:NEAREST]
            else:
                matched.append(trace.id)
        return self._report(matched, misses)

    def _report(
        self, matched: Sequence[str], misses: Iterable[tuple[int, int, str, list[Difference]]]
    ) -> Body:
        """The report about ids of requests that match, and the nearest ones that do not."""
        ((name, number),), count = self._times.items(), len(matched)
        holds, nearest = _HOLDS[name](count, number), []
        if not holds:
            for _, _, ident, found in misses:
                nearest.append({"id": ident, "differences": _shown(found)})
        return {
            "ok": holds,
            "code": None if holds else "verification_failed",
            "matched": count,
            "expected": dict(self._times),
            "requests": matched[:MOST_IDS],
            "nearest": nearest,
        }

    def _counts(self, trace: Trace) -> bool:
        """Whether a request is one of those that are compared."""
        if self._since is not None and trace.at < self._since:
            return False
        if trace.path.startswith(CONTROL) and not self._looks_at_control:
            return False
        return self._counts_commands or not trace.by_command

    def _target(self, trace: Trace) -> Iterator[Difference]:
        actual = {"operationId": trace.operation, "method": trace.method, "path": trace.path}
        wanted = {name: self._request[name] for name in actual if name in self._request}
        if trace.operation is None:
            del actual["operationId"]
        yield from differences(wanted, actual, "request")

    def _rest(self, trace: Trace) -> Iterator[Difference]:
        response, shown = dict(self._response), Body()
        wanted = response.pop("status", None)
        if wanted is not None and not has_status(str(wanted), trace.status):
            yield "response.status", wanted, trace.status or _ABSENT
        if trace.code is not None:
            shown["code"] = trace.code
        query = parse_qsl(trace.query.decode("latin-1"), keep_blank_values=True, errors="replace")
        request = without(self._request, *_OF_TARGET)
        sent = {"query": dict(query), "header": joined(trace.headers)}
        yield from differences(request, sent | _body(request, trace.body), "request")
        yield from differences(response, shown | _body(response, trace.answer), "response")

    def unknown(self) -> Iterator[str]:
        """Messages about an operation or a method that does not exist, which no request
        could match.
        """
        names = list[str]()
        for document in self._documents.values():
            names += document.operations
        kinds = ("operationId", "operation", names), ("method", "method of HTTP", _METHODS)
        for name, what, known in kinds:
            asked = self._request.get(name)
            if asked is not None and not _matches_any(asked, known):
                text = f"There is no {what} {asked[:_LONGEST_NAME]}.{did_you_mean(asked, known)}"
                yield plain(text)

    def warnings(self) -> Iterator[str]:
        """Codes of warnings, where nothing matched."""
        request, code = self._request, self._response.get("code")
        methods, codes = self._methods_at(request.get("path", "*")), list[str]()
        for document in self._documents.values():
            codes += document.raw["components"]["schemas"].get("ErrorCode", {}).get("enum", ())
        if not methods:
            yield "unknown_path"
        elif "method" in request and not _matches_any(request["method"], methods):
            yield "unknown_method"
        if code is not None and not _matches_any(code, codes):
            yield "unknown_code"
        if _names_path(request.get("body")) or _names_path(self._response.get("body")):
            yield "path_as_name"

    def _methods_at(self, path: str) -> set[str]:
        """The methods that paths have which a glob may match; none if there is no such path."""
        found = set()
        for base, document in self._documents.items():
            for operation in document.operations.values():
                if path == "*" or _may_be(path, base + operation.path):
                    found.add(operation.method)
        if found:
            found.add("OPTIONS")  # which every path answers
        if "GET" in found:
            found.add("HEAD")
        return found


def _matches_any(pattern: str, known: Iterable[str]) -> bool:
    """Whether a glob matches one of some names."""
    return any(glob(pattern, name) for name in known)


def _names_path(body: Any) -> bool:
    """Whether a body has a member that was intended as a path."""
    return isinstance(body, dict) and any(name.startswith(_PATHS) for name in body)


def _check_size(body: Body) -> None:
    if has_more_values(body, MOST_VALUES):
        raise _too_much(f"At most {MOST_VALUES} values can be expected.")
    globs = []
    for _, node in nodes(body):
        values = node.values() if isinstance(node, dict) else node
        for value in values:
            if isinstance(value, str) and is_glob(value):
                globs.append(value)
    if any(len(pattern) > LONGEST_GLOB for pattern in globs):
        raise _too_much(f"A glob has at most {LONGEST_GLOB} characters.")
    if sum(map(len, globs)) > MOST_GLOBS:
        raise _too_much(f"The globs have at most {MOST_GLOBS} characters together.")


def _too_much(message: str) -> Invalid:
    return Invalid.at("request", message, violation="max")


def _body(wanted: Body, body: bytes | None) -> Body:
    """The body as a member of what is compared, if one is wanted. Null matches an absent body."""
    if "body" in wanted and (body or wanted["body"] is None):
        return {"body": body_of(body)}
    return {}


def differences(expected: Any, actual: Any, where: str) -> Iterator[Difference]:
    """The differences of a value from the expected one."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name, wanted in expected.items():
            if name in actual:
                yield from differences(wanted, actual[name], f"{where}.{name}")
            else:
                yield f"{where}.{name}", wanted, _ABSENT
    elif isinstance(expected, list) and isinstance(actual, list) and len(actual) == len(expected):
        for number, wanted in enumerate(expected):
            yield from differences(wanted, actual[number], f"{where}[{number}]")
    elif not _equal(expected, actual):
        yield where, expected, actual


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str):
        return isinstance(actual, str) and glob(expected, actual)
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def _shown(found: Iterable[Difference]) -> list[Body]:
    shown = []
    for where, expected, actual in found:
        entry = {"where": brief(where), "expected": brief(expected)}
        if actual is not _ABSENT:
            entry["actual"] = brief(actual)
        shown.append(entry)
    return shown


def _may_be(asked: str, template: str) -> bool:
    """Whether a glob may match a path of a template, in which a segment of the glob
    may be an id.
    """
    if glob(asked, template):
        return True
    is_as_deep = asked.count("/") == template.count("/")
    return is_as_deep and glob(_PARAMETER.sub("?*", template), asked.replace("*", "x"))
