"""Webhooks: which events they receive, the keys that sign, and how each delivery went."""

from ..calls import reply
from ..calls.call import Call
from ..calls.reply import Reply, list_reply, query_of
from ..delivery.posting import send
from ..domain import deliveries
from ..domain import webhooks as rules
from ..engine.attempts import conclude, delivery_of, disturbance, simulated
from ..engine.deliveries import CALLING_OFF
from ..engine.draft import TEST
from ..engine.samples import newest, nothing_happened, sample
from ..engine.scheduler import do_due
from ..events.signing import new_key
from ..kernel.clock import DAY, SECOND, iso
from ..kernel.record import NO_EXTRAS, Body, Row

WARNING = "Store the signing key now. It is not shown again."
PATIENCE = 4.0  # seconds that a request waits for a receiver


def list_webhooks(call: Call, query: Body) -> Reply:
    """`event` keeps those that listen to that type."""
    table = call.store.webhooks
    wanted = query_of(call, table, query, handled=("event",))
    if "event" in query:
        wanted.where = lambda row: rules.listens(row.public["events"], query["event"])
    return reply.listed(call, table, wanted, "Webhooks retrieved.", "webhooks")


def create_webhook(call: Call, body: Body) -> Reply:
    table = call.store.webhooks
    ident, key = call.draft.ids.uuid(), new_key(call.draft.ids.secret_bytes())
    public, hidden = rules.new_webhook(body, call.defaults("Webhook"), ident, key, call.now_text)
    _check_project(call, public["projectId"])
    rules.check_room(len(table))
    if call.is_foreign:
        hidden[rules.ABROAD] = True
    call.draft.create(call.store.webhooks, public["id"], public, hidden)  # it raises no event
    answer = reply.message("Webhook created.", webhook=rules.with_key(public, key), warning=WARNING)
    return answer.created(call, f"/v2/webhooks/{ident}")


def list_webhook_events(call: Call) -> Reply:
    events = [
        {
            "type": name,
            "resource": name.partition(".")[0],
            "description": entry["description"],
            "emitted_by": entry["emitted_by"],
            "payload_key": entry["payload_key"],
            "api_version": "v2",
        }
        for name, entry in call.server.document.events.items()
    ]
    return reply.message("Event types retrieved.", events=events, total=len(events))


def get_webhook(call: Call, ident: str) -> Reply:
    row = _open(call, ident)
    return reply.enveloped("Webhook retrieved.", "webhook", row.record.public)


def update_webhook(call: Call, ident: str, body: Body) -> Reply:
    """Switching it off calls off its open deliveries."""
    row = _open(call, ident)
    public = rules.changed_webhook(row.public, body, call.now_text)
    if "projectId" in body:
        _check_project(call, public["projectId"])
    hidden = row.hidden
    if public["url"] != row.public["url"] and call.is_foreign != hidden.get(rules.ABROAD, False):
        hidden = hidden | {rules.ABROAD: call.is_foreign}
    record = row.record
    if not row.equals(public, hidden):
        record = call.draft.update(call.store.webhooks, row, public, hidden)
        if not public["is_active"]:
            call.draft.at(call.now, CALLING_OFF, ident)
    return reply.enveloped("Webhook updated.", "webhook", record.public)


def delete_webhook(call: Call, ident: str) -> Reply:
    """Its open deliveries are called off, the history stays."""
    call.draft.drop(call.store.webhooks, _open(call, ident))
    call.draft.at(call.now, CALLING_OFF, ident)
    return reply.message("Webhook deleted.")


