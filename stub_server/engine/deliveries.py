"""Which webhooks want an event, and what attempts its deliveries."""

from __future__ import annotations

from ..domain.receivers import is_reserved
from ..domain.webhooks import Subscriber, subscriber_of
from ..kernel.timers import SENDING
from ..store.memory import Store
from .sandbox import Sandbox

REMEMBERED = 4_096
ANSWERING = "webhook.answer"
"""The job of a delivery that the server itself answers."""


def subscribers_to(sandbox: Sandbox, store: Store, type_: str, project: str | None) -> list[Subscriber]:
    """The active webhooks that want an event of this type and project; to be remembered until a webhook changes."""
    webhooks = store.webhooks
    every = [subscriber_of(webhooks.rows[key].public) for key in webhooks.bucket("is_active", True)]
    if len(sandbox.subscribers) >= REMEMBERED:
        sandbox.subscribers.clear()
    wanting = [subscriber for subscriber in every if subscriber.wants(type_, project)]
    sandbox.subscribers[store.merchant.id, type_, project] = wanting
    return wanting


def is_simulated(sandbox: Sandbox, url: str) -> bool:
    """Whether the server answers for an address: nobody has a reserved name, and in the past nothing is sent at all."""
    return not sandbox.log.is_kept or is_reserved(url)


def job_for(sandbox: Sandbox, url: str) -> str:
    """What attempts a delivery to an address: the clock itself where the server answers, else whoever sends."""
    return ANSWERING if is_simulated(sandbox, url) else SENDING
