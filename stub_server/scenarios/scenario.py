"""A scenario: what a sandbox is seeded with, parsed from YAML and checked against its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..contract.source import ContractError, check_bounds, read_text
from ..kernel.record import Body
from .files import Files, Node, ScenarioError, UnknownScenario

__all__ = ["ScenarioError", "UnknownScenario"]
MOST = 1_000_000  # orders, and customers
RECORDS = ("projects", "plans", "products", "customers", "orders")


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
    """One explicit record as written in the file."""

    table: str
    fields: Body
    node: Node


class Scenario(NamedTuple):
    """A parsed scenario. `projects` is how many to draw, or those named; `owing` leaves every customer past due."""

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


def read_scenario(fixtures: Path, name: str) -> str:
    """The text of the scenario of this name, or of the file if the name has a `/` or ends in `.yaml`.

    Raises ScenarioError.
    """
    path = Path(name)
    if not _is_file(name):
        path = fixtures / "scenarios" / f"{name}.yaml"
        known = known_scenarios(fixtures)
        if name not in known:
            raise UnknownScenario(
                f"There is no scenario {name!r}. Known ones are {', '.join(known)}; a file of your own is given by its "
                f"path, such as ./{name}.yaml."
            )
    try:
        return read_text(path, path.name)
    except ContractError as error:
        raise ScenarioError(str(error)) from None


def known_scenarios(fixtures: Path) -> list[str]:
    """The scenarios that everybody may ask for by name."""
    return sorted(file.stem for file in (fixtures / "scenarios").glob("*.yaml"))


def parse_scenario(files: Files, name: str, text: str) -> Scenario:
    """The scenario in a text that was read by this name. Raises ScenarioError."""
    path = Path(name) if _is_file(name) else Path(f"{name}.yaml")
    if _is_file(name):
        try:
            check_bounds(text, path.name)
        except ContractError as error:
            raise ScenarioError(str(error)) from None
    root = files.parse(text, path.name, "Scenario")
    scale = root.get("scale", 1)
    orders, customers = (_times(root, name, scale) for name in ("orders", "customers"))
    return Scenario(
        name=path.stem,
        merchant=(root.value["merchant"]["name"], root.value["merchant"]["city"]),
        months=root.get("months", 12),
        customers=customers,
        orders=orders,
        pending=round(root.get("pending", 0) * scale),
        projects=_projects(files, root),
        keys=tuple(_key(node) for node in _list(root, "keys")),
        webhooks=tuple(_hook(node) for node in _list(root, "webhooks")),
        personas=_personas(files, root),
        owing="everybody" in root.value,
        records=tuple(_records(root)),
        root=root,
    )


def _times(root: Node, name: str, scale: float) -> int:
    """A number of records times the scale. Raises ScenarioError for more than fit."""
    number: int = round(root.get(name, 0) * scale)
    if number > MOST:
        raise root[name].fail(f"times scale is {number}; at most {MOST} {name} fit")
    return number


def _is_file(name: str) -> bool:
    return "/" in name or name.endswith((".yaml", ".yml"))


def _list(root: Node, name: str) -> Iterable[Node]:
    return root[name].items() if name in root.value else ()


def _projects(files: Files, root: Node) -> int | tuple[ProjectSpec, ...]:
    if root.get("projects", None) is None:
        return 0
    node = root["projects"]
    if not isinstance(node.value, list):
        files.check(node, "ScenarioCount")
        return int(node.value)
    files.check(node, "ScenarioProjects")
    specs = [
        ProjectSpec(
            slug=item.value["slug"],
            status=item.value["status"],
            share=item.get("share", 1),
            plans=tuple((plan.without("share"), plan.get("share", 1)) for plan in _list(item, "plans")),
            stopped_days_ago=item.get("stopped_days_ago", 60),
            node=item,
        )
        for item in node.items()
    ]
    _different(specs, lambda spec: spec.slug, "slug")
    return tuple(specs)


def _key(node: Node) -> KeySpec:
    fields = node.without("key", "state", "usage", "days_old")
    return KeySpec(
        node.value["key"], node.value["state"], node.get("usage", 0), node.get("days_old", 200), fields, node
    )


def _hook(node: Node) -> HookSpec:
    fields, project = node.without("key", "behaviour", "days_old", "project"), node.get("project", None)
    return HookSpec(node.value["key"], node.value["behaviour"], node.get("days_old", 30), project, fields, node)


def _personas(files: Files, root: Node) -> tuple[PersonaSpec, ...]:
    folder = files.folder / "personas"
    found = []
    for node in _list(root, "personas"):
        if isinstance(node.value, str):
            path = folder / f"{node.value}.yaml"
            if not path.is_file():
                known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
                raise node.fail(f"there is no persona {node.value!r}; known ones are {known}")
            found.append(_persona(files.read(path, "Persona"), node.value))
        else:
            files.check(node, "Persona")
            found.append(_persona(node, node.get("name", "")))
    _different(found, lambda spec: spec.name, "name")
    return tuple(found)


def _persona(node: Node, name: str) -> PersonaSpec:
    if not name:
        raise node.fail("lacks 'name'")
    return PersonaSpec(name, node.value["story"], node.value["customer"], node)


def _records(root: Node) -> Iterable[RecordSpec]:
    if root.get("records", None) is not None:
        for table in RECORDS:
            for node in _list(root["records"], table):
                yield RecordSpec(table, node.value, node)


def _different(items: Iterable[Any], of: Callable[[Any], str], what: str) -> None:
    seen = set()
    for item in items:
        if of(item) in seen:
            raise item.node.fail(f"the {what} {of(item)!r} appears twice")
        seen.add(of(item))
