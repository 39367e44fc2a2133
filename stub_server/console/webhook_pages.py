"""Webhooks, deliveries with their attempts and signatures, and the certification of receivers."""

from typing import Any
from uuid import UUID

from flask import Response, abort, g, render_template, request

from ..contract.source import JsonObject
from ..server.request import CONTROL
from .actions import kept, show_done
from .forms import filled, listed, members
from .shell import load_head
from .site import pages

_LISTED = 25
_WEBHOOKS = "/v2/webhooks"
_LOGS = f"{_WEBHOOKS}/logs"
_ROTATES = "regenerateWebhookSigningKey"


@pages.get("/webhooks")
def webhooks() -> str:
    """The webhooks, and the deliveries to all of them."""
    found = g.client.get(_WEBHOOKS, {"limit": 100})["webhooks"]
    return render_template(
        "console/webhooks.html",
        webhooks=found,
        names={each["id"]: each["name"] for each in found},
        **_deliveries("listWebhookLogs", _LOGS),
    )


@pages.post("/webhooks/create")
def create_webhook() -> Response | str:
    """Create a webhook, and show its signing key this once."""
    return _with_key("POST", _WEBHOOKS, {"events": ["*"]} | members("createWebhook"))


@pages.get("/webhooks/<uuid:ident>")
def one_webhook(ident: UUID) -> str:
    """One webhook and the deliveries to it."""
    path = _path(ident)
    return render_template(
        "console/webhook.html",
        webhook=g.client.get(path)["webhook"],
        **_deliveries("listLogsForWebhook", f"{path}/logs"),
    )


@pages.post(f"/do/{_ROTATES}")
def rotate_key() -> Response | str:
    """Make another signing key, and show it this once."""
    return _with_key(*filled(_ROTATES))


@pages.post("/webhooks/<uuid:ident>/certify")
def certify_webhook(ident: UUID) -> Response:
    """Have the receiver judged; the journal keeps the report."""
    event = request.form.get("event_type")
    body = {"webhookId": str(ident)} | ({"event_type": event} if event else {})
    reply = g.client.change("POST", f"{CONTROL}/certify", body)
    report = f"/console/webhooks/{ident}/certificates/{reply.request_id}"
    return show_done(reply, None if reply.is_refused else report)


@pages.get("/webhooks/<uuid:ident>/certificates/<request_id>")
def certificate(ident: UUID, request_id: str) -> str:
    """The report on a receiver, as the journal has it."""
    found = kept(request_id)
    body = found["response"]["body"]
    report = body.get("certificate") if isinstance(body, dict) else None
    if report is None:
        abort(404, "The journal has no report under this id. Certify the receiver again.")
    return render_template("console/certificate.html", ident=ident, report=report, at=found["at"])


@pages.get("/webhooks/deliveries/<uuid:ident>")
def delivery(ident: UUID) -> str:
    """One delivery: its attempts, both sides, and the signature taken apart."""
    log = g.client.get(f"{_LOGS}/{ident}")["log"]
    return render_template(
        "console/delivery.html",
        log=log,
        webhook=g.client.find(_path(log["webhookId"])),
    )


def _path(ident: UUID | str) -> str:
    return f"{_WEBHOOKS}/{ident}"


def _with_key(method: str, path: str, body: Any) -> Response | str:
    """Have a key made, and show it: no other answer and no journal has it."""
    reply = g.client.change(method, path, body)
    if reply.is_refused:
        return show_done(reply)
    load_head()
    return render_template("console/webhook_key.html", webhook=reply.json["webhook"])


def _deliveries(operation: str, path: str) -> JsonObject:
    """A page of deliveries with its filters."""
    return listed(path, operation, _LISTED, first=("status", "event_type", "event_id"), logs=[])
