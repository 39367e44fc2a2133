"""Refusals of the server as a whole: limits, faults that were asked for, and what it cannot do now
or at all.
"""

import httpx2

from stub_server.contract.document import Operation

from .. import wire
from ..estate import Estate
from ..make import created
from .row import Answer, Row, send, simulated


def failing(shop: Estate, operation: Operation) -> Answer:
    """A fault rule that fails this merchant's requests alone."""
    match = {"header": {"X-Shop": shop.merchant_id}}
    made = created(shop.control.post("/faults", json={"match": match, "then": {"status": 503}}))[
        "fault"
    ]
    refusal = shop.api.get("/v2/plans", headers={"X-Shop": shop.merchant_id})
    assert 204 == shop.control.delete(f"/faults/{made['id']}").status_code
    return refusal


def in_gzip(shop: Estate, operation: Operation) -> Answer:
    """A transfer coding that no client would send."""
    lines = (
        "GET /v2/plans HTTP/1.1",
        f"Host: 127.0.0.1:{shop.live.port}",
        "Transfer-Encoding: gzip, chunked",
        "",
        "",
    )
    answer = wire.exchange(shop.live.port, "GET", "\r\n".join(lines).encode())
    return httpx2.Response(answer.status, headers=list(answer.headers), content=answer.body)


SERVER = [
    Row(
        "request_timeout",
        408,
        simulated("request_timeout"),
        is_anywhere=True,
    ),
    Row(
        "uri_too_long",
        414,
        send("GET", "/v2/plans?" + "&".join(["a=1"] * 1_001)),
        is_anywhere=True,
    ),
    Row(
        "headers_too_large",
        431,
        send("GET", "/v2/plans", headers={f"X-{number}": "1" for number in range(101)}),
        is_anywhere=True,
    ),
    Row(
        "rate_limited",
        429,
        simulated("rate_limited"),
        is_anywhere=True,
    ),
    Row(
        "too_many_connections",
        503,
        simulated("too_many_connections"),
    ),
    Row(
        "simulated_fault",
        503,
        failing,
        is_anywhere=True,
    ),
    Row(
        "not_implemented",
        501,
        in_gzip,
        is_anywhere=True,
    ),
    # No request brings these about: tests of their subjects do, with a broken store, a defect, or a
    # stop.
    Row(
        "sandbox_unavailable",
        503,
        is_anywhere=True,
    ),
    Row(
        "store_unavailable",
        503,
        is_anywhere=True,
    ),
    Row("server_stopping", 503),
    Row("internal_error", 500),
]
