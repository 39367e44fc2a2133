"""One request in one copy of a world in which everything is about to happen, and what it leaves."""

from collections.abc import Callable

from stub_server.core.clock import iso

from .inside import Answer, Json
from .scene import MERCHANTS, Request
from .shop import Shop
from .small import Wall, serve, set_wall
from .state import LISTS, answers, same, stale, state, token_of


def order(shop: Shop) -> Request:
    """Of somebody new: the customer, the order, its timers, events and deliveries, of which the oldest make room."""
    plan = next(shop.world.store.plans.all_rows()).public
    buyer = {"name": "Nova", "email": "succeed_immediately@example.com", "document": "34712695846"}
    body = {"projectId": plan["projectId"], "planId": plan["id"], "paymentMethod": "pix", "totalAmount": 11}
    body |= {"items": [{"description": "Plano", "quantity": 1, "amount": 11}], "customer": buyer}
    return Request("POST", "/v2/orders/pix", body)


def payment(shop: Shop) -> Request:
    """Opens a subscription."""
    ident = next(row.id for row in shop.world.store.orders.rows_of("status", "pending"))
    return Request("POST", f"/_sandbox/orders/{ident}/pay")


def refund(shop: Shop) -> Request:
    """Of a part."""
    ident = next(row.id for row in shop.world.store.orders.rows_of("status", "paid"))
    return Request("POST", f"/_sandbox/orders/{ident}/refund", {"amount": 1})


def key(shop: Shop) -> Request:
    """Takes credentials out of the stream of secrets, and sets a timer."""
    body = {"name": "Nova", "scopes": ["orders:read"], "expires_at": "2026-12-01T00:00:00Z"}
    return Request("POST", "/api-keys", body)


def deleted_key(shop: Shop) -> Request:
    """One that was used, and not all of its use was recorded."""
    used = next(iter(shop.world.store.unrecorded))
    return Request("DELETE", f"/api-keys/{used}")


def deleted_project(shop: Shop) -> Request:
    """With its plan and its product."""
    ident = next(row.id for row in shop.world.store.projects.all_rows() if row.public["name"] == "Vazio")
    return Request("DELETE", f"/v2/projects/{ident}")


def deleted_webhook(shop: Shop) -> Request:
    """With a job that calls off what is open."""
    return Request("DELETE", f"/v2/webhooks/{next(shop.world.store.webhooks.all_rows()).id}")


def rotation(shop: Shop) -> Request:
    """Of a signing key."""
    return Request("POST", f"/v2/webhooks/{next(shop.world.store.webhooks.all_rows()).id}/regenerate-key")


def archive(shop: Shop) -> Request:
    """Sets a job that runs before the next request."""
    ident = next(shop.world.store.projects.all_rows()).id
    return Request("POST", f"/v2/projects/{ident}/archive")


def token(shop: Shop) -> Request:
    """Of a merchant whom the world does not know yet: opens his store, and nothing is written."""
    return Request("POST", "/_sandbox/tokens", {"merchant_id": MERCHANTS[2]})


def setting(shop: Shop) -> Request:
    """Moves the clock, and nothing is due."""
    return Request("PATCH", "/_sandbox/clock", {"to": iso(shop.world.clock.now + 1)})


def freeze(shop: Shop) -> Request:
    """Sets the clock and nothing else."""
    return Request("PATCH", "/_sandbox/clock", {"frozen": True})


REQUESTS: dict[str, Callable[[Shop], Request]] = {
    function.__name__: function
    for function in (
        order, payment, refund, key, deleted_key, deleted_project, deleted_webhook, rotation, archive,
        token,
    )
}  # fmt: skip


def advance(shop: Shop) -> Request:
    """Past everything that is due now; what has nothing to do any more is passed over."""
    due = [timer.due for timer in shop.world.timers.pending()]
    return Request("POST", "/_sandbox/clock/advance", {"to": iso(due[-1])})


# Controls of the clock are recorded by their handlers; an advance makes a step for every job and one of its own, and a
# defect keeps what was done until then.
SETTING: dict[str, Callable[[Shop], Request]] = {"setting": setting, "freeze": freeze}
OF_THE_CLOCK = SETTING | {"advance": advance}
# Their stores are new: they share no tables with anybody.
NEWCOMERS = ("token",)


class Trial:
    """One request in one copy of the base world."""

    def __init__(self, base: Shop, request: str) -> None:
        self.shop = base.copy(base.world.fork(base.world.name))
        self.inside, self.world = base.inside, self.shop.world
        set_wall(self.world.clock, Wall(self.world.clock.now))
        serve(self.inside.app, self.world)
        self.merchant = self.world.origin.home
        self.token = token_of(self.inside, self.world, self.merchant)
        self.request = (REQUESTS | OF_THE_CLOCK)[request](self.shop)

    def warm(self) -> None:
        """Have every list asked for, so that a write has views to think of, in tables that are the world's own."""
        for store in self.world.stores.values():
            store.rebuild({name: table.rows for name, table in store.tables.items()})
        token = token_of(self.inside, self.world, self.world.origin.home)
        for path, queries in LISTS.items():
            for query in queries:
                assert 200 == self.inside.ask("GET", f"{path}?{query}", token=token).status

    def ask(self) -> Answer:
        """The request, always under the same Idempotency-Key."""
        return self.inside.ask(*self.request, token=self.token, idem="the-key")


class Outcome:
    """What a request leaves when nothing fails: the state before and after, and what it answers."""

    def __init__(self, base: Shop, request: str) -> None:
        trial = Trial(base, request)
        trial.warm()
        self.before = state(trial.world)
        self.answer = trial.ask()
        assert self.answer.status in (200, 201), self.answer
        self.after = state(trial.world)
        self.answers = answers(trial.inside, trial.world)
        self.is_repeatable = any(reply_key[3] == "the-key" for reply_key, _ in self.after["replies"])
        assert {} == stale(trial.world)
        assert self.before != self.after
        trial.ask()
        self.settled = state(trial.world)  # what the request left to a job is done before the next one


def said(answer: Answer) -> tuple[int, object]:
    """Status and body of an answer; of a token, which is another one every time, what is said beside it."""
    body: Json = answer.json()
    return answer.status, answer.body if "token" not in body else body | {"token": "", "expires_at": ""}


def again(trial: Trial, expected: Outcome) -> None:
    """Whatever came of a request, asking again under its Idempotency-Key has it done once and answered."""
    if not expected.is_repeatable:
        return
    for _ in range(2):
        answer = trial.ask()
        assert said(expected.answer) == said(answer)
    same(expected.settled, state(trial.world))
    assert "true" == answer.headers["idempotent-replayed"]


def is_a_defect(answer: Answer) -> None:
    """500 in the one shape of every refusal."""
    assert (500, "internal_error") == (answer.status, answer.json().get("code")), answer.body
    body: Json = answer.json()
    assert ["error", "message", "code", "status", "request_id", "details"] == list(body)
    assert body["request_id"] == answer.headers["x-request-id"]
