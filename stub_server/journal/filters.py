"""Which requests of the journal are meant: the query of the list."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from ..calls.call import CONTROL
from ..contract.formats import range_end_ms
from ..engine.journal import Trace
from ..kernel.record import Body
from ..kernel.text import glob

AT_ONCE = 16  # requests that are looked at before others may be served


class Filter:
    """The conditions of a query; all that are named must hold."""

    def __init__(self, query: Body) -> None:
        """`query` as the contract has it: operationId, method, path, status, code, caller, since, until and so on."""
        self._operation, self._method = query.get("operationId"), query.get("method")
        self._path, self._code, self._caller = query.get("path"), query.get("code"), query.get("caller")
        self._status = query.get("status")
        self._since = range_end_ms(query["since"]) if "since" in query else None
        self._until = range_end_ms(query["until"]) if "until" in query else None
        self._contains = query["contains"].encode() if "contains" in query else None
        self._control = query.get("control", False)

    def admits(self, trace: Trace) -> bool:
        """Whether a request is meant."""
        return (
            (self._operation is None or self._operation == trace.operation)
            and (self._method is None or self._method == trace.method)
            and (self._code is None or self._code == trace.code)
            and (self._status is None or has_status(self._status, trace.status))
            and (self._since is None or trace.at >= self._since)
            and (self._until is None or trace.at <= self._until)
            and (self._control or not trace.path.startswith(CONTROL))
            and (self._path is None or glob(self._path, trace.path))
            and (self._caller is None or self._caller in names_of(trace))
            and (self._contains is None or _holds(trace, self._contains))
        )


def chosen(journal: Iterable[Trace], wanted: Filter) -> Generator[None, None, list[Trace]]:
    """The requests that are meant, in the order of `journal`; others may be served where it yields."""
    found = []
    for number, trace in enumerate(journal):
        if wanted.admits(trace):
            found.append(trace)
        if number % AT_ONCE == 0:
            yield
    return found


def has_status(wanted: str, status: int) -> bool:
    """Whether a status is one such as `404` or `4xx`."""
    return str(status).startswith(wanted.removesuffix("xx")) and status >= 100


def names_of(trace: Trace) -> tuple[str, ...]:
    """What a caller may be called: by kind, key, user and merchant."""
    caller = trace.caller
    return () if caller is None else (caller.kind, caller.key_id or "", caller.subject, caller.merchant_id)


def _holds(trace: Trace, text: bytes) -> bool:
    return (
        text in (trace.body or b"")
        or text in (trace.answer or b"")
        or text in trace.query
        or text in trace.path.encode("utf-8", "replace")
    )
