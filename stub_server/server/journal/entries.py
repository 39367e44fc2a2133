"""The requests of the journal: chosen by a query, and shown in a list, whole, and as a command."""

from collections.abc import Generator, Iterable
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
        "request": {"headers": joined(trace.headers), "body": _shown(trace.body)},
        "response": {"headers": joined(trace.answer_headers), "body": _shown(trace.answer)},
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


def _shown(body: bytes | None) -> Any:
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
        value = orjson.loads(body)
        orjson.dumps([[[[[[value]]]]]])  # nested no deeper than can be shown
    except (ValueError, TypeError):
        return body.decode("utf-8", "replace")
    return value


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
    if len(text) <= _LONGEST:
        return value
    return shortened(text, _LONGEST)


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


def chosen(journal: Iterable[Trace], query: Body) -> Generator[None, None, list[Trace]]:
    """The requests that a query of the list admits, in the order of `journal`; others may be served
    where it yields.
    """
    since, until = end_of_range(query, "since"), end_of_range(query, "until")
    found = []
    for trace in journal:
        if _is_between(trace, since, until) and _is_shown(trace, query) and _fits(trace, query):
            found.append(trace)
        yield
    return found


def _is_between(trace: Trace, since: int | None, until: int | None) -> bool:
    """Whether a request came in a stretch of time, without an end where one is None."""
    if since is not None and trace.at < since:
        return False
    return until is None or trace.at <= until


def _is_shown(trace: Trace, query: Body) -> bool:
    """Whether a request is of a kind that a query lists: those to the control surface and those of
    the command only if asked.
    """
    if trace.path.startswith(CONTROL) and not query.get("control"):
        return False
    if trace.by_command and not query.get("commands"):
        return False
    return bool(trace.warnings) or not query.get("warned")


def _fits(trace: Trace, query: Body) -> bool:
    """Whether a request has what a query asks for, as far as it asks."""
    equal = {"operationId": trace.operation, "method": trace.method, "code": trace.code}
    for name, value in equal.items():
        if name in query and query[name] != value:
            return False
    if "status" in query and not has_status(query["status"], trace.status):
        return False
    if "path" in query and not glob(query["path"], trace.path):
        return False
    if "caller" in query and query["caller"] not in _names_of_caller(trace):
        return False
    return "contains" not in query or _contains(trace, query["contains"].encode())


def _names_of_caller(trace: Trace) -> tuple[str | None, ...]:
    """What the caller of a request may be called in a query."""
    caller = trace.caller
    if caller is None:
        return ()
    return caller.kind, caller.key_id, caller.subject, caller.merchant_id


def has_status(wanted: str, status: int) -> bool:
    """Whether a status is one such as `404` or `4xx`."""
    return str(status).startswith(wanted.removesuffix("xx")) and status >= 100


def _contains(trace: Trace, text: bytes) -> bool:
    """Whether the request line or a body has a text."""
    parts = (
        trace.body or b"",
        trace.answer or b"",
        trace.query,
        trace.path.encode("utf-8", "replace"),
    )
    return any(text in part for part in parts)
