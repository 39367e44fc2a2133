"""What was expected of the requests to a sandbox: which ones, how often, and what comes nearest."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson

from ..calls.call import CONTROL
from ..contract.formats import range_end_ms
from ..engine.journal import Trace
from ..kernel.problem import Invalid, detail
from ..kernel.record import Body
from ..kernel.text import glob
from .filters import has_status
from .showing import body_of, joined, plain

NEAREST = 3
MOST_DIFFERENCES = 20  # of one request
MOST_IDS = 100  # of requests that match
MOST_VALUES = 1_000  # that are expected of a request, with those in its bodies
LONGEST_GLOB = 200  # characters
_SHOWN = 500  # characters of a value
_TARGET = ("operationId", "method", "path")
_AWAY = 100  # how much farther a request to another target is than one that differs in a value

Difference = tuple[str, Any, Any]
_ABSENT: Final = object()  # what there is where nothing is; JSON's null is a value


class Expectation:
    """The body of a verification. Objects match as subsets; texts are globs with `*` and `?`."""

    def __init__(self, body: Body, *, of_control: bool = False) -> None:
        """`body` as the contract has it; `of_control` says that it names an operation of the control surface.

        Raises Invalid for more than can be looked at for every request.
        """
        _check_size(body)
        self._request, self._response = dict(body.get("request", {})), body.get("response", {})
        if "method" in self._request:
            self._request["method"] = self._request["method"].upper()
        self._times: Mapping[str, int] = body.get("times", {"at_least": 1})
        self._since = range_end_ms(body["since"]) if "since" in body else None
        self._looks_at_control = of_control or self._request.get("path", "").startswith(CONTROL)

    def judged(self, journal: Iterable[Trace]) -> Generator[None, None, Body]:
        """The report about requests, newest first; others may be served where it yields."""
        matched: list[str] = []
        misses: list[tuple[int, int, str, list[Difference]]] = []
        for age, trace in enumerate(journal):
            if (self._since is not None and trace.at < self._since) or self._is_aside(trace):
                continue
            weight, found = yield from self._compared(trace)
            if not found:
                matched.append(trace.id)
            else:
                misses = sorted([*misses, (weight, age, trace.id, found)], key=lambda miss: miss[:2])[:NEAREST]
            yield
        ok = self._holds(len(matched))
        return {
            "ok": ok,
            "code": None if ok else "verification_failed",
            "matched": len(matched),
            "expected": dict(self._times),
            "requests": matched[:MOST_IDS],
            "nearest": [] if ok else [{"id": ident, "differences": _told(found)} for _, _, ident, found in misses],
        }

    def _is_aside(self, trace: Trace) -> bool:
        """Whether a request is to the control surface while the API is meant."""
        return trace.path.startswith(CONTROL) and not self._looks_at_control

    def _holds(self, count: int) -> bool:
        ((name, number),) = self._times.items()
        return {"exactly": count == number, "at_least": count >= number, "at_most": count <= number}[name]

    def _compared(self, trace: Trace) -> Generator[None, None, tuple[int, list[Difference]]]:
        """How far a request is from what is expected, and in what it differs.

        The bodies of requests to another target are not looked at.
        """
        found = list(self._target(trace))
        if found:
            return _AWAY * len(found), found
        for difference in self._rest(trace):
            if difference is None:
                yield
            elif len(found) < MOST_DIFFERENCES:
                found.append(difference)
            else:
                break
        return len(found), found

    def _target(self, trace: Trace) -> Iterator[Difference]:
        actual = {"operationId": trace.operation, "method": trace.method, "path": trace.path}
        for name in _TARGET:
            if name in self._request and not (
                actual[name] is not None and glob(self._request[name], str(actual[name]))
            ):
                yield f"request.{name}", self._request[name], _or_absent(actual[name])

    def _rest(self, trace: Trace) -> Iterator[Difference | None]:
        request, response = self._request, self._response
        if "status" in response and not has_status(str(response["status"]), trace.status):
            yield "response.status", response["status"], _or_absent(trace.status or None)
        if "code" in response and not (trace.code is not None and glob(response["code"], trace.code)):
            yield "response.code", response["code"], _or_absent(trace.code)
        if "query" in request:
            query = dict(parse_qsl(trace.query.decode("latin-1"), keep_blank_values=True, errors="replace"))
            yield from differences(request["query"], query, "request.query")
        if "header" in request:
            wanted = {name.lower(): value for name, value in request["header"].items()}
            yield from differences(wanted, joined(trace.headers), "request.header")
        if "body" in request:
            yield from _of_body(request["body"], trace.body, "request.body")
        if "body" in response:
            yield from _of_body(response["body"], trace.answer, "response.body")


def _check_size(body: Body) -> None:
    values: list[Any] = [body]
    count = 0
    while values:
        value = values.pop()
        count += 1
        if count > MOST_VALUES:
            raise _too_much(f"At most {MOST_VALUES} values can be expected.")
        if isinstance(value, str) and len(value) > LONGEST_GLOB and ("*" in value or "?" in value):
            raise _too_much(f"A glob has at most {LONGEST_GLOB} characters.")
        values.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())


def _too_much(message: str) -> Invalid:
    return Invalid(message, details=[detail("request", "max", message)])


def _or_absent(value: Any) -> Any:
    return _ABSENT if value is None else value


def _of_body(expected: Any, body: bytes | None, where: str) -> Iterator[Difference | None]:
    """The differences of a whole body; whoever expects null is content with none."""
    if expected is not None and not body:
        yield where, expected, _ABSENT
    else:
        yield from differences(expected, body_of(body), where)


def differences(expected: Any, actual: Any, where: str) -> Iterator[Difference | None]:
    """In what a value differs from what is expected of it, and None for each part of it that does not.

    A part is compared in little time, however many there are.
    """
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            yield where, expected, actual
            return
        for name, wanted in expected.items():
            if name in actual:
                yield from differences(wanted, actual[name], f"{where}.{name}")
            else:
                yield f"{where}.{name}", wanted, _ABSENT
    elif isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            yield where, expected, actual
            return
        for number, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(wanted, found, f"{where}[{number}]")
    elif _equal(expected, actual):
        yield None
    else:
        yield where, expected, actual


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str):
        return isinstance(actual, str) and (expected == actual or glob(expected, actual))
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def _told(found: Iterable[Difference]) -> list[Body]:
    return [
        {"where": plain(where[:_SHOWN]), "expected": _cut(expected)}
        | ({} if actual is _ABSENT else {"actual": _cut(actual)})
        for where, expected, actual in found
    ]


def _cut(value: Any) -> Any:
    """A value, or the beginning of its text where it is long."""
    text = orjson.dumps(plain(value) if isinstance(value, str) else value).decode()
    return orjson.loads(text) if len(text) <= _SHOWN else text[:_SHOWN] + "…"
