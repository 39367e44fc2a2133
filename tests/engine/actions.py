"""What a random sequence may ask of the server: every operation that writes, and readings that keep lists warm."""

from collections.abc import Callable, Mapping

from stub_server.core.clock import DAY, HOUR, SECOND, iso
from stub_server.domain.cpf import cpf_with_check_digits
from stub_server.domain.orders import MAGIC
from stub_server.engine.tables.memory import Store

from ..support.contract import document
from .inside import Json
from .scene import MERCHANTS, UNKNOWN, Request, Scene, one, pick
from .state import LISTS

DOCUMENTS = tuple(cpf_with_check_digits(f"{987_000_000 + number}") for number in range(5))
NEWCOMER = cpf_with_check_digits("987000009")  # whom no random turn names
METHODS = ("pix", "pix", "credit_card", "boleto")
PLANS: tuple[Json, ...] = (
    {},
    {"interval": "day", "interval_count": 2, "payment_methods": ["pix", "boleto", "credit_card"]},
    {"trial_period_days": 7},
    {"interval": "week", "max_subscribers": 2},
    {"billing_type": "one_time"},
)
LEAPS = (SECOND, 2 * SECOND, 200 * SECOND, HOUR, HOUR, 25 * HOUR, 3 * DAY, 8 * DAY, 33 * DAY)
EVENTS = (["*"], ["order.*"], ["subscription.*", "plan.*"], ["webhook.test", "customer.created"])
FAILURES = ("insufficient_funds", "card_declined", "nonsense")
SCOPES = [scope["name"] for scope in document().scopes if scope["assignable"]]
STATES = ("active", "draft", "suspended", "active", "suspended", "active", "archived")


# -- what is sold


def create_project(scene: Scene, store: Store, a: int, b: int) -> Request:
    name = f"Clube {scene.serial if a else 0}"
    return Request("POST", "/v2/projects", {"name": name, "status": ("draft", "active")[b % 2]})


def update_project(scene: Scene, store: Store, a: int, b: int) -> Request:
    body: tuple[Json, ...] = ({"description": f"d{scene.serial}"}, {"visibility": "private"}, {"name": f"Outro {b}"})
    return Request("PUT", f"/v2/projects/{one(store.projects, a)}", pick(body, b))


