"""Which webhooks want an event."""

from __future__ import annotations

from ..domain.webhooks import Subscriber, subscriber_of
from ..store.memory import Store
from .sandbox import Sandbox

REMEMBERED = 4_096


def subscribers_to(sandbox: Sandbox, store: Store, type_: str, project: str | None) -> list[Subscriber]:
    """The active webhooks that want an event of this type and project; to be remembered until a webhook changes."""
    webhooks = store.webhooks
    every = [subscriber_of(webhooks.rows[key].public) for key in webhooks.bucket("is_active", True)]
    if len(sandbox.subscribers) >= REMEMBERED:
        sandbox.subscribers.clear()
    wanting = [subscriber for subscriber in every if subscriber.wants(type_, project)]
    sandbox.subscribers[store.merchant.id, type_, project] = wanting
    return wanting
