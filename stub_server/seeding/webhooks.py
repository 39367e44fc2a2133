"""The merchant's webhooks, each with an endpoint of its own temper, and what was delivered to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ..domain.webhooks import Wish, after_delivery, disabled_webhook, new_webhook
from ..events.log import Event
from ..events.signing import new_key
from ..kernel.clock import DAY, HOUR, MINUTE, iso
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Body
from ..store.memory import Store
from ..store.tables import LOG_ROWS
from .deliveries import OUTAGES, REJECTS, Delivered, Fault, deliver
from .rhythm import office_hour
from .scenario import HookSpec
from .streams import uuid

REJECTED = 0.08  # of the events to a flaky endpoint, besides those that an outage delays


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
    for endpoint in endpoints:
        store.add("webhooks", endpoint.public["id"], endpoint.public, endpoint.hidden)
    for _, public, hidden in sorted(logs, key=lambda log: log[0])[-LOG_ROWS:]:
        store.add("webhook_logs", public["id"], public, hidden)


def _outages(rng: Random, since: int, newest: int, now: int) -> list[tuple[float, float, Fault]]:
    """When a flaky endpoint was down, how long, and what it answered: some hours every few days, and just now."""
    outages: list[tuple[float, float, Fault]] = []
    at = since + int(3 * DAY * rng.random())
    while at < newest - 6 * HOUR:
        length = int((0.5 + 6 * rng.random() ** 2) * HOUR)
        outages.append((at, at + length, OUTAGES.draw(rng)))
        at += length + int((2 + 4 * rng.random()) * DAY)
    return [*outages, (newest - 4 * MINUTE, now + 2 * HOUR, OUTAGES.draw(rng))]


def _deliveries(
    endpoint: Endpoint, heard: Sequence[tuple[Event, int]], rng: Random, now: int
) -> list[tuple[Delivered, int]]:
    done = []
    lost = 0
    flaky = endpoint.spec.behaviour == "flaky" and heard
    outages = _outages(rng, endpoint.created, heard[-1][0].at, now) if flaky else []
    gone_from = endpoint.created + (now - endpoint.created) * 2 // 5
    for position, (event, serial) in enumerate(heard):
        if endpoint.closed is not None and event.at >= endpoint.closed:
            break
        gone = endpoint.spec.behaviour == "gone" and event.at >= gone_from
        luck = rng.random()
        up_at, fault = next(((end, why) for start, end, why in outages if start <= event.at < end), (0.0, REJECTS))
        if flaky and up_at == 0 and luck < REJECTED and position < len(heard) - 1:
            # A third event in a row without success would have disabled the webhook.
            lost = lost + 1 if lost < 2 else 0
            up_at = math.inf if lost else up_at
        elif luck > 0.98:
            up_at, fault = max(up_at, event.at + 1), fault if up_at else (None, "timeout")
        else:
            lost = 0
        delivered = deliver(
            rng, uuid(rng), endpoint.wish, event, serial, endpoint.key, endpoint.headers, now,
            up_at=up_at, fault=fault, gone=gone,
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
