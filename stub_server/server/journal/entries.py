"""The requests of the journal: chosen by a query, and shown in a list, whole, and as a command."""

from collections.abc import Generator, Iterable
from typing import Any

import orjson

from ...contract.formats import end_of_range
from ...contract.secrets import LEFT_OUT, REDACTED
from ...core.clock import iso
from ...core.record import Body
from ...core.text import glob
from ...engine.journal import LONGEST, Trace
from ...engine.sandbox import DEFAULT, Sandbox
from ..curl import command
from ..request import CONTROL
from ..server import Server

# Headers of a connection, or that are made anew when a request is sent again.
OF_THE_CONNECTION = frozenset(
    (
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "expect",
        "keep-alive",
        "te",
        "upgrade",
        "x-sandbox",
        "authorization",
    )
)


def row(trace: Trace) -> Body:
    caller = caller_of(trace, "kind", "key_id", "subject", "merchant_id", "claims")
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
        "caller": None if caller is None else caller | {"admitted": trace.reached != "auth"},
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
        "request": {"headers": joined(trace.headers), "body": body_of(trace.body)},
        "response": {"headers": joined(trace.answer_headers), "body": body_of(trace.answer)},
        "trace": stages,
        "step_before": trace.before,
        "events": list(trace.events),
        "deliveries": list(trace.deliveries),
        "explanation": explanation,
        "curl": command,
    }


def _outcome(trace: Trace) -> str:
    if not trace.status:
        return "dropped"
    if trace.status >= 400 and trace.simulated:
        return "simulated"
    if trace.status >= 400:
        return "failed" if trace.status >= 500 else "refused"
    return "replayed" if "idempotent-replayed" in dict(trace.answer_headers) else "passed"


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
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def plain(text: str) -> str:
    """Text that can be written as JSON."""
    return text.encode("utf-8", "replace").decode()


def curl(server: Server, sandbox: Sandbox, trace: Trace) -> str | None:
    """The command that sends a request again, with the ready token; None where a part of
    it is not known.
    """
    is_cut = len(trace.path) > LONGEST or len(trace.query) > LONGEST or not trace.received_head
    sent = joined(trace.headers)
    lacks_body = trace.body is None and (
        sent.get("content-length", "0") != "0" or "transfer-encoding" in sent
    )
    if is_cut or lacks_body or trace.body == LEFT_OUT or not trace.method.isalpha():
        return None
    base_url = server.settings.url + ("" if sandbox.name == DEFAULT else f"/s/{sandbox.name}")
    headers = {"authorization": f"Bearer {server.ready_token(sandbox)}"}
    for name, value in sent.items():
        if name not in OF_THE_CONNECTION and REDACTED not in value and value.isprintable():
            headers[name] = value
    query = trace.query.decode("latin-1")
    has_key = server.admin_key is not None
    return command(
        trace.method,
        plain(trace.path),
        query,
        headers,
        trace.body or b"",
        base_url=base_url,
        has_admin_key=has_key,
    )


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
        is_in_time = (since is None or trace.at >= since) and (until is None or trace.at <= until)
        if is_in_time and _admits(query, trace):
            found.append(trace)
        yield
    return found


def _admits(query: Body, trace: Trace) -> bool:
    equal = {"operationId": trace.operation, "method": trace.method, "code": trace.code}
    caller = trace.caller
    names = (
        ()
        if caller is None
        else (caller.kind, caller.key_id or "", caller.subject, caller.merchant_id)
    )
    return (
        all(query.get(name, value) == value for name, value in equal.items())
        and ("status" not in query or has_status(query["status"], trace.status))
        and (query.get("control", False) or not trace.path.startswith(CONTROL))
        and (not query.get("warned", False) or bool(trace.warnings))
        and (query.get("commands", False) or not trace.by_command)
        and ("path" not in query or glob(query["path"], trace.path))
        and ("caller" not in query or query["caller"] in names)
        and ("contains" not in query or _contains(trace, query["contains"].encode()))
    )


def has_status(wanted: str, status: int) -> bool:
    """Whether a status is one such as `404` or `4xx`."""
    return str(status).startswith(wanted.removesuffix("xx")) and status >= 100


def _contains(trace: Trace, text: bytes) -> bool:
    parts = (
        trace.body or b"",
        trace.answer or b"",
        trace.query,
        trace.path.encode("utf-8", "replace"),
    )
    return any(text in part for part in parts)
