"""The journal: the requests that came to a sandbox, and what was expected of them."""

from ...calls import reply
from ...calls.call import CONTROL, Call
from ...calls.reply import Reply, Streamed
from ...engine.journal import Trace
from ...journal.archive import archive
from ...journal.entries import chosen, curl, row, whole
from ...journal.expectations import Expectation
from ...kernel.problem import NotFound
from ...kernel.record import Body


async def _chosen(call: Call, query: Body) -> list[Trace]:
    """The requests so far that a query means, newest first. Others are served while they are looked for."""
    return await call.server.sandboxes.worker.in_slices(chosen(list(call.sandbox.journal)[::-1], query))


async def list_requests(call: Call, query: Body) -> Reply:
    return reply.listed_here("requests", await _chosen(call, query), query, row)


def delete_requests(call: Call) -> Reply:
    call.sandbox.journal.clear()
    return Reply(204, ())


async def get_request(call: Call, ident: str) -> Reply:
    trace = call.sandbox.journal.find(ident)
    if trace is None:
        raise NotFound(
            "The journal has no request with this id. It keeps the newest (--journal), and a reset empties it."
        )
    server = call.server
    explanation = await server.explain(server, call.sandbox, trace)
    return reply.value({"request": whole(trace, explanation, curl(server, call.sandbox, trace))})


async def get_requests_har(call: Call, query: Body) -> Reply:
    found = await _chosen(call, query)
    server = call.server
    return Streamed(archive(found, server.settings.url + call.prefix, server.version), b"application/har+json")


async def verify_requests(call: Call, body: Body) -> Reply:
    expected = Expectation(body, {"": call.server.document, CONTROL: call.server.control})
    # Its own alone: the call has warnings of its headers and query as well.
    warnings = [] if call.sandbox.journal.is_whole else ["oldest_requests_forgotten"]
    report = await call.server.sandboxes.worker.in_slices(expected.judged(list(call.sandbox.journal)[::-1]))
    if not report["matched"]:
        warnings += expected.warnings()
    call.warn(*warnings)
    report |= {"unknown": list(expected.unknown()), "warnings": warnings}
    if report["unknown"]:
        report |= {"ok": False, "code": "verification_failed"}
    if report["ok"]:
        return reply.value(report)
    call.trace.code = report["code"]
    return reply.value(report, 409)
