"""A merchant whose clock may be moved: records brought into any state by real means, and what
happened to them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2

from ..support import make
from ..support.estate import client, token, webhook_body, with_room
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, done, list_of, object_of, typed

DAY = 86_400


@dataclass(frozen=True, slots=True)
class Stage:
    """One merchant, the control surface of his sandbox, and an address that answers webhooks."""

    api: httpx2.Client
    control: httpx2.Client
    sink: str

    # -- time and history

    def advance(self, seconds: float) -> list[Json]:
        """Move the clock; answers the jobs that were done on the way."""
        response = self.control.post("/clock/advance?details=all", json={"seconds": seconds})
        return list_of(done(response), "fired")

    def go_to(self, instant: str) -> list[Json]:
        """The same, to an instant."""
        response = self.control.post("/clock/advance?details=all", json={"to": instant})
        return list_of(done(response), "fired")

    def drain(self) -> None:
        """Wait until everything that is due is delivered."""
        assert done(self.control.post("/webhooks/drain"))["complete"]

    def now(self) -> str:
        """The sandbox's time."""
        return typed(str, done(self.control.get("/clock"))["now"])

    def after(self, seconds: float) -> str:
        """The instant so long after now."""
        moment = datetime.fromisoformat(self.now()) + timedelta(seconds=seconds)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def events(self, subject: str) -> list[str]:
        """What happened to a record, oldest first."""
        page = done(self.control.get("/events", params={"resource_id": subject, "limit": 100}))
        return [event["type"] for event in page["events"]][::-1]

    # -- records in a state

    def project(self, state: str = "active") -> Json:
        """A project in a state."""
        project = make.make_project(
            self.api, status="draft" if state in ("draft", "archived") else "active"
        )
        if state in ("suspended", "archived"):
            done(self.api.patch(f"/v2/projects/{project['id']}/status", json={"status": state}))
        return self.get_project(project["id"])

    def get_project(self, ident: str) -> Json:
        """The project as it is now."""
        return object_of(done(self.api.get(f"/v2/projects/{ident}"))["data"], "project")

    def order(
        self,
        state: str = "pending",
        plan: Json | None = None,
        magic: str | None = None,
        **changes: object,
    ) -> Json:
        """An order in a state, of a new buyer with an ordinary e-mail address or a magic one."""
        plan = plan or make.make_plan(self.api, billing_type="one_time")
        document = make.fresh_cpf()
        buyer = {
            "name": "Marina Duarte",
            "email": f"{magic or 'marina'}.{document}@example.com",
            "document": document,
        }
        order = make.make_order(self.api, plan, customer=buyer, **changes)
        if state in ("paid", "refunded", "disputed"):
            self.drive("orders", order["id"], "pay")
        verbs = {"failed": "fail", "expired": "expire", "canceled": "cancel", "refunded": "refund"}
        verbs |= {"disputed": "dispute"}
        if state in verbs:
            self.drive("orders", order["id"], verbs[state])
        return self.get_order(order["id"])

    def get_order(self, ident: str) -> Json:
        """The order as it is now."""
        return done(self.api.get(f"/v2/orders/{ident}"))

    def subscription(self, state: str = "active", magic: str | None = None, **plan: Any) -> Json:
        """A subscription in a state, of a monthly plan unless told otherwise."""
        changes: Json = {"trial_period_days": 7} if state == "trialing" else {}
        order = self.order("pending", make.make_plan(self.api, **changes, **plan), magic)
        if magic is None:
            self.drive("orders", order["id"], "pay")
        else:
            self.advance(1)
        held = self.subscription_of(order["id"])
        if state in ("past_due", "expired"):
            self.go_to(held["current_period_end"])
        if state == "expired":
            self.drive("subscriptions", held["id"], "expire")
        if state == "canceled":
            self.drive("subscriptions", held["id"], "cancel")
        held = self.get_subscription(held["id"])
        assert held["status"] == state
        return held

    def subscription_of(self, order_id: str) -> Json:
        """The subscription that an order opened."""
        held = done(self.api.get("/v2/subscriptions"))["subscriptions"]
        (found,) = [each for each in held if each["orderId"] == order_id]
        return self.get_subscription(found["id"])

    def get_subscription(self, ident: str) -> Json:
        """The subscription as it is now: there is no operation for one alone."""
        held = done(self.api.get("/v2/subscriptions", params={"limit": 100}))["subscriptions"]
        (found,) = [each for each in held if each["id"] == ident]
        assert isinstance(found, dict)
        return found

    def key(self, state: str = "active") -> Json:
        """An API key in a state."""
        ends = "2026-01-01T00:00:00Z" if state == "expired" else None
        body = {"name": "Chave", "scopes": ["orders:read"], "expires_at": ends}
        key: Json = created(self.api.post("/api-keys", json=body))["api_key"]
        if state == "expired":
            self.advance(0)
        if state == "inactive":
            done(self.api.put(f"/api-keys/{key['id']}", json={"is_active": False}))
        return key

    def webhook(self, **changes: object) -> Json:
        """A webhook for tests alone, unless told otherwise."""
        response = self.api.post("/v2/webhooks", json=webhook_body(self.sink, **changes))
        return object_of(created(response), "webhook")

    def drive(self, what: str, ident: str, verb: str, **body: object) -> Json:
        """Do to an order or a subscription what a payer, a bank or time would."""
        return done(self.control.post(f"/{what}/{ident}/{verb}", json=body or None))


class ByCode(Stage):
    """A stage on which whoever pays an order does so by the text of its PIX code."""

    def drive(self, what: str, ident: str, verb: str, **body: object) -> Json:
        """Pay by code; everything else as ever."""
        if (what, verb) != ("orders", "pay"):
            return Stage.drive(self, what, ident, verb, **body)
        code = self.get_order(ident)["last_transaction"]["qr_code"]
        return done(self.control.post("/pix/pay", json={"qr_code": code} | body))


def by_code(road: Callable[[Stage], str]) -> Callable[[Stage], str]:
    """The same road, on which orders are paid by their PIX code."""
    return lambda stage: road(ByCode(stage.api, stage.control, stage.sink))


@contextmanager
def staged(live: Live, sandbox: str, sink: str) -> Iterator[Stage]:
    """A stage with a new merchant until the block ends, in one of the sandboxes of this name that
    has room for him.
    """
    sandbox = with_room(live, sandbox)
    with (
        client(live, sandbox, token(live, sandbox, str(uuid4()))) as api,
        httpx2.Client(
            base_url=f"{live.url}/s/{sandbox}/_sandbox", timeout=120, verify=NO_TLS
        ) as control,
    ):
        yield Stage(api, control, sink)
