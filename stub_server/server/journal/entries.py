"""The requests of the journal: chosen by a query, and shown in a list, whole, and as a command."""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import orjson

from ...contract.formats import end_of_range
from ...contract.secrets import LEFT_OUT, REDACTED
from ...core.clock import iso
from ...core.record import Body
from ...core.text import glob, shortened
from ...engine.kept import Trace
from ...engine.sandbox import Sandbox
from ..curl import MADE_ANEW, command
from ..request import CONTROL
from ..server import Server

OF_THE_CONNECTION = MADE_ANEW | {"x-sandbox", "authorization"}
_LONGEST = 500  # characters of a value that is shown beside others


def row(trace: Trace) -> Body:
    """A request as a list shows it."""
    caller = caller_of(trace, "kind", "key_id", "subject", "merchant_id", "claims")
    if caller is not None:
        caller["admitted"] = trace.reached != "auth"
    return {
        "id": trace.id,
        "at": iso(trace.at),
        "received_at": iso(trace.received),
        "method": plain(trace.method),
        "path": plain(trace.path),
        "query": trace.query.decode("latin-1"),
        "operationId": trace.operation,
        "status": trace.status or None,
        "code": trace.code,
        "duration_us": trace.micros,
        "caller": caller,
        "step": trace.after,
        "simulated": trace.simulated,
        "warnings": list(trace.warnings),
        "by_command": trace.by_command,
    }


def whole(trace: Trace, explanation: Body | None, command: str | None) -> Body:
    """A request with all that the journal stores of it; the outcome of its last stage
    is its own.
    """
    stages = [{"step": name, "outcome": "passed", "us": us} for name, us in trace.stages()]
    stages[-1]["outcome"] = _outcome(trace)
    return {
        **row(trace),
        "request": {"headers": joined(trace.headers), "body": shown_body(trace.body)},
        "response": {"headers": joined(trace.answer_headers), "body": shown_body(trace.answer)},
        "trace": stages,
        "step_before": trace.before,
        "events": list(trace.events),
        "deliveries": list(trace.deliveries),
        "explanation": explanation,
        "curl": command,
    }


def _outcome(trace: Trace) -> str:
    """What became of a request in its last stage."""
    if not trace.status:
        return "dropped"
    if trace.status >= 400 and trace.simulated:
        return "simulated"
    if trace.status >= 500:
        return "failed"
    if trace.status >= 400:
        return "refused"
    return "replayed" if "idempotent-replayed" in dict(trace.answer_headers) else "passed"


def shown_body(body: bytes | None) -> Any:
    """The JSON of a body, which may be 16 MB, else the body as text; None without a body."""
    if not body:
        return None
    try:
        text = orjson.dumps([[[[[[orjson.loads(body)]]]]]])  # nested no deeper than can be shown
    except (ValueError, TypeError):
        return body.decode("utf-8", "replace")
    return orjson.Fragment(text[6:-6])


def body_of(body: bytes | None) -> Any:
    """The value of a JSON body, else the body as text; None without a body."""
    if not body:
        return None
    try:
        return orjson.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by name; the values of one that came more than once are joined by commas."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def plain(text: str) -> str:
    """Text that can be written as JSON."""
    return text.encode("utf-8", "replace").decode()


def brief(value: Any) -> Any:
    """A value that can be written as JSON; a long one as the beginning of its text."""
    if isinstance(value, str):
        return shortened(plain(value), _LONGEST)
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # nested too deep to be written
        return "…"
    return value if len(text) <= _LONGEST else shortened(text, _LONGEST)


def curl(server: Server, sandbox: Sandbox, trace: Trace) -> str | None:
    """The command that sends a request again, with the ready token; None where a part of
    it is not known.
    """
    if not is_known(trace) or lacks_body(trace) or not trace.method.isalpha():
        return None
    headers = {"authorization": f"Bearer {server.ready_token(sandbox)}"}
    for name, value in joined(trace.headers).items():
        if name not in OF_THE_CONNECTION and REDACTED not in value and value.isprintable():
            headers[name] = value
    return command(
        trace.method,
        plain(trace.path),
        trace.query.decode("latin-1"),
        headers,
        trace.body or b"",
        base_url=server.url_of(sandbox),
        has_admin_key=server.guard.admin_key is not None,
    )


def is_cut(trace: Trace) -> bool:
    """Whether the journal has only the beginning of the path or the query."""
    return trace.path.endswith("…") or trace.query.endswith("…".encode())


def is_known(trace: Trace) -> bool:
    """Whether the journal has all of what was sent, but for its secrets and a body that nobody
    read.
    """
    return not is_cut(trace) and trace.received_head != b"" and trace.body != LEFT_OUT


def lacks_body(trace: Trace) -> bool:
    """Whether a body was sent that the journal does not have."""
    if trace.body is not None:
        return trace.body == LEFT_OUT
    sent = dict(trace.headers)
    return sent.get("content-length", "0") != "0" or "transfer-encoding" in sent


def caller_of(trace: Trace, *members: str) -> Body | None:
    """These members of a request's caller; None where none was recognised."""
    if trace.caller is None:
        return None
    return {name: getattr(trace.caller, name) for name in members}


def has_status(wanted: str, status: int) -> bool:
    """Whether a status is one such as `404` or `4xx`."""
    return str(status).startswith(wanted.removesuffix("xx")) and status >= 100


def _parts(trace: Trace) -> tuple[bytes, ...]:
    """The request line and the bodies, in which a text is searched."""
    return (
        trace.path.encode("utf-8", "replace"),
        trace.query,
        trace.body or b"",
        trace.answer or b"",
    )


_CHECKS: Mapping[str, Callable[[Trace, Any], bool]] = {
    "operationId": lambda trace, wanted: trace.operation == wanted,
    "method": lambda trace, wanted: trace.method == wanted,
    "code": lambda trace, wanted: trace.code == wanted,
    "status": lambda trace, wanted: has_status(wanted, trace.status),
    "path": lambda trace, wanted: glob(wanted, trace.path),
    "caller": lambda trace, wanted: (
        wanted in (caller_of(trace, "kind", "key_id", "subject", "merchant_id") or {}).values()
    ),
    "contains": lambda trace, wanted: any(wanted.encode() in part for part in _parts(trace)),
    "control": lambda trace, wanted: wanted or not trace.path.startswith(CONTROL),
    "commands": lambda trace, wanted: wanted or not trace.by_command,
    "warned": lambda trace, wanted: bool(trace.warnings) or not wanted,
    "since": lambda trace, wanted: trace.at >= wanted,
    "until": lambda trace, wanted: trace.at <= wanted,
}
"""Whether a request has what a parameter of the list asks for."""


def chosen(journal: Iterable[Trace], query: Body) -> Generator[None, None, list[Trace]]:
    """The requests that a query of the list admits, in the order of `journal`; others may be served
    where it yields.
    """
    wanted: Body = {"control": False, "commands": False, **query}
    for name in wanted.keys() & {"since", "until"}:
        wanted[name] = end_of_range(query, name)
    checks = [(_CHECKS[name], value) for name, value in wanted.items() if name in _CHECKS]
    found = []
    for trace in journal:
        if all(check(trace, value) for check, value in checks):
            found.append(trace)
        yield
    return found
