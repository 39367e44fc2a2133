"""The journal: the requests that came to a sandbox, and what was expected of them."""

import orjson

from ...core.problem import NotFound
from ...core.record import Body
from ...engine.kept import Trace
from ...server import lists, reply
from ...server.journal.archive import archive
from ...server.journal.entries import chosen, curl, row, whole
from ...server.journal.expectations import Expectation
from ...server.reply import Reply, Streamed
from ...server.request import CONTROL, LARGEST_BODY
from ...server.work import Work
from ...version import __version__


async def _chosen(work: Work, query: Body) -> list[Trace]:
    """The requests so far that a query means, newest first.

    Others are served while they are looked for.
    """
    return await work.in_slices(chosen(list(work.sandbox.journal)[::-1], query))


async def list_requests(work: Work, query: Body) -> Reply:
    return lists.listed_here("requests", await _chosen(work, query), query, row)


def delete_requests(work: Work) -> None:
    work.sandbox.journal.clear()


async def get_request(work: Work, ident: str) -> Reply:
    trace = work.sandbox.journal.find(ident)
    if trace is None:
        raise NotFound(
            "The journal has no request with this id. It keeps the newest (--journal), and a reset"
            " empties it."
        )
    server = work.server
    with work.waiting():  # one explanation is made at a time
        explanation = await server.explain(server, work.sandbox, trace)
    found = whole(trace, explanation, curl(server, work.sandbox, trace))
    parts = (b'{"request":', orjson.dumps(found), b"}")
    is_large = len(trace.answer or b"") > LARGEST_BODY  # reading it again would delay others
    return Reply(200, parts, "large" if is_large else None)


async def get_requests_har(work: Work, query: Body) -> Reply:
    return Streamed(
        archive(await _chosen(work, query), work.server.settings.url + work.prefix, __version__),
        b"application/har+json",
    )


async def verify_requests(work: Work, body: Body) -> Reply:
    expected = Expectation(body, {"": work.server.document, CONTROL: work.server.control})
    # Its own alone: the request has warnings of its headers and query as well.
    warnings = []
    if not work.sandbox.journal.is_whole:
        warnings.append("oldest_requests_forgotten")
    report = await work.in_slices(expected.judged(list(work.sandbox.journal)[::-1]))
    if not report["matched"]:
        warnings += expected.warnings()
    work.trace.warn(warnings)
    report |= {"unknown": list(expected.unknown()), "warnings": warnings}
    if report["unknown"]:
        report |= {"ok": False, "code": "verification_failed"}
    if report["ok"]:
        return reply.value(report)
    work.trace.code = report["code"]
    return reply.value(report, 409)
