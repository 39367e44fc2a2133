"""What the merchant does from the first day to now: opens projects with plans and products, keys
and webhooks. Functions that plan raise ScenarioError.
"""

from collections.abc import Iterator
from random import Random

from ..core.clock import DAY, HOUR, MINUTE, SECOND, iso
from ..core.ids import derived_text, named_uuid
from ..core.record import Body
from ..core.signing import new_key
from ..domain import api_keys
from ..domain.lifecycle import path
from ..domain.projects import changed_plan
from ..domain.webhooks import changed_webhook, new_webhook
from ..engine import resources
from ..engine.deliveries import CALLING_OFF
from ..engine.draft import Draft
from .catalogue import Membership, offered
from .keys import MAIN_ID, pair_of
from .past import Past
from .purchases import Offer
from .rhythm import office_hour
from .scenario import Node, check_request
from .tables import plain_ascii, table

SHARES = (30, 20, 14, 10, 8, 6, 5, 4)  # of sales, of drawn projects; the last one repeats
MAIN_KEY: Body = {
    "name": "Loja principal",
    "description": "Chave do site, com todas as permissões.",
}
NOT_OF_KEYS = ("key", "state", "usage", "days_old", "expires_in_days")
NOT_OF_WEBHOOKS = ("key", "behaviour", "state", "days_old", "project")
# of the last drawn projects, where every state is shown
STATES = ("draft", "suspended", "archived")
PRODUCT_STATES = ("active", "draft", "archived")  # of the first project's products, then
PLACES_LEFT = (0, 20)  # of the two plans that sell least

# -- what is sold


def plan_projects(past: Past) -> None:
    """Plan the projects with all that will be for sale in them, one after the other."""
    rng = past.stream("projects")
    for number, (spec, membership) in enumerate(_memberships(past)):
        _plan_project(past, rng, spec, membership, number)
    if past.scenario.every_state:
        past.plan(past.end, _limit_places, past.offers)


def _memberships(past: Past) -> Iterator[tuple[Node, Membership]]:
    """As many drawn projects as the scenario says, and those that it names."""
    faker, drawn = past.faker("projects", "drawn"), past.scenario.drawn
    states = STATES if past.scenario.every_state and drawn > len(STATES) + 1 else ()
    for number, slug in enumerate(faker.random_sample([*offered()], drawn)):
        first = number == 0 or None  # some project has a trial, whatever the seed
        share = SHARES[min(number, len(SHARES) - 1)]
        membership = faker.membership(slug, has_trial=first)
        status = states[number - drawn] if number >= drawn - len(states) else "active"
        yield Node({"status": status, "share": share}, "", steps=(slug,)), membership
    for spec in past.scenario.root.each("projects"):
        slug = spec.value["slug"]
        if slug not in offered():
            raise spec["slug"].fail(f"the catalogue has no project {slug!r}")
        yield spec, past.faker("projects", slug).membership(slug)


def _plan_project(past: Past, rng: Random, spec: Node, membership: Membership, place: int) -> None:
    status, ident = spec.value["status"], named_uuid("project", membership.slug)
    opened, first = office_hour(rng, past.begun + (3 + 2 * place) * DAY), {"status": "active"}
    if status == "draft":
        opened = office_hour(rng, past.end - 9 * DAY)
        first = {"status": "draft", "visibility": "private"}
    opened = min(opened, past.end - HOUR)
    project = past.add_project(spec, ident, membership.project | first, opened)
    past.claim(ident, spec, "project has this slug")
    stopped = None
    if status in ("suspended", "archived"):
        wanted = past.end - spec.get("stopped_days_ago", 60) * DAY
        stopped = min(past.end - HOUR, max(opened + 2 * HOUR, wanted))
        past.plan(stopped, move_project, ident, status)
    at, plans = opened, list[str]()
    shows = past.scenario.every_state and place < past.scenario.drawn
    for fields, share in _plans(past, ident, spec, membership, retires=shows and place == 1):
        at = min(at + 3 * MINUTE + int(rng.random() * 10 * MINUTE), past.end)
        plan_id = named_uuid("plan", membership.slug, plain_ascii(fields["name"]))
        plan = past.add_plan(spec, plan_id, fields | {"status": "active"}, at)
        past.claim(
            plan_id, spec, f"plan of this project has the name {plan['name']!r}, accents apart"
        )
        closes = stopped or past.end
        if fields.get("status") == "inactive":  # it was sold until four months ago
            closes = min(closes, max(at + HOUR, office_hour(rng, past.end - 120 * DAY)))
            past.plan(closes, withdraw_plan, plan_id)
        plans.append(plan_id)
        if status != "draft" and share > 0 and plan["max_subscribers"] is None:
            past.offers.append(Offer(project, plan, share, at, closes, stopped, membership.bumps))
    for number, fields in enumerate(membership.products, start=1):
        at = min(at + 5 * MINUTE + int(rng.random() * 15 * MINUTE), past.end)
        body = {"projectId": ident, **fields, "planIds": plans}
        if past.scenario.every_state and place == 0:
            body["status"] = PRODUCT_STATES[(number - 1) % len(PRODUCT_STATES)]
        past.add_product(spec, named_uuid("product", membership.slug, str(number)), body, at)


