"""What the merchant does from the first day to now: opens projects with plans and products, keys
and webhooks. Functions that plan raise ScenarioError.
"""

from collections.abc import Iterator
from random import Random

from faker import Faker

from ..core.clock import DAY, HOUR, MINUTE, iso
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
from .purchases import NEVER, Offer
from .rhythm import office_hour
from .scenario import Node, Scenario, check_request
from .tables import plain_ascii, table

SHARES = (30, 20, 14, 10, 8, 6, 5, 4)  # of sales, of drawn projects; the last one repeats
# of the last drawn projects, where every state is shown
STATES = ("draft", "suspended", "archived")
PRODUCT_STATES = ("active", "draft", "archived")  # of the first project's products, then

# -- what is sold


def plan_projects(past: Past) -> None:
    """Plan the projects with all that will be for sale in them, one after the other."""
    rng = past.stream("projects")
    for place, spec in enumerate(_specs(past.scenario, past.faker("projects"))):
        _plan_project(past, rng, spec, place)
    if past.scenario.every_state:
        past.plan(past.end, _limit_places, past.offers)


def _specs(scenario: Scenario, faker: Faker) -> Iterator[Node]:
    """The projects that a scenario lists, or as many drawn ones as it says."""
    drawn = scenario.drawn
    states = ["active"] * drawn
    if scenario.every_state and drawn > len(STATES) + 1:
        states[-len(STATES) :] = STATES
    for place, slug in enumerate(faker.random_sample([*offered()], drawn)):
        yield Node(
            {"slug": slug, "status": states[place], "share": SHARES[min(place, len(SHARES) - 1)]},
            "",
        )
    for spec in scenario.root.each("projects"):
        if spec.value["slug"] not in offered():
            raise spec["slug"].fail(f"the catalogue has no project {spec.value['slug']!r}")
        yield spec


def _plan_project(past: Past, rng: Random, spec: Node, place: int) -> None:
    slug, status, end = spec.value["slug"], spec.value["status"], past.end
    shows, given = past.scenario.every_state, [*spec.each("plans")]
    has_trial = not (place or given) or None  # some drawn plan has one, whatever the seed
    membership = past.faker("projects", slug).membership(slug, has_trial=has_trial)
    plans = given or [*_drawn_plans(membership, retires=shows and place == 1).each("plans")]
    opened, first = past.begun + (3 + 2 * place) * DAY, {"status": "active"}
    if status == "draft":
        opened, first = end - 9 * DAY, {"status": "draft", "visibility": "private"}
    ident, at = named_uuid("project", slug), min(office_hour(rng, opened), end - HOUR)
    project, stops = past.create("projects", spec, ident, membership.project | first, at), NEVER
    if status in ("suspended", "archived"):
        wanted = end - spec.get("stopped_days_ago", 60) * DAY
        stops = min(end - HOUR, max(at + 2 * HOUR, wanted))
        past.plan(stops, move_project, ident, status)
    ids = []
    for node in plans:
        at = min(at + 3 * MINUTE + int(rng.random() * 10 * MINUTE), end)
        share = node.get("share", 1) * spec.get("share", 1)
        ids.append(named_uuid("plan", slug, plain_ascii(str(node.get("name", "")))))
        offer = Offer(project, {"id": ids[-1]}, share, at, stops, stops, membership.bumps)
        _plan_offer(past, rng, node, offer)
    for number, product in enumerate(membership.products, start=1):
        at = min(at + 5 * MINUTE + int(rng.random() * 15 * MINUTE), end)
        body = {"projectId": ident, **product, "planIds": ids}
        if shows and place == 0:
            body["status"] = PRODUCT_STATES[(number - 1) % len(PRODUCT_STATES)]
        past.create("products", spec, named_uuid("product", slug, str(number)), body, at)


def _plan_offer(past: Past, rng: Random, node: Node, offer: Offer) -> None:
    """Plan the plan of an offer. An inactive one was sold until four months ago."""
    ident = offer.plan["id"]
    fields = {"projectId": offer.project["id"], **node.without("share")}
    check_request(past.rules.schemas, "PlanCreate", fields, node)
    offer.plan = past.create("plans", node, ident, fields | {"status": "active"}, offer.opens)
    if fields.get("status") == "inactive":
        withdrawn = max(offer.opens + HOUR, office_hour(rng, past.end - 120 * DAY))
        offer.closes = min(offer.stops, withdrawn)
        past.plan(offer.closes, withdraw_plan, ident)
    is_open = offer.project["status"] == "active" and offer.closes > offer.opens + HOUR
    if is_open and offer.share > 0 and offer.plan["max_subscribers"] is None:
        past.offers.append(offer)


def _drawn_plans(membership: Membership, *, retires: bool) -> Node:
    """The plans of a membership, as a scenario gives them; the last one is no longer sold if it
    `retires`.
    """
    plans = []
    for plan in membership.plans:
        plans.append(plan | {"share": table("habits")["sales"][plan["name"]]})
    if retires:
        plans[-1]["status"] = "inactive"
    return Node({"plans": plans}, "")


def _limit_places(draft: Draft, offers: list[Offer]) -> None:
    """Of the memberships on sale those that sell least have few places: the first one none, the
    next one some.
    """
    left, store = [0, 20], draft.store
    for offer in sorted(offers, key=lambda offer: offer.share):
        ident = offer.plan["id"]
        members = store.subscriptions.members("plan_subscribers", ident)
        in_use = len({*members, *store.orders.members("plan_waiting", ident)})
        if in_use and left and offer.closes >= draft.now and offer.plan["interval"]:
            resources.change(
                draft, draft.get("plans", ident).changed({"max_subscribers": in_use + left.pop(0)})
            )


