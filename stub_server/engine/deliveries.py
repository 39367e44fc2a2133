"""What attempts the deliveries of an event, which of them wait, and which make room for others."""

from collections.abc import Sequence
from heapq import merge
from urllib.parse import urlsplit

from ..contract.lifecycles import Lifecycle
from ..core.record import Record, Row
from ..core.timers import SENDING
from ..domain.receivers import is_reserved
from .sandbox import DEFAULT, Sandbox
from .tables.store import Store
from .tables.table import Table, size_of

LOG_ROWS = 10_000
LOG_BYTES = 64 * 1024 * 1024
# where that many deliveries are still open
MOST_LOG_ROWS = 5 * LOG_ROWS
MOST_LOG_BYTES = 2 * LOG_BYTES
# deliveries that are dropped beyond the number of new ones: a step must not take long
MORE_AT_ONCE = 200
INBOX = "/_sandbox/inbox/"
"""What the path of an inbox begins with, below its sandbox's prefix."""
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
ANSWERING = "webhook.answer"
CALLING_OFF = "webhook.call_off"
"""The jobs of a delivery that the server itself answers, and of a webhook that was
switched off or deleted.
"""


def is_simulated(sandbox: Sandbox, url: str) -> bool:
    """Whether the server answers for an address: a reserved name, or any address while
    the past is seeded.
    """
    return sandbox.origin.is_seeding or is_reserved(url)


def job_for(sandbox: Sandbox, url: str) -> str:
    """The job that attempts a delivery: the clock's own where the server answers, else
    the courier's.
    """
    return ANSWERING if is_simulated(sandbox, url) else SENDING


def is_own_inbox(sandbox: Sandbox, url: str) -> bool:
    """Whether an address is an inbox of this very sandbox."""
    address = urlsplit(url)
    server = urlsplit(sandbox.rules.base_url)
    hosts: tuple[str | None, ...] = (server.hostname,)
    if server.hostname in _THIS_MACHINE:
        hosts = _THIS_MACHINE
    if address.hostname not in hosts or address.port != server.port:
        return False
    path = address.path.lower()  # names ignore case
    if sandbox.name == DEFAULT and path.startswith(INBOX):
        return True
    return path.startswith(f"/s/{sandbox.name}{INBOX}")


def keeps_waiting(store: Store, webhook_id: str) -> bool:
    """Whether a webhook gets its events in order and waits for a delivery that is being retried."""
    webhook = store.webhooks.peek(webhook_id)
    if webhook is None or not webhook.get("ordered"):
        return False
    return store.webhook_logs.count("webhookId+status", (webhook_id, "retrying")) > 0


def is_waiting(store: Store, entry: Row) -> bool:
    """Whether a delivery waits for an earlier one to the same webhook, which is being retried."""
    return entry.status == "pending" and keeps_waiting(store, entry["webhookId"])


def is_kept_back(sandbox: Sandbox, entry: Row, url: str) -> bool:
    """Whether a delivery is not sent because its event is one of the past.

    Those to the own inbox are always sent.
    """
    return entry["serial"] <= sandbox.status.held_before and not is_own_inbox(sandbox, url)


def outgoing(table: Table, coming: Sequence[Record], lifecycle: Lifecycle) -> list[Record]:
    """The deliveries that make room for new ones: the oldest, first of those that are decided.

    Where many can go at once, as when tens of thousands are over, the rest goes with the next ones.
    """
    waiting = lifecycle.sets["open"]
    going = list[Record]()
    decided = [state for state in lifecycle.states if state not in waiting]
    count = len(table) + len(coming)
    size = table.size + sum(map(size_of, coming))
    for states, most, most_bytes in (
        (decided, LOG_ROWS, LOG_BYTES),
        (waiting, MOST_LOG_ROWS, MOST_LOG_BYTES),
    ):
        for key in merge(*[table.bucket("status", state) for state in states]):
            is_enough = count <= most and size <= most_bytes
            if is_enough or len(going) >= len(coming) + MORE_AT_ONCE:
                break
            going.append(table.rows[key])
            size -= size_of(table.rows[key])
            count -= 1
    return going
