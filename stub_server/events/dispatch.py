"""What an event sets off: a delivery for every webhook that wants it."""

from typing import TYPE_CHECKING

from ..domain.webhooks import Wish, new_log, wish_of
from ..kernel.clock import iso
from ..kernel.record import Change
from .log import Event

if TYPE_CHECKING:
    from ..sandbox import Sandbox
    from ..store.memory import Store

TEST = "webhook.test"


def on_event(sandbox: "Sandbox", store: "Store", event: Event) -> None:
    """Called once per event, within the step that raised it: a pending delivery per active webhook that wants it.

    A test is for the webhook under test alone, whatever others listen to: who sends it opens its delivery.
    """
    if event.type == TEST:
        return
    asked = (event.type, event.project_id)
    wishes: list[Wish] | None = store.listeners.get(asked)
    if wishes is None:
        webhooks = store.webhooks
        every = [wish_of(webhooks.rows[key].json) for key in webhooks.bucket("is_active", True)]
        wishes = store.listeners[asked] = [wish for wish in every if wish.wants(*asked)]
    if wishes:
        change = Change()
        for wish in wishes:
            open_delivery(change, sandbox, wish, event, test=False)
        sandbox.apply(store, change)


def open_delivery(change: Change, sandbox: "Sandbox", wish: Wish, event: Event, *, test: bool) -> str:
    """Add the delivery of an event to a webhook, body and all. Answers its id."""
    ident = sandbox.ids.uuid()
    public, hidden = new_log(
        ident, wish, event.id, event.type, event.payload(), sandbox.events.raised, iso(sandbox.clock.now), test=test
    )
    change.create("webhook_logs", ident, public, hidden)
    return ident