def move_project(draft: Draft, ident: str, to: str) -> None:
    """Move a project to a status, by the shortest way that the contract knows."""
    row, moves = draft.get("projects", ident), draft.lifecycle("Project")
    for status in path(moves, row.status, to)[1:]:
        row = resources.change_project(draft, row, moves.find(row.status, status))


def withdraw_plan(draft: Draft, ident: str) -> None:
    """A plan is not sold any more; who has it keeps it."""
    resources.change(draft, changed_plan(draft.get("plans", ident), {"status": "inactive"}, 0))


# -- webhooks and keys


def _project_id(past: Past, node: Node, slug: str) -> str:
    ident = named_uuid("project", slug)
    if ident not in past.planned["projects"]:
        raise node.fail(f"there is no project {slug!r}")
    return ident


def _opened(past: Past, rng: Random, days_old: int) -> int:
    """An office hour about so many days ago, at least two hours after the first day began."""
    wanted = min(office_hour(rng, past.end - days_old * DAY), past.end - 5 * MINUTE)
    return max(past.begun + 2 * HOUR, wanted)


def plan_webhooks(past: Past) -> None:
    """Plan the webhooks. Events are raised from the first one on.

    Their receivers, healthy, flaky or gone, answer through the engine, as they do in a sandbox
    that is used.
    """
    rng, first = past.stream("webhooks"), NEVER
    for node in past.scenario.root.each("webhooks"):
        name = node.value["key"]
        fields = node.without("key", "behaviour", "state", "days_old", "project")
        if "project" in node.value:
            fields["projectId"] = _project_id(past, node["project"], node.value["project"])
        check_request(past.rules.schemas, "WebhookCreate", fields, node)
        created = _opened(past, rng, node.get("days_old", 30))
        receiver = {
            "behaviour": node.value["behaviour"],
            "gone": created + (past.end - created) * 2 // 5,
            "until": past.end,
        }
        past.plan(created, _create_webhook, name, fields, receiver)
        if node.get("state", "active") == "inactive":
            past.plan(past.end - HOUR // 2, _silence, named_uuid("webhook", name))
        first = min(first, created)
    past.add(first, setattr, past.sandbox.origin, "raises_events", True)


def _create_webhook(draft: Draft, name: str, fields: Body, receiver: Body) -> None:
    sandbox = draft.sandbox
    secret = derived_text(sandbox.rules.secret, 32, str(sandbox.origin.seed), "webhook", name)
    webhook = new_webhook(
        draft.new("webhooks", named_uuid("webhook", name)), fields, new_key(secret.encode())
    )
    draft.put(webhook.keeping({"receiver": receiver}))


def _silence(draft: Draft, ident: str) -> None:
    """A webhook is switched off, which calls off its open deliveries."""
    draft.put(changed_webhook(draft.get("webhooks", ident), {"is_active": False}))
    draft.at(draft.now, CALLING_OFF, ident)


def plan_keys(past: Past) -> None:
    """Plan the main key, which has all scopes that a key can have, and the scenario's."""
    scopes = [scope["name"] for scope in past.rules.document.scopes if scope["assignable"]]
    rng = past.stream("keys")
    main = {
        "name": "Loja principal",
        "description": "Chave do site, com todas as permissões.",
        "scopes": scopes,
    }
    past.plan(past.begun + HOUR, _create_key, MAIN_ID, main)
    for node in past.scenario.root.each("keys"):
        _plan_key(past, rng, node)
    past.add(past.end, _use_main_key, past, past.end - MINUTE - int(rng.random() * 4 * MINUTE))


def _plan_key(past: Past, rng: Random, node: Node) -> None:
    """Plan a key, and how often it was used, until when."""
    now, ident, state = past.end, named_uuid("api_key", node.value["key"]), node.value["state"]
    fields = node.without("key", "state", "usage", "days_old", "expires_in_days")
    named = node.get("allowed_projects", [])
    fields["allowed_projects"] = [_project_id(past, node["allowed_projects"], s) for s in named]
    check_request(past.rules.schemas, "ApiKeyCreate", fields, node)
    created = _opened(past, rng, node.get("days_old", 200))
    ends = now
    if state != "active":
        ends = created + (now - created) // 2
    if state == "expired":
        fields["expires_at"] = iso(ends)
    elif "expires_in_days" in node.value:
        # to the end of the day in Brasília, three hours into the next one of UTC
        days = now // DAY + node.value["expires_in_days"]
        fields["expires_at"] = iso(days * DAY + 3 * HOUR - 1)
    past.plan(created, _create_key, ident, fields)
    if state == "inactive":
        past.plan(ends, _switch_off, ident)
    usage, last = node.get("usage", 0), ends - int(rng.random() * 5 * HOUR)
    if usage:
        past.add(now, past.store.set_usage, ident, (usage, iso(max(created, last))))


def _create_key(draft: Draft, ident: str, fields: Body) -> None:
    sandbox, projects = draft.sandbox, fields.get("allowed_projects", [])
    key = api_keys.new_key(
        draft.new("api_keys", ident),
        fields,
        pair_of(sandbox.rules.secret, sandbox.origin.seed, ident),
        projects,
        draft.now,
    )
    resources.add_key(draft, key.keeping({"user_id": draft.store.merchant.user_id}))


def _switch_off(draft: Draft, ident: str) -> None:
    resources.change_key(
        draft,
        api_keys.changed_key(draft.get("api_keys", ident), {"is_active": False}, None, draft.now),
    )


def _use_main_key(past: Past, latest: int) -> None:
    """The main key was used by every order, twice."""
    orders = len(past.store.orders)
    if orders:
        past.store.set_usage(MAIN_ID, (2 * orders, iso(latest)))