def delete_project(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("DELETE", f"/v2/projects/{one(store.projects, a)}")


def set_status(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("PATCH", f"/v2/projects/{one(store.projects, a)}/status", {"status": STATES[b % len(STATES)]})


def move_project(scene: Scene, store: Store, a: int, b: int) -> Request:
    verb = ("activate", "activate", "suspend", "archive", "activate")[b % 5]
    if verb == "archive" and len(store.projects):  # the oldest, which has sold most
        a = len(store.projects) - 1
    return Request("POST", f"/v2/projects/{one(store.projects, a)}/{verb}")


def create_plan(scene: Scene, store: Store, a: int, b: int) -> Request:
    name = f"Plano {scene.serial if a else 0}"
    body = {"projectId": one(store.projects, b // 5), "name": name, "amount": 10 + a, **PLANS[b % len(PLANS)]}
    return Request("POST", "/v2/plans", body)


def update_plan(scene: Scene, store: Store, a: int, b: int) -> Request:
    changes: list[Json] = [
        {"description": f"d{scene.serial}"}, {"status": "inactive"}, {"status": "active"}, {"amount": 20 + b},
        {"max_subscribers": 1}, {"name": "Plano 0"},
    ]  # fmt: skip
    return Request("PUT", f"/v2/plans/{one(store.plans, a)}", pick(changes, b))


def delete_plan(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("DELETE", f"/v2/plans/{one(store.plans, a)}")


def create_product(scene: Scene, store: Store, a: int, b: int) -> Request:
    body: Json = {
        "projectId": one(store.projects, a),
        "name": f"Curso {scene.serial}",
        "sku": f"SKU-{b}" if b % 3 else None,
    }
    body |= {"type": ("course", "ebook")[b % 2], "planIds": [one(store.plans, b)] if b % 4 == 1 else []}
    return Request("POST", "/v2/products", body)


def update_product(scene: Scene, store: Store, a: int, b: int) -> Request:
    changes: list[Json] = [{"status": "archived"}, {"sku": f"SKU-{b}"}, {"name": f"Aula {b}"}, {"status": "active"}]
    return Request("PUT", f"/v2/products/{one(store.products, a)}", pick(changes, b))


def delete_product(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("DELETE", f"/v2/products/{one(store.products, a)}")


# -- who buys


def create_customer(scene: Scene, store: Store, a: int, b: int) -> Request:
    body = {"name": f"Rosa {a}", "email": f"rosa{b}@example.com", "document": DOCUMENTS[a % len(DOCUMENTS)]}
    return Request("POST", "/v2/customers", body)


def update_customer(scene: Scene, store: Store, a: int, b: int) -> Request:
    changes: list[Json] = [
        {"name": f"Ana {b}"},
        {"document": DOCUMENTS[b % len(DOCUMENTS)]},
        {"email": "a@example.com"},
    ]
    return Request("PUT", f"/v2/customers/{one(store.customers, a)}", pick(changes, b))


def place_order(scene: Scene, store: Store, a: int, b: int) -> Request:
    plan = store.plans.open(one(store.plans, a // 3))
    project = one(store.projects, b) if plan is None else plan.public["projectId"]
    method = METHODS[b % 4]
    local = (None, None, *MAGIC)[a % (2 + len(MAGIC))] or "rosa"
    document = DOCUMENTS[b % len(DOCUMENTS)]
    if b > 10:
        local, document = "fill_never", NEWCOMER
    body = {
        "projectId": project,
        "planId": UNKNOWN if plan is None else plan.id,
        "paymentMethod": method,
        "totalAmount": 10 + b / 4,
        "items": [{"description": "Plano", "quantity": 1, "amount": 10 + b / 4}],
        "customer": {"name": "Rosa", "email": f"{local}@example.com", "document": document},
    }
    return Request("POST", "/v2/orders/pix" if method == "pix" and b % 3 else "/v2/orders", body)


def _order(verb: str) -> Callable[[Scene, Store, int, int], Request]:
    def action(scene: Scene, store: Store, a: int, b: int) -> Request:
        wanted = {"refund": "paid", "dispute": "paid", "dispute/resolve": "disputed"}.get(verb, "pending")
        fitting = [store.orders.rows[key].id for key in store.orders.bucket("status", wanted)]
        ident = pick(fitting, a) if fitting and b != 9 else one(store.orders, a)
        body: Json | None = None
        if verb == "fail":
            body = {"code": FAILURES[b % 3]} if b % 2 else None
        if verb in ("refund", "dispute") and b % 2:
            body = {"amount": 1 + b}
        if verb == "dispute/resolve":
            body = {"outcome": "won" if b % 2 else "lost"}
        if verb == "pay" and b == 7:
            body = {"payer": {"name": "Outra", "document": DOCUMENTS[0]}, "paid_at": iso(scene.world.clock.now)}
        return Request("POST", f"/_sandbox/orders/{ident}/{verb}", body)

    return action


def _subscription(verb: str) -> Callable[[Scene, Store, int, int], Request]:
    def action(scene: Scene, store: Store, a: int, b: int) -> Request:
        body = {"at_period_end": True} if verb == "cancel" and b % 2 else None
        held = store.subscriptions
        wanted = {"cancel": "active", "renew": "active", "expire": "past_due"}[verb]
        fitting = [held.rows[key].id for key in held.bucket("status", wanted)]
        ident = pick(fitting, a) if fitting and b != 9 else one(held, a)
        return Request("POST", f"/_sandbox/subscriptions/{ident}/{verb}", body)

    return action


# -- keys and tokens


def create_key(scene: Scene, store: Store, a: int, b: int) -> Request:
    body: Json = {"name": f"Chave {scene.serial}", "scopes": SCOPES if b % 3 else ["orders:read"]}
    if a % 4 == 3:
        body["allowed_projects"] = [one(store.projects, b)]
    if b % 4 == 3:
        body["expires_at"] = iso(scene.world.clock.now + (b - 5) * HOUR)
    return Request("POST", "/api-keys", body)


def update_key(scene: Scene, store: Store, a: int, b: int) -> Request:
    later = iso(scene.world.clock.now + 2 * DAY)
    changes: list[Json] = [{"description": f"d{b}"}, {"is_active": False}, {"is_active": True}, {"expires_at": later}]
    return Request("PUT", f"/api-keys/{one(store.api_keys, a)}", pick(changes, b))


def delete_key(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("DELETE", f"/api-keys/{one(store.api_keys, a)}")


def ask_token(scene: Scene, store: Store, a: int, b: int) -> Request:
    body: Json = {"merchant_id": MERCHANTS[a % 3]} if a % 3 else {}
    return Request("POST", "/_sandbox/tokens", body)


# -- webhooks


def create_webhook(scene: Scene, store: Store, a: int, b: int) -> Request:
    body: Json = {"url": f"{pick(scene.hooks, b)}/{a}", "events": EVENTS[b % len(EVENTS)]}
    if b == 10:  # where the server answers itself
        body = {"url": f"http://shop.example/{a}", "events": ["project.*"]}
    if b % 5 == 4:
        body["projectId"] = one(store.projects, a)
    if b % 3 == 2:
        body["ordered"] = True
    return Request("POST", "/v2/webhooks", body)


def update_webhook(scene: Scene, store: Store, a: int, b: int) -> Request:
    changes: list[Json] = [
        {"name": "Loja"},
        {"is_active": False},
        {"is_active": True},
        {"events": EVENTS[b % 4]},
        {"ordered": b % 2 == 0},
    ]
    return Request("PUT", f"/v2/webhooks/{one(store.webhooks, a)}", pick(changes, b))


def delete_webhook(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("DELETE", f"/v2/webhooks/{one(store.webhooks, a)}")


def rotate_webhook(scene: Scene, store: Store, a: int, b: int) -> Request:
    body = {"grace_period_seconds": b * 1000} if b % 2 else None
    return Request("POST", f"/v2/webhooks/{one(store.webhooks, a)}/regenerate-key", body)


def try_webhook(scene: Scene, store: Store, a: int, b: int) -> Request:
    body = {"event_type": "order.paid"} if b % 2 else None
    return Request("POST", f"/v2/webhooks/{one(store.webhooks, a)}/test", body)


def retry(scene: Scene, store: Store, a: int, b: int) -> Request:
    logs = store.webhook_logs
    fitting = [logs.rows[key].id for status in ("delivered", "failed") for key in logs.bucket("status", status)]
    return Request("POST", f"/v2/webhooks/logs/{pick(fitting, a) if fitting else one(logs, b)}/retry")


# -- the clock, readings, and what is wrong with every request


def advance(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("POST", "/_sandbox/clock/advance", {"seconds": LEAPS[b % len(LEAPS)] / 1000})


def to_next(scene: Scene, store: Store, a: int, b: int) -> Request:
    due = scene.world.timers.next_due() or scene.world.clock.now
    return Request("POST", "/_sandbox/clock/advance", {"to": iso(max(due, scene.world.clock.now + 5_000) + b % 2)})


def set_clock(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("PATCH", "/_sandbox/clock", {"to": iso(scene.world.clock.now + (b - 1) * HOUR)})


def freeze(scene: Scene, store: Store, a: int, b: int) -> Request:
    to = {"to": iso(scene.world.clock.now + HOUR)} if b % 2 else {}
    return Request("PATCH", "/_sandbox/clock", {**to, "frozen": True})


def resume(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("PATCH", "/_sandbox/clock", {"frozen": False})


def rewind(scene: Scene, store: Store, a: int, b: int) -> Request:
    """Not far most of the time, sometimes to where a rewind was or to the origin."""
    log = scene.world.log
    back = (1, 2, 3, 5, 8, 1, 2, 13, 30, 90, log.number)[b]
    return Request("POST", "/_sandbox/rewind", {"to_step": max(0, log.number - back)})


def snapshot(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("POST", "/_sandbox/snapshots", {"name": f"s{a % 2}"})


def restore(scene: Scene, store: Store, a: int, b: int) -> Request:
    return Request("POST", f"/_sandbox/snapshots/s{a % 2}/restore")


def read(scene: Scene, store: Store, a: int, b: int) -> Request:
    path = pick(list(LISTS), a)
    query = pick(list(LISTS[path]), b)
    return Request("GET", f"{path}?{query}" if query else path)


def malformed(scene: Scene, store: Store, a: int, b: int) -> Request:
    paths = (
        "/v2/customers",
        "/v2/projects",
        "/v2/orders",
        "/v2/plans",
        "/api-keys",
        "/v2/webhooks",
        "/_sandbox/tokens",
    )
    return Request("POST", paths[a % len(paths)], {"no_such_member": b})


ACTIONS: Mapping[str, Callable[[Scene, Store, int, int], Request]] = {
    "create project": create_project,
    "update project": update_project,
    "delete project": delete_project,
    "set project status": set_status,
    "move project": move_project,
    "create plan": create_plan,
    "update plan": update_plan,
    "delete plan": delete_plan,
    "create product": create_product,
    "update product": update_product,
    "delete product": delete_product,
    "create customer": create_customer,
    "update customer": update_customer,
    "place order": place_order,
    **{
        f"{verb} order": _order(verb)
        for verb in ("pay", "fail", "expire", "cancel", "refund", "dispute", "dispute/resolve")
    },
    **{f"{verb} subscription": _subscription(verb) for verb in ("cancel", "renew", "expire")},
    "create key": create_key,
    "update key": update_key,
    "delete key": delete_key,
    "ask token": ask_token,
    "create webhook": create_webhook,
    "update webhook": update_webhook,
    "delete webhook": delete_webhook,
    "rotate webhook": rotate_webhook,
    "test webhook": try_webhook,
    "retry delivery": retry,
    "advance": advance,
    "advance to next": to_next,
    "set clock": set_clock,
    "freeze": freeze,
    "resume": resume,
    "rewind": rewind,
    "snapshot": snapshot,
    "restore": restore,
    "read": read,
    "malformed": malformed,
}
