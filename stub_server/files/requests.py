"""The requests of a recording as a journal has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..engine.journal import Trace
from ..engine.step import Step
from ..kernel.record import Body

_OVERHEAD = 1_000  # bytes of a request besides what came and went
_AT_THE_GATE = (401, 403)


class PastCaller(NamedTuple):
    """Who a caller was, as far as a recording knows."""

    kind: str
    subject: str
    merchant_id: str
    key_id: str | None
    claims: Body | None


def traces_of(requests: Sequence[Body], steps: Iterable[Step], sandbox: str, *, keeps_bodies: bool) -> Iterator[Trace]:
    """The requests of a sandbox in their order; `steps` tell what they raised."""
    made = defaultdict[str, list[Step]](list)
    for step in steps if requests else ():
        made[step.cause.id].append(step)
    for told in requests:
        query = told["query"].encode("latin-1")
        trace = Trace(told["id"], told["at"], told["method"], told["path"], query, sandbox, told["before"])
        trace.received = told["wall"]
        trace.after, trace.status, trace.code, trace.simulated = (
            told[name] for name in ("after", "status", "code", "simulated")
        )
        trace.operation, trace.is_prefixed = told["operation"], told["prefixed"]
        trace.is_control = told["path"].startswith("/_sandbox")
        trace.caller = _caller(told["caller"])
        if trace.status in _AT_THE_GATE:
            trace.auth_at = trace.began
        for step in made[trace.id]:
            trace.events += tuple(event.id for event in step.events)
            trace.deliveries += tuple(
                r.id for table, r, before in step.puts if before is None and table == "webhook_logs"
            )
        if keeps_bodies:
            _keep(trace, told)
        trace.size = _OVERHEAD + len(trace.packed) + len(trace.body or b"") + len(trace.sent) + trace.length
        yield trace


def _keep(trace: Trace, told: Body) -> None:
    """Have what came and went."""
    names, values = zip(*told["headers"], strict=True) if told["headers"] else ((), ())
    trace.packed = "\n".join((*names, *values)).encode("latin-1")
    trace.sent = "".join(f"{name}: {value}\r\n" for name, value in told["answer_headers"]).encode("latin-1")
    trace.body = told["body"].encode("latin-1") or None
    trace.answer = None if told["answer"] is None else told["answer"].encode("latin-1")


def _caller(told: Any) -> PastCaller | None:
    if told is None:
        return None
    return PastCaller(
        told["kind"], told.get("subject", ""), told.get("merchant_id", ""), told["key_id"], told["claims"]
    )