def _plans(
    past: Past, project_id: str, spec: Node, membership: Membership, *, retires: bool
) -> Iterator[tuple[Body, float]]:
    """The plans that the scenario gives a project, or else the drawn ones, with their shares of
    all sales.

    With `retires` the last drawn one is not sold any more.
    """
    of_project = spec.get("share", 1)
    given = [*spec.each("plans")]
    for node in given:
        fields = {"projectId": project_id, **node.without("share")}
        check_request(past.rules.schemas, "PlanCreate", fields, node)
        yield fields, node.get("share", 1) * of_project
    if not given:
        for plan in membership.plans:
            fields = {"projectId": project_id, **plan}
            if retires and plan is membership.plans[-1]:
                fields["status"] = "inactive"
            yield fields, table("habits")["sales"][plan["name"]] * of_project


def _limit_places(draft: Draft, offers: list[Offer]) -> None:
    """Of the memberships on sale those that sell least have few places: the first one none, the
    next one some.
    """
    left, store = list(PLACES_LEFT), draft.store
    for offer in sorted(offers, key=lambda offer: offer.share):
        if offer.stopped is not None or offer.closes < draft.now or not offer.plan["interval"]:
            continue
        ident = offer.plan["id"]
        members = store.subscriptions.members("plan_subscribers", ident)
        in_use = len({*members, *store.orders.members("plan_waiting", ident)})
        row = draft.open("plans", ident)
        if in_use and left and row is not None:
            limited = {"max_subscribers": in_use + left.pop(0)}
            resources.change(draft, row.changed(limited))


def move_project(draft: Draft, ident: str, to: str) -> None:
    """Move a project to a status, by the shortest way that the contract knows."""
    row, moves = draft.get("projects", ident), draft.lifecycle("Project")
    for status in path(moves, row.status, to)[1:]:
        row = resources.change_project(draft, row, moves.find(row.status, status))


def withdraw_plan(draft: Draft, ident: str) -> None:
    """A plan is not sold any more; who has it keeps it."""
    row = draft.get("plans", ident)
    resources.change(draft, changed_plan(row, {"status": "inactive"}, 0))


# -- webhooks and keys


def _project_id(past: Past, node: Node, slug: str) -> str:
    if all(spec.value["slug"] != slug for spec in past.scenario.root.each("projects")):
        raise node.fail(f"there is no project {slug!r}")
    return named_uuid("project", slug)


def _opened(past: Past, rng: Random, days_old: int, soonest: int) -> int:
    """An office hour about so many days ago, at least `soonest` ms after the
    first day began.
    """
    wanted = min(office_hour(rng, past.end - days_old * DAY), past.end - 5 * MINUTE)
    return max(past.begun + soonest, wanted)


