"""Analytics: a placeholder in the source document, and here too."""

from ..contract.formats import end_of_range
from ..core.clock import iso_or_none
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
            "from": iso_or_none(end_of_range(query, "from")),
            "to": iso_or_none(end_of_range(query, "to")),
        },
        "metrics": {},
        "generated_at": work.now_text,
    }
    return reply.message(
        "Analytics is a placeholder: no metrics are available yet.", analytics=analytics
    )
