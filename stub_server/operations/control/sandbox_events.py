"""What happened, newest first."""

from itertools import islice

from ...calls.call import Call
from ...calls.reply import Reply
from ...kernel.page import Page
from ...kernel.record import Body


def list_events(call: Call, query: Body) -> Reply:
    """200 with a page of the event log."""
    type_, subject = query.get("type"), query.get("resource_id")
    log = call.sandbox.events
    page, limit = query["page"], query["limit"]
    everything = type_ is None and subject is None
    total = len(log) if everything else sum(1 for _ in log.newest(type_, subject))
    first = (page - 1) * limit
    chosen = [] if first >= total else [e.payload() for e in islice(log.newest(type_, subject), first, first + limit)]
    return Reply(200, (b'{"events":[', b",".join(chosen), b'],"pagination":', Page(page, limit, total).json(), b"}"))
