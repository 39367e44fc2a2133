"""A scenario: what a sandbox is seeded with, parsed from YAML and checked against its schema.

Members that a request could have are checked against the contract's request schemas. An error names
file and key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from ..contract.formats import READ, Formats
from ..contract.schema import MOST_EXPLAINED, Schemas
from ..contract.source import (
    MOST_BYTES,
    containers,
    fixture,
    json_path,
    line_in,
    parse,
    parse_bounded,
    read_text,
)
from ..core.problem import UnusableInput
from ..core.record import Body, has_more_values, without
from ..core.shipped import FIXTURES

MOST = 1_000_000  # orders, and customers
_MOST_ERRORS = 10  # that are named at once


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
    files = {file.stem: file for file in sorted((FIXTURES / "personas").glob("*.yaml"))}
    found: dict[str, Node] = {}
    for node in root.each("personas"):
        if isinstance(node.value, str):
            name = node.value
            if name not in files:
                raise node.fail(f"there is no persona {name!r}; known ones are {', '.join(files)}")
            node = read_node(files[name], "Persona")
        else:
            name = node.value["name"]
        if name in found:
            raise node.fail(f"the name {name!r} appears twice")
        found[name] = node
    return found


class ScenarioError(UnusableInput):
    """A scenario or a catalogue table is unknown or invalid: gives file, key and reason."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a file with its place there, for error messages."""

    value: Any
    file: str
    text: str = field(default="", repr=False)
    steps: tuple[str | int, ...] = ()

    def fail(self, reason: str) -> ScenarioError:
        """The error of this value: file and line, key, and the reason."""
        where, steps = self.file, list(self.steps)
        line = line_in(self.text, steps)
        if line is not None:
            where += f":{line}"
        key = json_path(steps).removeprefix("$").removeprefix(".") or "(root)"
        return ScenarioError(f"{where}: {key}: {reason}")

    def __getitem__(self, step: Any) -> Node:
        """The node of a member or an item."""
        return Node(self.value[step], self.file, self.text, (*self.steps, step))

    def get(self, name: str, default: Any) -> Any:
        """The value of a member; `default` if it is absent or null."""
        value = self.value.get(name)
        if value is None:
            return default
        return value

    def each(self, name: str) -> Iterator[Node]:
        """The items of a member that is a list; none if it is absent or something else."""
        value = self.value.get(name)
        if isinstance(value, list):
            for number in range(len(value)):
                yield self[name][number]

    def without(self, *names: str) -> Body:
        """The members but those of these names."""
        return without(self.value, *names)


@cache
def _shapes() -> Schemas:
    """What `schemas.yaml` says of files."""
    return Schemas(fixture("schemas.yaml"), Formats(READ, READ))


def read_node(path: Path, shape: str) -> Node:
    """The data of a file, checked against the schema named `shape`.

    Raises ContractError, ScenarioError.
    """
    return parse_node(read_text(path, path.name), path.name, shape)


def parse_node(text: str, file: str, shape: str, *, is_users: bool = False) -> Node:
    """A text of a shape, from a file of this name, which may be a user's.

    Raises ContractError, ScenarioError.
    """
    value = parse_bounded(text, file) if is_users else parse(text, file)
    root = Node(value, file, text)
    if is_users and sum(map(_length, containers([value]))) > MOST_BYTES:
        raise root.fail(f"writes out more than {MOST_BYTES:,} characters")
    schema = _shapes().component(shape, request=True)
    if is_users and has_more_values(value, MOST_EXPLAINED) and not schema.is_valid(value):
        raise root.fail(f"is no {shape}, and has more than {MOST_EXPLAINED:,} values: try a part")
    _refuse(root, schema.iter_errors(value))
    return root


def check_request(schemas: Schemas, name: str, body: Body, node: Node) -> None:
    """Check a body from a node against a schema of the contract's requests.

    Raises ScenarioError.
    """
    errors = schemas.component(name, request=True).iter_errors(body)
    _refuse(node, errors, f" (by {name} of the contract)")


def _refuse(node: Node, errors: Iterable[Any], by: str = "") -> None:
    """Raises ScenarioError with the first errors in the value of a node, a line for each, if there
    are any: to find a line, the whole text is read.
    """
    lines: dict[str, None] = {}
    for error in islice(errors, _MOST_ERRORS):
        # of a choice that nothing fits, the violation that is nearest to a member
        choices = chain.from_iterable(getattr(error.kind, "context", ()))
        nearest = max(choices, key=lambda each: len(each.instance_path), default=error)
        place = node
        for step in nearest.instance_path:
            place = place[step]
        lines[str(place.fail(_reason(nearest) + by))] = None
    if lines:
        raise ScenarioError("\n".join(lines))


def _reason(error: Any) -> str:
    """A violation in words. The validator's own name two of many values."""
    if error.kind.name == "enum":
        choices = ", ".join(map(str, error.kind.options)).replace("None", "null")
        return f"{error.instance!r} is not one of {choices}"
    return str(error.message[:300])


def _length(value: Any) -> float:
    """How many characters a value is written out to, if `expand` does so."""
    length = value.get("length") if isinstance(value, dict) and "repeat" in value else 0
    return min(max(0, length), 100_000) if isinstance(length, (int, float)) else 0


def expand(node: Node) -> Any:
    """The value with every `{repeat: text, length: n}` written out to n characters.

    Raises ScenarioError.
    """
    value = node.value
    if isinstance(value, dict):
        if value.keys() == {"repeat", "length"}:
            _refuse(node, _shapes().component("Repeated", request=True).iter_errors(value))
            text, length = value["repeat"], int(value["length"])
            return (text * (length // len(text) + 1))[:length]
        return {name: expand(node[name]) for name in value}
    if isinstance(value, list):
        return [expand(node[place]) for place in range(len(value))]
    return value
