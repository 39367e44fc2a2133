"""The merchant's webhooks, each with an endpoint of its own temper, and what was delivered to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ..domain.webhooks import Wish, after_delivery, disabled_webhook, new_webhook
from ..events.log import Event
from ..events.signing import new_key
from ..kernel.clock import DAY, HOUR, MINUTE, iso
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Body, Change
from ..store.memory import Store
from .deliveries import Delivered, deliver
from .rhythm import office_hour
from .scenario import HookSpec
from .streams import uuid

RETRYING_MS = 70 * HOUR  # younger than the whole schedule: an unlucky delivery still has attempts left


@dataclass(slots=True)
class Endpoint:
    """A webhook under way."""

    spec: HookSpec
    created: int
    public: Body
    hidden: Body
    wish: Wish
    failures: int = 0
    closed: int | None = None

    @property
    def key(self) -> str:
        """What signs its deliveries."""
        return str(self.hidden["signing_keys"][0]["key"])

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What the merchant wants sent with each."""
        return tuple((header["name"], header["value"]) for header in self.public["headers"])


def open_webhooks(
    specs: Sequence[HookSpec], blank: Body, secret: bytes, seed: int, rng: Random, begun: int, now: int
) -> list[Endpoint]:
    """The webhooks before anything was delivered to them."""
    endpoints = []
    for spec in specs:
        created = max(begun + HOUR, min(office_hour(rng, now - spec.days_old * DAY), now - 5 * MINUTE))
        ident = named_uuid("webhook", spec.key)
        key = new_key(derived_text(secret, 32, str(seed), "webhook", spec.key).encode())
        project = named_uuid("project", spec.project) if spec.project else None
        public, hidden = new_webhook(spec.fields | {"projectId": project}, blank, ident, key, iso(created))
        wish = Wish(ident, public["url"], frozenset(public["events"]), project)
        endpoints.append(Endpoint(spec, created, public, hidden, wish))
    return endpoints


def deliver_all(
    store: Store, endpoints: Sequence[Endpoint], events: Sequence[tuple[Event, int]], rng: Random, now: int
) -> None:
    """Deliver the past to everyone who listened, and write the webhooks as that has left them."""
    logs: list[tuple[int, Body, Body]] = []
    for endpoint in endpoints:
        heard = [
            (event, serial)
            for event, serial in events
            if event.at >= endpoint.created and endpoint.wish.wants(event.type, event.project_id)
        ]
        done = [item for item in _deliveries(endpoint, heard, rng, now)]
        logs += [(serial, delivered.public, delivered.hidden) for delivered, serial in done]
        _conclude(endpoint, [delivered for delivered, _ in done])
    change = Change()
    for endpoint in endpoints:
        change.create("webhooks", endpoint.public["id"], endpoint.public, endpoint.hidden)
    for _, public, hidden in sorted(logs, key=lambda log: log[0]):
        change.create("webhook_logs", public["id"], public, hidden)
    store.write(change)


def _deliveries(
    endpoint: Endpoint, heard: Sequence[tuple[Event, int]], rng: Random, now: int
) -> list[tuple[Delivered, int]]:
    done = []
    lost = 0
    gone_from = endpoint.created + (now - endpoint.created) * 2 // 5
    for position, (event, serial) in enumerate(heard):
        if endpoint.closed is not None and event.at >= endpoint.closed:
            break
        gone = endpoint.spec.behaviour == "gone" and event.at >= gone_from
        luck = rng.random()
        if endpoint.spec.behaviour == "flaky":
            newest = position == len(heard) - 1
            waits = now - event.at < RETRYING_MS
            unlucky = newest or luck < (0.6 if waits else 0.2)
            # A third event in a row without success would have disabled the webhook.
            lost = lost + 1 if unlucky and lost < 2 else 0
            succeeds = None if lost else 1 if luck < 0.75 else 2 + int(rng.random() * 4)
        else:
            succeeds = None if gone else 1 if luck < 0.98 else 2
        delivered = deliver(
            rng, uuid(rng), endpoint.wish, event, serial, endpoint.key, endpoint.headers, now,
            succeeds_at=succeeds, gone=gone,
        )  # fmt: skip
        if gone and delivered.public["status"] == "failed":
            endpoint.closed = delivered.last
        done.append((delivered, serial))
    return done


def _conclude(endpoint: Endpoint, done: Sequence[Delivered]) -> None:
    """What the webhook shows of its deliveries."""
    tried = sorted((d for d in done if d.public["attempt_count"]), key=lambda d: d.last)
    if not tried:
        return
    public = endpoint.public
    for delivered in tried:
        status = delivered.public["status"]
        if status == "delivered":
            endpoint.failures = 0
        elif status == "failed" and endpoint.closed is None:
            endpoint.failures += 1
    last = tried[-1]
    public = after_delivery(public, last.public["status"], last.last) | {"consecutive_failures": endpoint.failures}
    if endpoint.closed is not None:
        public = disabled_webhook(public, "gone", iso(endpoint.closed))
    endpoint.public = public
