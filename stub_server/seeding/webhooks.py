"""The merchant's webhooks, and how the receivers behind them behave: healthy, flaky or gone."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..domain.webhooks import new_webhook
from ..drawing.rhythm import office_hour
from ..engine import resources
from ..events.signing import new_key
from ..kernel.clock import DAY, HOUR, MINUTE, iso
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Body
from ..scenarios.scenario import HookSpec
from .script import Script


class Webhooks:
    """Registers the webhooks. Their receivers answer through the engine, as they do when the world is lived in."""

    def __init__(self, script: Script, rng: Random) -> None:
        self.script, self.store, self.rng = script, script.store, rng

    def plan(self, specs: Sequence[HookSpec], secret: bytes, seed: int, begun: int) -> int | None:
        """Plan all of them; answers when the first one listens (ms)."""
        now, since = self.script.end, None
        for spec in specs:
            created = max(begun + HOUR, min(office_hour(self.rng, now - spec.days_old * DAY), now - 5 * MINUTE))
            key = new_key(derived_text(secret, 32, str(seed), "webhook", spec.key).encode())
            gone = created + (now - created) * 2 // 5
            receiver = {"behaviour": spec.behaviour, "created": created, "gone": gone, "until": now}
            self.script.add(created, self._register, spec, key, receiver)
            since = created if since is None else min(since, created)
        return since

    def _register(self, spec: HookSpec, key: str, receiver: Body) -> None:
        draft, ident = self.script.draft(), named_uuid("webhook", spec.key)
        project = named_uuid("project", spec.project) if spec.project else None
        defaults = self.script.sandbox.rules.defaults["Webhook"]
        fields = spec.fields | {"projectId": project}
        public, hidden = new_webhook(fields, defaults, ident, key, iso(self.script.now))
        resources.add_webhook(draft, public, hidden | {"receiver": receiver})
        self.script.record(draft)
