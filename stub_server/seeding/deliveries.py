"""Deliveries of the seeded past: what each webhook's endpoint answered, attempt by attempt."""

from __future__ import annotations

import math
from random import Random
from typing import Any, NamedTuple

from ..domain.webhooks import GONE, SCHEDULE, Wish, new_log
from ..events.log import Event
from ..events.signing import signatures
from ..kernel.clock import iso
from ..kernel.record import Body
from ..version import __version__
from .draw import Weighted

TIMEOUT_MS = 15_000
OK = '{"received":true}'
Fault = tuple[int | None, str]
OUTAGES: Weighted[Fault] = Weighted((((503, "http_5xx"), 50), ((502, "http_5xx"), 25), ((None, "timeout"), 25)))
REJECTS: Fault = (500, "http_5xx")  # a payload that the endpoint cannot digest, today or tomorrow
_PAGE = "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n</body>\r\n</html>\r\n"
_HTML, _JSON = "text/html", "application/json"
BODIES = {
    200: (_JSON, OK),
    500: (_JSON, '{"error":"internal server error"}'),
    502: (_HTML, _PAGE.format("502 Bad Gateway")),
    503: (_HTML, _PAGE.format("503 Service Temporarily Unavailable")),
    GONE: (_JSON, ""),
}


class Delivered(NamedTuple):
    """A delivery as it stands now. `last` is when its latest attempt was answered."""

    public: Body
    hidden: Body
    last: int


def deliver(
    rng: Random,
    ident: str,
    wish: Wish,
    event: Event,
    serial: int,
    key: str,
    headers: tuple[tuple[str, str], ...],
    now: int,
    *,
    up_at: float,
    fault: Fault = REJECTS,
    gone: bool = False,
) -> Delivered:
    """One delivery up to now: before `up_at` (ms) the endpoint answers with `fault`; `gone` answers 410 for ever."""
    payload = event.payload()
    public, hidden = new_log(ident, wish, event.id, event.type, payload, serial, iso(event.at), test=False)
    attempts: list[Body] = []
    at, last, sent = event.at, event.at, {}
    status: str = "pending"
    answer: dict[str, str] = {}
    for number, wait in enumerate(SCHEDULE, start=1):
        at = last + wait
        good = not gone and at >= up_at
        code, error = (GONE, "http_4xx") if gone else (200, None) if good else fault
        took = TIMEOUT_MS if code is None else _answer_ms(rng)
        if at + took > now:
            public["next_attempt_at"] = iso(max(at, now + 1_000)) if status == "retrying" else iso(at)
            break
        last = at + took
        stamp = at // 1000
        signature = signatures((key,), event.id, stamp, payload)
        sent = _headers(event.id, stamp, signature, headers)
        media, body = ("", None) if code is None else BODIES[code]
        answer = {} if code is None else {"content-type": media, "server": "nginx"}
        attempts.append(
            {
                "number": number,
                "at": iso(at),
                "response_status": code,
                "duration_ms": took,
                "error": error,
                "signature": signature,
                "trigger": "automatic",
            }
        )
        status = "delivered" if good else "failed" if gone or number == len(SCHEDULE) else "retrying"
        public |= {
            "status": status,
            "attempt_count": number,
            "response_status": code,
            "response_body": body,
            "duration_ms": took,
            "error": error,
            "next_attempt_at": None,
            "last_attempt_at": iso(at),
            "delivered_at": iso(last) if good else None,
            "updatedAt": iso(last),
        }
        if status != "retrying":
            break
    kept: dict[str, Any] = {"request_headers": sent, "response_headers": answer, "attempts": attempts}
    return Delivered(public, hidden | kept, last)


def _answer_ms(rng: Random) -> int:
    """How long an endpoint takes: mostly a tenth of a second, seldom a whole one."""
    return min(40 + int(80 * math.exp(0.7 * rng.normalvariate(0, 1))), TIMEOUT_MS - 1)


def _headers(event_id: str, stamp: int, signature: str, own: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {
        "content-type": "application/json",
        "user-agent": f"membership-sandbox/{__version__}",
        "webhook-id": event_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": signature,
        **{name.lower(): value for name, value in own},
    }
