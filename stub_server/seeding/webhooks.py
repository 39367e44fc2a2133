"""The merchant's webhooks, and the receivers behind them: healthy, flaky or gone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from .. import __version__
from ..contract.formats import date_time_ms
from ..domain.webhooks import AUTOMATIC, GONE, AttemptOutcome, new_webhook, valid_keys
from ..drawing.draw import Weighted
from ..drawing.rhythm import office_hour
from ..engine import attempts, resources
from ..engine.billing import states
from ..events.signing import new_key, signatures, signed_headers
from ..kernel.clock import DAY, HOUR, MINUTE, iso
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Record, Row
from ..scenarios.scenario import HookSpec
from .script import Script

REJECTED = 0.08  # of the events to a flaky receiver, besides those that an outage delays
SLOW = 0.02  # of the first attempts run into the time limit
TIMEOUT_MS = 15_000
LATELY = 36 * HOUR  # before now: with the first event since then a flaky receiver went down, and still is
Fault = tuple[int | None, str]
NO_ANSWER: Fault = (None, "timeout")
OUTAGES: Weighted[Fault] = Weighted((((503, "http_5xx"), 50), ((502, "http_5xx"), 25), (NO_ANSWER, 25)))
REJECTS: Fault = (500, "http_5xx")  # a payload that the receiver cannot digest, today or tomorrow
_PAGE = "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n</body>\r\n</html>\r\n"
_HTML, _JSON = "text/html", "application/json"
BODIES = {
    200: (_JSON, '{"received":true}'),
    500: (_JSON, '{"error":"internal server error"}'),
    502: (_HTML, _PAGE.format("502 Bad Gateway")),
    503: (_HTML, _PAGE.format("503 Service Temporarily Unavailable")),
    GONE: (_JSON, ""),
}


class Receiver:
    """Who answers behind one webhook."""

    def __init__(self, behaviour: str, rng: Random, created: int, end: int) -> None:
        self.rng, self.end, self.behaviour = rng, end, behaviour
        self.outages: list[tuple[int, int, Fault]] = []
        self.rejected: set[str] = set()
        self.lost = 0
        self.gone = created + (end - created) * 2 // 5
        at = created + int(3 * DAY * rng.random())
        while behaviour == "flaky" and at < end - LATELY - 6 * HOUR:  # some hours every few days
            length = int((0.5 + 6 * rng.random() ** 2) * HOUR)
            self.outages.append((at, at + length, OUTAGES.draw(rng)))
            at += length + int((2 + 4 * rng.random()) * DAY)

    def answer(self, log: Row, at: int) -> Fault | None:
        """What comes back for an attempt at an instant, if anything is wrong with it."""
        if self.behaviour == "gone" and at >= self.gone:
            return GONE, "http_4xx"
        first, luck = log.public["attempt_count"] == 0, self.rng.random()
        if self.behaviour == "flaky":
            if first and at >= self.end - LATELY and (not self.outages or self.outages[-1][1] < self.end):
                self.outages.append((at, self.end + 2 * HOUR, OUTAGES.draw(self.rng)))
            for start, over, fault in reversed(self.outages):
                if start <= at < over:
                    return fault
            if first and luck < REJECTED:
                # A third event in a row without success would have disabled the webhook.
                self.lost = self.lost + 1 if self.lost < 2 else 0
                if self.lost:
                    self.rejected.add(log.id)
            elif first:
                self.lost = 0
            if log.id in self.rejected:
                return REJECTS
        return NO_ANSWER if first and luck > 1 - SLOW else None


class Webhooks:
    """Registers the webhooks, attempts what is to be delivered, and has the receivers answer."""

    def __init__(self, script: Script, rng: Random) -> None:
        self.script, self.store, self.rng = script, script.store, rng
        self.receivers: dict[str, Receiver] = {}
        script.on_delivery = self.opened

    def plan(self, specs: Sequence[HookSpec], secret: bytes, seed: int, begun: int) -> int | None:
        """Plan all of them; answers when the first one listens (ms)."""
        now, since = self.script.end, None
        for spec in specs:
            created = max(begun + HOUR, min(office_hour(self.rng, now - spec.days_old * DAY), now - 5 * MINUTE))
            key = new_key(derived_text(secret, 32, str(seed), "webhook", spec.key).encode())
            self.receivers[named_uuid("webhook", spec.key)] = Receiver(spec.behaviour, self.rng, created, now)
            self.script.add(created, self._register, spec, key)
            since = created if since is None else min(since, created)
        return since

    def _register(self, spec: HookSpec, key: str) -> None:
        draft, ident = self.script.draft(), named_uuid("webhook", spec.key)
        project = named_uuid("project", spec.project) if spec.project else None
        defaults = self.script.sandbox.rules.defaults["Webhook"]
        fields = spec.fields | {"projectId": project}
        resources.add_webhook(draft, *new_webhook(fields, defaults, ident, key, iso(self.script.now)))
        self.script.record(draft)

    def opened(self, log: Record) -> None:
        """A delivery is due at once."""
        self.script.add(self.script.now, self.attempt, log.id)

    def attempt(self, ident: str) -> None:
        """Sign and send a delivery that is still open, and have its receiver answer after a while."""
        draft, at = self.script.draft(), self.script.now
        log = draft.open(self.store.webhook_logs, ident)
        if log is None or log.public["status"] not in states(draft, "WebhookLogEntry", "open"):
            return
        webhook = draft.open(self.store.webhooks, log.public["webhookId"])
        assert webhook is not None  # nobody deletes one
        receiver = self.receivers[webhook.id]
        fault = receiver.answer(log, at)
        code, error = (200, None) if fault is None else fault
        took = TIMEOUT_MS if code is None else _answer_ms(self.rng)
        event_id, stamp = log.public["event_id"], at // 1000
        signature = signatures(valid_keys(webhook.hidden, at), event_id, stamp, log.hidden["request_body"].encode())
        own = [(header["name"].lower(), header["value"]) for header in webhook.public["headers"]]
        media, body = ("", None) if code is None else BODIES[code]
        outcome = AttemptOutcome(
            status=code,
            body=body,
            response_headers={} if code is None else {"content-type": media, "server": "nginx"},
            duration_ms=took,
            error=error,
            request_headers=dict(signed_headers(__version__, event_id, stamp, signature, own)),
            signature=signature,
        )
        self.script.add(at + took, self._conclude, log, webhook, outcome, at)

    def _conclude(self, log: Row, webhook: Row, outcome: AttemptOutcome, at: int) -> None:
        draft = self.script.draft()
        public, _ = attempts.conclude(draft, log, webhook.id, outcome, webhook.public["url"], AUTOMATIC, at)
        self.script.record(draft)
        if public["next_attempt_at"] is not None:
            self.script.add(date_time_ms(public["next_attempt_at"]), self.attempt, log.id)


def _answer_ms(rng: Random) -> int:
    """How long a receiver takes: mostly a tenth of a second, seldom a whole one."""
    return min(40 + int(80 * math.exp(0.7 * rng.normalvariate(0, 1))), TIMEOUT_MS - 1)