def regenerate_webhook_signing_key(call: Call, ident: str, body: Body | None = None) -> Reply:
    """The old key signs as well until its grace ends."""
    row = _open(call, ident)
    grace = (body or {}).get("grace_period_seconds", DAY // SECOND)
    key = new_key(call.draft.ids.secret_bytes())
    hidden, until = rules.rotated(row.hidden, key, call.now, int(grace) * SECOND)
    public = row.public | {"updatedAt": call.now_text}
    call.draft.update(call.store.webhooks, row, public, hidden)
    if until > call.now:
        rest = f"The previous key signs as well until {iso(until)}."
    else:
        rest = "The previous key no longer signs."
    return reply.message("Signing key regenerated.", webhook=rules.with_key(public, key), warning=f"{WARNING} {rest}")


async def send_test_webhook(call: Call, ident: str, body: Body | None = None) -> Reply:
    """Answers after the one attempt, whatever came of it."""
    webhook = _open(call, ident)
    event_type = (body or {}).get("event_type", TEST)
    draft = call.draft
    if event_type == TEST:
        event = draft.event(TEST, ident, None, nothing_happened(ident), b"", NO_EXTRAS)
        draft.raise_event(event)
    else:
        entry = call.server.document.events[event_type]
        found = newest(draft, event_type, entry, webhook.public["projectId"])
        event = sample(draft, event_type, entry, next(iter(found), None))
    with call.server.waiting.take(call.sandbox.name):
        (opened,) = draft.open_deliveries((webhook.public,), event, test=True)
        call.record()
        return await _attempt(call, webhook, call.store.webhook_logs.parse(opened), deliveries.TEST)


def list_logs_for_webhook(call: Call, ident: str, query: Body) -> Reply:
    _open(call, ident)
    return list_reply(call, call.store.webhook_logs, query | {"webhookId": ident}, "Deliveries retrieved.", "logs")


def list_webhook_logs(call: Call, query: Body) -> Reply:
    return list_reply(call, call.store.webhook_logs, query, "Deliveries retrieved.", "logs")


def get_webhook_log(call: Call, ident: str) -> Reply:
    row = _open_log(call, ident)
    return reply.message("Delivery retrieved.", log=deliveries.shown_log(row.public, row.hidden))


async def retry_webhook(call: Call, ident: str) -> Reply:
    """One more attempt, of the same bytes under the same event id."""
    log = _open_log(call, ident)
    webhook = call.store.webhooks.open(log.public["webhookId"])
    if webhook is not None:
        call.allow_project(webhook.public["projectId"])
    retryable = call.lifecycle("WebhookLogEntry").sets["retryable"]
    deliveries.check_retryable(log.public, retryable, webhook_exists=webhook is not None)
    assert webhook is not None
    with call.server.waiting.take(call.sandbox.name):
        return await _attempt(call, webhook, log, deliveries.MANUAL)


# -- shared


async def _attempt(call: Call, webhook: Row, log: Row, trigger: str) -> Reply:
    """Send once and record the result. Other requests run meanwhile, so everything is read again afterwards."""
    begun, url = call.now, webhook.public["url"]
    outcome = simulated(call.sandbox, webhook, log, begun)
    if outcome is None:
        # A stranger's page may call a server on its visitor's machine; it must not reach into that visitor's networks.
        courier = call.server.courier
        sender = courier.abroad if call.is_foreign or webhook.hidden.get(rules.ABROAD) else courier.sender
        disturbed = disturbance(call.sandbox, webhook, log)
        outcome = await send(sender, delivery_of(webhook, log, begun), PATIENCE, disturbed)
    await do_due(call.sandbox, call.server.sandboxes.worker)
    call.store = call.sandbox.store_of(call.who.merchant_id)
    public, hidden = conclude(call.draft, log, webhook.id, outcome, url, trigger, begun)
    return reply.message("Delivery attempted.", log=deliveries.shown_log(public, hidden))


def _open(call: Call, ident: str) -> Row:
    return call.open_allowed(call.store.webhooks, ident, "webhook")


def _open_log(call: Call, ident: str) -> Row:
    return call.open_allowed(call.store.webhook_logs, ident, "delivery")


def _check_project(call: Call, project_id: str | None) -> None:
    """The project that a webhook is limited to, if any. Raises Forbidden, Conflict."""
    if project_id is None:
        call.allow_project(None)
    else:
        call.project_named(project_id)
