"""A scenario: what a world is to hold. Read from YAML, checked, and explained where it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..kernel.record import Body
from .tables import CatalogueError, Node

MOST_ORDERS = 1_000_000
STORIES = (
    "none", "pending", "expired", "canceled", "failed", "refunded", "partly", "once",
    "trial", "active", "past_due", "ending", "left", "lapsed", "loyal", "spender", "hundreds",
    "leap_month", "leap_year",
)  # fmt: skip
_MERCHANT = {"name", "city"}
_TOP = {
    "description", "merchant", "months", "scale", "customers", "orders", "pending", "projects", "keys", "webhooks",
    "personas", "everybody", "records",
}  # fmt: skip
_PROJECT = {"slug", "status", "share", "plans", "stopped_days_ago"}
_KEY = {"key", "state", "usage", "days_old"}
_HOOK = {"key", "behaviour", "days_old", "project"}
RECORDS = ("projects", "plans", "products", "customers", "orders")


class ScenarioError(ValueError):
    """A scenario is unknown, unreadable or wrong; the message has file, key and reason."""


class ProjectSpec(NamedTuple):
    """A project of the catalogue by slug. `plans` are PlanCreate bodies without projectId, with a `share` each."""

    slug: str
    status: str
    share: float
    plans: tuple[tuple[Body, float], ...]
    stopped_days_ago: int
    node: Node


class KeySpec(NamedTuple):
    """An API key. `state` is active, inactive or expired; `fields` an ApiKeyCreate whose projects are slugs."""

    key: str
    state: str
    usage: int
    days_old: int
    fields: Body
    node: Node


class HookSpec(NamedTuple):
    """A webhook. `behaviour` is healthy, flaky or gone; `fields` a WebhookCreate without projectId."""

    key: str
    behaviour: str
    days_old: int
    project: str | None
    fields: Body
    node: Node


class PersonaSpec(NamedTuple):
    """A named customer: a CustomerCreate with an id of its own or one made from the name, and a story."""

    name: str
    story: str
    fields: Body
    node: Node


class RecordSpec(NamedTuple):
    """One explicit record as it was written."""

    table: str
    fields: Body
    node: Node


class Scenario(NamedTuple):
    """All of it. `projects` is a number of drawn ones or the ones named; `owing` leaves every customer past due."""

    name: str
    merchant: tuple[str, str]
    months: int
    customers: int
    orders: int
    pending: int
    projects: int | tuple[ProjectSpec, ...]
    keys: tuple[KeySpec, ...]
    webhooks: tuple[HookSpec, ...]
    personas: tuple[PersonaSpec, ...]
    owing: bool
    records: tuple[RecordSpec, ...]
    root: Node


def read_scenario(fixtures: Path, name: str) -> bytes:
    """The text of the scenario of this name, or of the file if the name has a `/` or ends in `.yaml`.

    Raises ScenarioError.
    """
    folder = fixtures / "scenarios"
    path = Path(name)
    if not _is_file(name):
        path = folder / f"{name}.yaml"
        known = sorted(file.stem for file in folder.glob("*.yaml"))
        if name not in known:
            raise ScenarioError(
                f"There is no scenario {name!r}. Known ones are {', '.join(known)}; a file of your own is given by its "
                f"path, such as ./{name}.yaml."
            )
    try:
        return path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{path.name}: cannot be read: {error.strerror}") from None


def parse_scenario(fixtures: Path, name: str, text: bytes) -> Scenario:
    """The scenario in a text that was read by this name. Raises ScenarioError."""
    path = Path(name) if _is_file(name) else Path(f"{name}.yaml")
    try:
        return _scenario(Node.parse(text, path.name), path.stem, fixtures / "personas")
    except CatalogueError as error:
        raise ScenarioError(str(error)) from None


def _is_file(name: str) -> bool:
    return "/" in name or name.endswith((".yaml", ".yml"))


def _scenario(root: Node, name: str, personas: Path) -> Scenario:
    _only(root, _TOP)
    merchant = root["merchant"]
    _only(merchant, _MERCHANT)
    scale = _number(root, "scale", 1, 0, 1000)
    records = _optional(root, "records")
    return Scenario(
        name=name,
        merchant=(merchant["name"].text(), merchant["city"].text()),
        months=int(_number(root, "months", 12, 1, 60)),
        customers=round(_number(root, "customers", 0, 0, MOST_ORDERS) * scale),
        orders=_orders(root, scale),
        pending=round(_number(root, "pending", 0, 0, 1000) * scale),
        projects=_projects(root),
        keys=tuple(_key(node) for node in _list(root, "keys")),
        webhooks=tuple(_hook(node) for node in _list(root, "webhooks")),
        personas=_personas(root, personas),
        owing=root.has("everybody") and _choice(root["everybody"], ("owes",)) == "owes",
        records=tuple(_records(records)) if records is not None else (),
        root=root,
    )


def _orders(root: Node, scale: float) -> int:
    orders = round(_number(root, "orders", 0, 0, MOST_ORDERS) * scale)
    if orders > MOST_ORDERS:
        raise root["orders"].fail(f"times scale is {orders}; at most {MOST_ORDERS} orders fit")
    return orders


def _projects(root: Node) -> int | tuple[ProjectSpec, ...]:
    node = _optional(root, "projects")
    if node is None:
        return 0
    if not isinstance(node.value, list):
        return _whole(node, 0, 200)
    specs = []
    for item in node.items():
        _only(item, _PROJECT)
        status = _choice(item["status"], ("draft", "active", "suspended", "archived"))
        specs.append(
            ProjectSpec(
                slug=item["slug"].text(),
                status=status,
                share=_number(item, "share", 1, 0, 1000),
                plans=tuple(_plan(plan) for plan in _list(item, "plans")),
                stopped_days_ago=int(_number(item, "stopped_days_ago", 60, 1, 1000)),
                node=item,
            )
        )
    _different(specs, lambda spec: spec.slug, "slug")
    return tuple(specs)


def _plan(node: Node) -> tuple[Body, float]:
    body = _map(node)
    share = _number(node, "share", 1, 0, 1000)
    return {name: value for name, value in body.items() if name != "share"}, share


def _key(node: Node) -> KeySpec:
    state = _choice(node["state"], ("active", "inactive", "expired"))
    fields = {name: value for name, value in _map(node).items() if name not in _KEY}
    return KeySpec(
        node["key"].text(),
        state,
        int(_number(node, "usage", 0, 0, 10**9)),
        int(_number(node, "days_old", 200, 1, 10_000)),
        fields,
        node,
    )


def _hook(node: Node) -> HookSpec:
    behaviour = _choice(node["behaviour"], ("healthy", "flaky", "gone"))
    fields = {name: value for name, value in _map(node).items() if name not in _HOOK}
    project = node["project"].text() if node.has("project") else None
    return HookSpec(node["key"].text(), behaviour, int(_number(node, "days_old", 30, 1, 365)), project, fields, node)


def _personas(root: Node, folder: Path) -> tuple[PersonaSpec, ...]:
    found = []
    for node in _list(root, "personas"):
        if isinstance(node.value, str):
            path = folder / f"{node.value}.yaml"
            if not path.is_file():
                known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
                raise node.fail(f"there is no persona {node.value!r}; known ones are {known}")
            found.append(_persona(Node.load(path), node.value))
        else:
            found.append(_persona(node, node["name"].text() if node.has("name") else ""))
    _different(found, lambda spec: spec.name, "name")
    return tuple(found)


def _persona(node: Node, name: str) -> PersonaSpec:
    _only(node, {"name", "story", "about", "customer"})
    if not name:
        raise node.fail("lacks 'name'")
    return PersonaSpec(name, _choice(node["story"], STORIES), _map(node["customer"]), node)


def _records(root: Node) -> Iterable[RecordSpec]:
    _only(root, set(RECORDS))
    for table in RECORDS:
        for node in _list(root, table):
            yield RecordSpec(table, _map(node), node)


def _only(node: Node, known: set[str]) -> None:
    for name in _map(node):
        if name not in known:
            raise node.fail(f"{name!r} is unknown; known are {', '.join(sorted(known))}")


def _map(node: Node) -> dict[str, Any]:
    if not isinstance(node.value, dict):
        raise node.fail("must be a map")
    for name in node.value:
        if not isinstance(name, str):
            raise node.fail(f"the name {name!r} must be a text: put it in quotes")
    return dict(node.value)


def _optional(node: Node, name: str) -> Node | None:
    return node[name] if node.has(name) and node[name].value is not None else None


def _list(node: Node, name: str) -> Iterable[Node]:
    inner = _optional(node, name)
    if inner is None or inner.value == []:
        return ()
    return inner.items()


def _number(node: Node, name: str, default: float, low: float, high: float) -> float:
    inner = _optional(node, name)
    return default if inner is None else inner.number(low, high)


def _whole(node: Node, low: int, high: int) -> int:
    if not isinstance(node.value, int):
        raise node.fail("must be a whole number, or a list of projects")
    return int(node.number(low, high))


def _choice(node: Node, known: tuple[str, ...]) -> str:
    text = node.text()
    if text not in known:
        raise node.fail(f"{text!r} is not one of {', '.join(known)}")
    return text


def _different(items: Iterable[Any], of: Callable[[Any], str], what: str) -> None:
    seen = set()
    for item in items:
        if of(item) in seen:
            raise item.node.fail(f"the {what} {of(item)!r} stands twice")
        seen.add(of(item))
