"""The inbox: what arrived at the addresses that need no server of one's own, and what
they answer.
"""

from ...core.clock import iso, iso_or_none
from ...core.problem import Invalid, NotFound
from ...core.record import Body
from ...engine.fault_rules import acts_beyond
from ...server import lists
from ...server.reply import Reply
from ...server.work import Work
from ...webhooks.inbox import SHOWN_BODY, Answer, Box, Message


def list_inboxes(work: Work, query: Body) -> Reply:
    return lists.listed_here(
        "inboxes", work.entry.inbox.boxes(), query, lambda entry: _summary(work, *entry)
    )


def clear_inboxes(work: Work, query: Body) -> None:
    work.entry.inbox.clear(query.get("name"))


def list_inbox_messages(work: Work, name: str, query: Body) -> Reply:
    found = [message for message in work.entry.inbox.messages(name) if _matches(message, query)]
    return lists.listed_here("messages", found, query, lambda message: _shown(message, SHOWN_BODY))


def _matches(message: Message, query: Body) -> bool:
    if query.get("event_type") not in (None, message.event_type):
        return False
    return query.get("verified") in (None, message.verdict.reason is None)


def get_inbox_message(work: Work, name: str, number: str) -> Body:
    for message in work.entry.inbox.messages(name):
        if str(message.number) == number:
            return {"message": _shown(message, len(message.body))}
    raise NotFound("There is no such message. The oldest are deleted when there are too many.")


def set_inbox_answer(work: Work, name: str, body: Body) -> Body:
    answer = Answer(**body)
    for number, header in enumerate(answer.headers):
        if acts_beyond(header["name"]):
            raise Invalid.at(
                f"headers[{number}].name",
                "An inbox cannot answer with this header. Leave it out.",
                violation="format",
            )
    work.entry.inbox.set_answer(name, answer)
    return {"answer": answer._asdict()}


# -- shared


def _summary(work: Work, name: str, box: Box, kept: int) -> Body:
    return {
        "name": name,
        "url": f"{work.server.settings.url}/s/{work.sandbox.name}/_sandbox/inbox/{name}",
        "received": box.received,
        "messages": kept,
        "last_received_at": iso_or_none(box.last_at),
        "answer": box.answer._asdict(),
    }


def _shown(message: Message, most: int) -> Body:
    verdict = message.verdict
    return {
        "number": message.number,
        "name": message.name,
        "received_at": iso(message.at),
        "event_id": message.event_id,
        "event_type": message.event_type,
        "verified": verdict.reason is None,
        "webhookId": verdict.signer,
        "reason": verdict.reason,
        "message": verdict.message,
        "headers": message.headers,
        "body": message.body[:most].decode("utf-8", "replace").replace("\x00", "\ufffd"),
        "body_bytes": len(message.body),
        "answered": message.answer.status,
    }
