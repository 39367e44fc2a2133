"""Certificates: a receiver is sent what receivers get wrong, and judged by what it
answers and does.
"""

from ...core.problem import Conflict
from ...core.record import Body, Row
from ...domain.deliveries import Delivery
from ...domain.webhooks import ABROAD, listens, valid_keys
from ...server.work import Work
from ...webhooks.effects import Effects
from ...webhooks.receiver_rules import Certification
from ...webhooks.sample_events import Samples
from ...webhooks.sender import Sender
from .named import open_referred

AT_ONCE = 4  # certifications of a server, one in each sandbox, for their calls would be mixed up
USUAL = "order.paid"


async def certify_receiver(work: Work, body: Body) -> Body:
    sandbox, server = work.sandbox, work.server
    if sandbox.name in server.underway.certifying or len(server.underway.certifying) >= AT_ONCE:
        message = (
            f"A receiver is being certified in the sandbox {sandbox.name}, or in {AT_ONCE} others."
            " Wait for it."
        )
        raise Conflict.at("sandbox", message, "certification_running", where="path")
    webhook: Body = {"headers": (), "events": ["*"], "projectId": None, **body}
    keys, is_abroad = [body.get("signing_key", "")], work.request.is_foreign
    if "signing_key" not in body:
        row = _webhook(work, body)
        webhook, keys = row.public, valid_keys(row.hidden, work.now)
        is_abroad = is_abroad or row.hidden.get(ABROAD, False)
    headers = tuple((header["name"], header["value"]) for header in webhook["headers"])
    target = Delivery(webhook["url"], "", b"", headers, tuple(keys))
    event_type = body.get("event_type") or _usual(work, webhook["events"])
    samples = Samples(
        sandbox,
        work.store,
        server.document.events[event_type],
        event_type,
        project=webhook["projectId"],
        run=work.trace.id,
    )
    usual = server.courier.sender
    local = usual.local and not is_abroad
    sender = Sender(local=local, cacert=usual.cacert, mute=usual.is_mute)  # a replay sends nothing
    watched = None
    if "effects" in body:
        watched = Effects(body["effects"], sender)
    server.underway.certifying.add(sandbox.name)
    try:
        report = await Certification(sandbox, target, sender, samples, effects=watched).report()
    finally:
        server.underway.certifying.discard(sandbox.name)
    about = {"sandbox": sandbox.name, "url": target.url, "event_type": event_type}
    return {"certificate": about | report}


def _webhook(work: Work, body: Body) -> Row:
    """The webhook that is named, or has the address. Raises Conflict."""
    if "webhookId" in body:
        return open_referred(work, "webhookId", body["webhookId"])
    url = body["url"]
    for store in work.sandbox.stores.values():
        for row in store.webhooks.all_rows():
            if row["url"] == url:
                work.store = store
                return row
    advice = "POST /v2/webhooks registers it. Or give its signing_key."
    raise Conflict.at(
        "url", "No webhook of the sandbox has this address.", "reference_not_found", advice=advice
    )


def _usual(work: Work, patterns: list[str]) -> str:
    """A type that a webhook with these patterns listens to: paid orders, else the first
    of the catalogue.
    """
    heard = [name for name in work.server.document.events if listens(patterns, name)]
    return USUAL if USUAL in heard else heard[0]
