"""Certificates: a receiver is sent what receivers get wrong, and judged by what it answers and does."""

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...certify.effects import Effects
from ...certify.receiver import Session
from ...certify.receiver_rules import certify
from ...certify.sample_events import Samples
from ...domain.webhooks import listens, valid_keys
from ...events.sender import Delivery, Sender
from ...kernel.problem import Conflict
from ...kernel.record import Body
from ...store.memory import Store

AT_ONCE = 4  # certifications of a server, one in each sandbox, for their calls would be mixed up
USUAL = "order.paid"


async def certify_webhook(call: Call, ident: str, body: Body | None) -> Reply:
    row = call.open_of_any("webhooks", ident, "webhook")
    headers = tuple((header["name"], header["value"]) for header in row.public["headers"])
    target = Delivery(row.public["url"], "", b"", headers, tuple(valid_keys(row.hidden, call.now)))
    wanted = (body or {}).get("event_type") or _usual(call, row.public["events"])
    return await _report(call, call.store, target, wanted, row.public["projectId"], (body or {}).get("effects"))


async def certify_receiver(call: Call, body: Body) -> Reply:
    target = Delivery(body["url"], "", b"", (), (body["signing_key"],))
    wanted = body.get("event_type") or _usual(call, ["*"])
    return await _report(call, call.sandbox.store, target, wanted, None, body.get("effects"))


async def _report(
    call: Call, store: Store, target: Delivery, event_type: str, project: str | None, effects: str | None
) -> Reply:
    sandbox, server = call.sandbox, call.server
    if sandbox.name in server.certifying or len(server.certifying) >= AT_ONCE:
        message = f"A receiver is being certified in the sandbox {sandbox.name}, or in {AT_ONCE} others. Wait for it."
        raise Conflict.at("sandbox", message, "certification_running", where="path")
    entry = server.document.events[event_type]
    samples = Samples(sandbox, store, entry, event_type, project, call.trace.id)
    usual = server.courier.sender
    sender = Sender(local=usual.local and not call.is_foreign, cacert=usual.cacert)
    watched = None if effects is None else Effects(effects, sender)
    server.certifying.add(sandbox.name)
    try:
        report = await certify(Session(sandbox, target, sender, samples, effects=watched))
    finally:
        server.certifying.discard(sandbox.name)
    return reply.value({"certificate": {"sandbox": sandbox.name, "url": target.url, "event_type": event_type} | report})


def _usual(call: Call, patterns: list[str]) -> str:
    """A type that a webhook with these patterns listens to: paid orders, else the first of the catalogue."""
    heard = [name for name in call.server.document.events if listens(patterns, name)]
    return USUAL if USUAL in heard else heard[0]
