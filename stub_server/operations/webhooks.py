"""Webhooks: which events they receive, the keys that sign, and how each delivery went."""

from ..core.clock import DAY, SECOND, iso
from ..core.record import Body, Row
from ..core.signing import new_key
from ..domain import deliveries
from ..domain import webhooks as rules
from ..engine.attempts import attempt_of, conclude
from ..engine.deliveries import CALLING_OFF
from ..engine.draft import TEST
from ..engine.samples import newest, nothing_happened, sample
from ..engine.scheduler import do_due
from ..server import lists, reply
from ..server.lists import list_reply, query_of
from ..server.reply import Reply
from ..server.work import Work
from .shown import shown

WARNING = "Store the signing key now. It is not shown again."
PATIENCE = 4.0  # seconds that a request waits for a receiver


async def list_webhooks(work: Work, query: Body) -> Reply:
    """`event` keeps those that listen to that type."""
    wanted = query_of(work, "webhooks", query, handled=("event",))
    if "event" in query:
        parse, event = work.store.webhooks.parse, query["event"]
        wanted.where = lambda record: rules.listens(parse(record)["events"], event)
    return await lists.listed(work, "webhooks", wanted, "Webhooks retrieved.")


def create_webhook(work: Work, body: Body) -> Reply:
    blank, key = work.draft.new("webhooks"), new_key(work.draft.ids.secret_bytes())
    webhook = rules.new_webhook(blank, body, key)
    _check_project(work, webhook["projectId"])
    rules.check_room(len(work.store.webhooks))
    if work.request.is_foreign:
        webhook = webhook.keeping({rules.ABROAD: True})
    work.draft.put(webhook)  # it raises no event
    answer = reply.message(
        "Webhook created.", webhook=webhook.public | {"signing_key": key}, warning=WARNING
    )
    return answer.created(work, f"/v2/webhooks/{webhook.id}")


def list_webhook_events(work: Work) -> Reply:
    events = []
    for name, entry in work.server.document.events.items():
        event = {
            "type": name,
            "resource": name.partition(".")[0],
            "description": entry["description"],
            "emitted_by": entry["emitted_by"],
            "payload_key": entry["payload_key"],
            "api_version": "v2",
        }
        events.append(event)
    return reply.message("Event types retrieved.", events=events, total=len(events))


def get_webhook(work: Work, ident: str) -> Reply:
    return reply.enveloped("Webhook retrieved.", "webhook", _open(work, ident).record.public)


def update_webhook(work: Work, ident: str, body: Body) -> Reply:
    """Switching it off calls off its open deliveries."""
    row = _open(work, ident)
    changed = rules.changed_webhook(row, body)
    if "projectId" in body:
        _check_project(work, changed["projectId"])
    if changed["url"] != row["url"]:
        changed = changed.keeping({rules.ABROAD: work.request.is_foreign})
    if changed.differs:
        changed = work.draft.put(changed)
        if not changed["is_active"]:
            work.draft.at(work.now, CALLING_OFF, ident)
    return shown(work, changed, "Webhook updated.")


def delete_webhook(work: Work, ident: str) -> Reply:
    """Its open deliveries are called off, the history stays."""
    work.draft.drop(_open(work, ident))
    work.draft.at(work.now, CALLING_OFF, ident)
    return reply.message("Webhook deleted.")


def regenerate_webhook_signing_key(work: Work, ident: str, body: Body) -> Reply:
    """The old key signs as well until its grace ends."""
    row = _open(work, ident)
    grace = body.get("grace_period_seconds", DAY // SECOND)
    key = new_key(work.draft.ids.secret_bytes())
    hidden, until = rules.rotated(row.hidden, key, work.now, int(grace) * SECOND)
    public = row.public | {"updatedAt": work.now_text}
    work.draft.put(row.replaced(public, hidden))
    rest = "The previous key no longer signs."
    if until > work.now:
        rest = f"The previous key signs as well until {iso(until)}."
    return reply.message(
        "Signing key regenerated.",
        webhook=public | {"signing_key": key},
        warning=f"{WARNING} {rest}",
    )


async def send_test_webhook(work: Work, ident: str, body: Body) -> Reply:
    """Answers after the one attempt, whatever came of it."""
    webhook = _open(work, ident)
    event_type = body.get("event_type", TEST)
    draft = work.draft
    if event_type == TEST:
        event = draft.event(TEST, ident, None, nothing_happened(ident))
        draft.raise_event(event)
    else:
        entry = work.server.document.events[event_type]
        found = newest(draft, event_type, entry, webhook["projectId"])
        event = sample(draft, event_type, entry, next(iter(found), None))
    with work.waiting():
        (opened,) = draft.open_deliveries((webhook.public,), event, test=True)
        work.commit()
        return await _attempt(work, webhook, opened, deliveries.TEST)


async def list_logs_for_webhook(work: Work, ident: str, query: Body) -> Reply:
    _open(work, ident)
    return await list_reply(
        work, "webhook_logs", query | {"webhookId": ident}, "Deliveries retrieved.", "logs"
    )


async def list_webhook_logs(work: Work, query: Body) -> Reply:
    return await list_reply(work, "webhook_logs", query, "Deliveries retrieved.", "logs")


def get_webhook_log(work: Work, ident: str) -> Reply:
    return reply.message("Delivery retrieved.", log=deliveries.shown_log(_open_log(work, ident)))


async def retry_webhook(work: Work, ident: str) -> Reply:
    """One more attempt, of the same bytes under the same event id."""
    log = _open_log(work, ident)
    webhook = work.store.webhooks.open(log["webhookId"])
    if webhook is not None:
        work.allow_project(webhook["projectId"])
    deliveries.check_retryable(
        log.public,
        work.lifecycle("WebhookLogEntry").sets["retryable"],
        webhook_exists=webhook is not None,
    )
    assert webhook is not None
    with work.waiting():
        return await _attempt(work, webhook, log, deliveries.MANUAL)


# -- shared


async def _attempt(work: Work, webhook: Row, log: Row, trigger: str) -> Reply:
    """Send once and record the result.

    Other requests run meanwhile, so everything is read again afterwards.
    """
    attempt = attempt_of(webhook, log, work.now)
    outcome = await work.server.courier.send(
        work.sandbox, attempt, PATIENCE, is_foreign=work.request.is_foreign
    )
    await do_due(work.sandbox, work.sandboxes.worker)
    work.store = work.sandbox.store_of(work.who.identity.merchant_id)
    tried = conclude(work.draft, attempt, outcome, trigger)
    return reply.message("Delivery attempted.", log=deliveries.shown_log(tried))


def _open(work: Work, ident: str) -> Row:
    return work.open_allowed("webhooks", ident, "webhook")


def _open_log(work: Work, ident: str) -> Row:
    return work.open_allowed("webhook_logs", ident, "delivery")


def _check_project(work: Work, project_id: str | None) -> None:
    """The project that a webhook is limited to, if any. Raises Forbidden, Conflict."""
    if project_id is None:
        work.allow_project(None)
    else:
        work.project_named(project_id)