def plan_webhooks(past: Past) -> None:
    """Plan the webhooks. Events are raised from the first one on.

    Their receivers, healthy, flaky or gone, answer through the engine, as they do in a sandbox
    that is used.
    """
    rng, times = past.stream("webhooks"), list[int]()
    for node in past.scenario.root.each("webhooks"):
        fields = node.without(*NOT_OF_WEBHOOKS)
        if node.get("project", None) is not None:
            fields["projectId"] = _project_id(past, node["project"], node.value["project"])
        check_request(past.rules.schemas, "WebhookCreate", fields, node)
        created = _opened(past, rng, node.get("days_old", 30), HOUR)
        receiver = {
            "behaviour": node.value["behaviour"],
            "gone": created + (past.end - created) * 2 // 5,
            "until": past.end,
        }
        past.plan(created, _create_webhook, node.value["key"], fields, receiver)
        if node.get("state", "active") == "inactive":
            past.plan(past.end - HOUR // 2, _silence, named_uuid("webhook", node.value["key"]))
        times.append(created)
    if times:
        past.add(min(times), setattr, past.sandbox.origin, "raises_events", True)


def _create_webhook(draft: Draft, name: str, fields: Body, receiver: Body) -> None:
    sandbox = draft.sandbox
    secret = derived_text(sandbox.rules.secret, 32, str(sandbox.origin.seed), "webhook", name)
    blank = draft.new("webhooks", named_uuid("webhook", name))
    webhook = new_webhook(blank, fields, new_key(secret.encode()))
    draft.put(webhook.keeping({"receiver": receiver}))


def _silence(draft: Draft, ident: str) -> None:
    """A webhook is switched off, which calls off its open deliveries."""
    row = draft.get("webhooks", ident)
    draft.put(changed_webhook(row, {"is_active": False}))
    draft.at(draft.now, CALLING_OFF, ident)


def plan_keys(past: Past) -> None:
    """Plan the main key, which has all scopes that a key can have, and the scenario's."""
    scopes = [scope["name"] for scope in past.rules.document.scopes if scope["assignable"]]
    rng = past.stream("keys")
    first = past.begun + 10 * MINUTE + int(rng.random() * HOUR)
    past.plan(first, _create_key, MAIN_ID, MAIN_KEY | {"scopes": scopes})
    requests = 0
    for node in past.scenario.root.each("keys"):
        _plan_key(past, rng, node)
        requests += node.get("usage", 0)
    latest = past.end - 20 * SECOND - int(rng.random() * 4 * MINUTE)
    past.add(past.end, _use_main_key, past, requests, latest)


def _plan_key(past: Past, rng: Random, node: Node) -> None:
    """Plan a key, and how often it was used and when last."""
    now, ident, state = past.end, named_uuid("api_key", node.value["key"]), node.value["state"]
    fields, named = node.without(*NOT_OF_KEYS), node.get("allowed_projects", [])
    fields["allowed_projects"] = [
        _project_id(past, node["allowed_projects"], slug) for slug in named
    ]
    check_request(past.rules.schemas, "ApiKeyCreate", fields, node)
    created = _opened(past, rng, node.get("days_old", 200), 2 * HOUR)
    last, days = now - int(rng.random() * 5 * HOUR), node.get("expires_in_days", None)
    if state == "expired":
        ended = created + (now - created) // 2
        fields["expires_at"] = iso(ended)
        last = ended - int(rng.random() * 20 * HOUR)
    elif days is not None:
        # to the end of the day in Brasília, three hours into the next one of UTC
        fields["expires_at"] = iso((now // DAY + days) * DAY + 3 * HOUR - 1)
    past.plan(created, _create_key, ident, fields)
    if state == "inactive":
        last = created + (now - created) // 3
        past.plan(last + HOUR, _switch_off, ident)
    usage = node.get("usage", 0)
    if usage:
        past.add(now, past.store.set_usage, ident, (usage, iso(max(created, last))))


def _create_key(draft: Draft, ident: str, fields: Body) -> None:
    sandbox, projects = draft.sandbox, fields.get("allowed_projects", [])
    halves = pair_of(sandbox.rules.secret, sandbox.origin.seed, ident)
    blank = draft.new("api_keys", ident)
    key = api_keys.new_key(blank, fields, halves, projects, draft.now)
    resources.add_key(draft, key.keeping({"user_id": draft.store.merchant.user_id}))


def _switch_off(draft: Draft, ident: str) -> None:
    row = draft.get("api_keys", ident)
    off = api_keys.changed_key(row, {"is_active": False}, None, draft.now)
    resources.change_key(draft, off)


def _use_main_key(past: Past, requests: int, latest: int) -> None:
    """The main key was used by every order, twice, and by so many `requests` of others."""
    orders = len(past.store.orders)
    if orders:
        past.store.set_usage(MAIN_ID, (2 * orders + requests, iso(latest)))
