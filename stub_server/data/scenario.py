"""A scenario: what a sandbox is seeded with, parsed from YAML and checked against its schema."""

from pathlib import Path
from typing import NamedTuple

from ..contract.source import read_text
from ..core.shipped import FIXTURES
from .files import Node, ScenarioError, parse_node, read_node

MOST = 1_000_000  # orders, and customers


class Scenario(NamedTuple):
    """A parsed scenario. `root` is the whole file, of which others read projects, keys, webhooks
    and records.

    `drawn` is how many projects to draw, 0 where they are named. `personas` are by name; `owing`
    leaves every customer past due. With `every_state` there is something in each state that a
    screen may have to show.
    """

    name: str
    root: Node
    customers: int
    orders: int
    pending: int
    drawn: int
    personas: dict[str, Node]
    owing: bool
    every_state: bool


def read_scenario(name: str) -> str:
    """The text of the scenario of this name, or of the file if the name has a `/` or ends in
    `.yaml`.

    Raises ScenarioError for an unknown name, ContractError for a file that cannot be read.
    """
    path = Path(name)
    if not is_file(name):
        path = FIXTURES / "scenarios" / f"{name}.yaml"
        known = known_scenarios()
        if name not in known:
            raise ScenarioError(
                f"There is no scenario {name!r}. Known ones are {', '.join(known)}; a file of your"
                f" own is given by its path, such as ./{name}.yaml."
            )
    return read_text(path, path.name or str(path))


def known_scenarios() -> list[str]:
    """The scenarios that everybody may ask for by name."""
    return sorted(file.stem for file in (FIXTURES / "scenarios").glob("*.yaml"))


def parse_scenario(name: str, text: str) -> Scenario:
    """The scenario in a text that was read by this name. Raises ContractError, ScenarioError."""
    is_users = is_file(name)
    path = Path(name if is_users else f"{name}.yaml")
    root = parse_node(text, path.name, "Scenario", is_users=is_users)
    scale = root.get("scale", 1)
    orders, customers = _times(root, "orders", scale), _times(root, "customers", scale)
    drawn = root.get("projects", 0)
    return Scenario(
        name=path.stem,
        root=root,
        customers=customers,
        orders=orders,
        pending=round(root.get("pending", 0) * scale),
        drawn=drawn if isinstance(drawn, int) else 0,
        personas=_personas(root),
        owing="everybody" in root.value,
        every_state=root.get("every_state", False),
    )


def _times(root: Node, name: str, scale: float) -> int:
    """A number of records times the scale. Raises ScenarioError for more than fit."""
    number: int = round(root.get(name, 0) * scale)
    if number > MOST:
        raise root[name].fail(f"times scale is {number}; at most {MOST} {name} fit")
    return number


def is_file(name: str) -> bool:
    """Whether a scenario is named by the path of a file."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def _personas(root: Node) -> dict[str, Node]:
    """The personas by name, from files of their own or from the scenario. Raises ScenarioError."""
    folder = FIXTURES / "personas"
    found: dict[str, Node] = {}
    for node in root.each("personas"):
        if isinstance(node.value, str):
            name, path = node.value, folder / f"{node.value}.yaml"
            if not path.is_file():
                known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
                raise node.fail(f"there is no persona {name!r}; known ones are {known}")
            node = read_node(path, "Persona")
        else:
            name = node.value["name"]
        if name in found:
            raise node.fail(f"the name {name!r} appears twice")
        found[name] = node
    return found
