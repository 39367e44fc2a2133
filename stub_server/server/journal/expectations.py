"""What is expected of the requests to a sandbox: which ones, how often, the nearest ones, and
likely slips.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from http import HTTPMethod
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qsl

from ...contract.document import Document
from ...contract.formats import end_of_range
from ...contract.source import nodes
from ...core.problem import Invalid
from ...core.record import Body, has_more_values
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

Difference = tuple[str, Any, Any]
_ABSENT: Final = object()  # no value, as JSON's null is one
_METHODS = tuple(method.value for method in HTTPMethod)
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
        self._documents, self._asked = documents, body.get("request", {})
        self._request, self._response = dict(self._asked), body.get("response", {})
        if "method" in self._request:
            self._request["method"] = self._request["method"].upper()
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
        bounds = {
            "exactly": count == number,
            "at_least": count >= number,
            "at_most": count <= number,
        }
        report: Body = {
            "ok": bounds[name],
            "code": None,
            "matched": count,
            "expected": dict(self._times),
            "requests": matched[:MOST_IDS],
            "nearest": [],
        }
        if not bounds[name]:
            report["code"] = "verification_failed"
            for _, _, ident, found in misses:
                report["nearest"].append({"id": ident, "differences": _shown(found)})
        return report

    def _counts(self, trace: Trace) -> bool:
        """Whether a request is one of those that are compared."""
        if self._since is not None and trace.at < self._since:
            return False
        if trace.path.startswith(CONTROL) and not self._looks_at_control:
            return False
        return self._counts_commands or not trace.by_command

    def _target(self, trace: Trace) -> Iterator[Difference]:
        for name, actual in (
            ("operationId", trace.operation),
            ("method", trace.method),
            ("path", trace.path),
        ):
            if name in self._request:
                yield from differences(self._request[name], _or_absent(actual), f"request.{name}")

    def _rest(self, trace: Trace) -> Iterator[Difference]:
        request, response = self._request, self._response
        if "status" in response and not has_status(str(response["status"]), trace.status):
            yield "response.status", response["status"], _or_absent(trace.status or None)
        if "code" in response:
            yield from differences(response["code"], _or_absent(trace.code), "response.code")
        if "query" in request:
            query = dict(
                parse_qsl(trace.query.decode("latin-1"), keep_blank_values=True, errors="replace")
            )
            yield from differences(request["query"], query, "request.query")
        if "header" in request:
            headers = joined(trace.headers)
            for name, wanted in request["header"].items():
                actual = headers.get(name.lower(), _ABSENT)
                yield from differences(wanted, actual, f"request.header.{name.lower()}")
        if "body" in request:
            yield from _of_body(request["body"], trace.body, "request.body")
        if "body" in response:
            yield from _of_body(response["body"], trace.answer, "response.body")

    def unknown(self) -> Iterator[str]:
        """Messages about an operation or a method that does not exist, which no request
        could match.
        """
        request, names = self._request, list[str]()
        for document in self._documents.values():
            names += document.operations
        if "operationId" in request and not _matches_any(request["operationId"], names):
            yield _unknown(self._asked["operationId"], "operation", names)
        if "method" in request and not _matches_any(request["method"], _METHODS):
            yield _unknown(self._asked["method"], "method of HTTP", _METHODS)

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


def _or_absent(value: Any) -> Any:
    if value is None:
        return _ABSENT
    return value


def _of_body(expected: Any, body: bytes | None, where: str) -> Iterator[Difference]:
    """The differences of a whole body. Null matches an absent body."""
    if expected is not None and not body:
        yield where, expected, _ABSENT
    else:
        yield from differences(expected, body_of(body), where)


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


def _unknown(asked: str, what: str, known: Sequence[str]) -> str:
    text = f"There is no {what} {asked[:_LONGEST_NAME]}.{did_you_mean(asked, known)}"
    return plain(text)


def _may_be(asked: str, template: str) -> bool:
    """Whether a glob may match a path of a template, in which a segment of the glob
    may be an id.
    """
    if glob(asked, template):
        return True
    is_as_deep = asked.count("/") == template.count("/")
    return is_as_deep and glob(_PARAMETER.sub("?*", template), asked.replace("*", "x"))
