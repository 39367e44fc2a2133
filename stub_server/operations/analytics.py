"""Analytics: a placeholder in the source document, and here too."""

from ..core.clock import iso, parse_iso
from ..core.record import Body
from ..server import lists, reply
from ..server.reply import Reply
from ..server.work import Work


def get_analytics(work: Work, query: Body) -> Reply:
    project_id = None
    if "projectId" in query:
        project_id = query["projectId"].lower()
        work.allow_project(project_id)
    lists.warn_of_empty_range(work, query.get("from"), query.get("to"))
    analytics = {
        "available": False,
        "filters": {
            "projectId": project_id,
            "from": iso(parse_iso(query["from"])) if "from" in query else None,
            "to": iso(parse_iso(query["to"])) if "to" in query else None,
        },
        "metrics": {},
        "generated_at": work.now_text,
    }
    return reply.message(
        "Analytics is a placeholder: no metrics are available yet.", analytics=analytics
    )
