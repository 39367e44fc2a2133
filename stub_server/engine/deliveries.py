"""Which webhooks want an event."""

from __future__ import annotations

from ..domain.webhooks import Wish, wish_of
from ..store.memory import Store
from .sandbox import Sandbox

REMEMBERED = 4_096


def subscribers_to(sandbox: Sandbox, store: Store, type_: str, project: str | None) -> list[Wish]:
    """The active webhooks that want an event of this type and project; to be remembered until a webhook changes."""
    webhooks = store.webhooks
    every = [wish_of(webhooks.rows[key].json) for key in webhooks.bucket("is_active", True)]
    if len(sandbox.subscribers) >= REMEMBERED:
        sandbox.subscribers.clear()
    wanting = [wish for wish in every if wish.wants(type_, project)]
    sandbox.subscribers[store.merchant.id, type_, project] = wanting
    return wanting
