"""What becomes of a delivery and its webhook when an attempt has been answered, or has not."""

from __future__ import annotations

from ..domain import webhooks as rules
from ..domain.webhooks import AttemptOutcome
from ..kernel.record import Body, Row
from .draft import Draft


def conclude(
    draft: Draft, log: Row, webhook_id: str, outcome: AttemptOutcome, url: str, trigger: str, begun: int
) -> tuple[Body, Body]:
    """Write down an attempt that was begun at `begun` (ms) and ends now; answers the delivery's two parts.

    `log` is the delivery as it was then. Others have acted meanwhile: delivery and webhook are read anew, and either
    may be gone.
    """
    store = draft.store
    log_now, webhook = draft.open(store.webhook_logs, log.id), draft.open(store.webhooks, webhook_id)
    public, hidden = rules.attempted(log_now or log, outcome, url, trigger, begun, draft.now)
    if log_now is not None:
        draft.update(store.webhook_logs, log_now, public, hidden)
    if webhook is not None:
        after = rules.after_delivery(webhook.public, public, outcome, trigger, draft.now)
        draft.update(store.webhooks, webhook, after)
        if webhook.public["is_active"] and not after["is_active"]:
            draft.at(draft.now, "webhook.call_off", webhook_id)
    return public, hidden
