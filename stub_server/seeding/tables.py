"""For reading one YAML table and saying, with file and key, what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class CatalogueError(ValueError):
    """A catalogue table is missing, unreadable or wrong; the message starts with file and key."""


class _Loader(yaml.CSafeLoader):
    """The C parser, which reads ten times faster than safe_load. Dates stay the text that they are in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_TEXT, _LIST, _MAP, _MERGE = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map", "merge"))
# What JSON has no type for is an error, with its line.
_Loader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.CSafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] not in ("timestamp", "binary", "set", "omap", "pairs")
}


class _Maker:
    """Makes the value of a text as PyYAML would, in half its time."""

    def __init__(self, text: bytes) -> None:
        self._loader = _Loader(text)
        self._made: dict[yaml.Node, Any] = {}  # what an alias repeats is made once

    def value(self) -> Any:
        try:
            root = self._loader.get_single_node()
            return None if root is None else self._value(root)
        finally:
            self._loader.dispose()

    def _value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode) and node.tag == _TEXT:
            return node.value
        if node not in self._made:
            self._made[node] = self._make(node)
        return self._made[node]

    def _make(self, node: yaml.Node) -> Any:
        # Lists and maps with plain keys are most of every table; what is rarer is left to PyYAML's constructors.
        if isinstance(node, yaml.SequenceNode) and node.tag == _LIST:
            return [self._value(child) for child in node.value]
        if isinstance(node, yaml.MappingNode) and node.tag == _MAP and all(_is_plain(key) for key, _ in node.value):
            return {self._value(key): self._value(child) for key, child in node.value}
        return self._loader.construct_object(node, deep=True)


def _is_plain(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.tag != _MERGE


@dataclass(frozen=True, slots=True)
class Node:
    """A value inside a table, together with the place it stands at."""

    value: Any
    file: str
    key: str = ""

    @classmethod
    def load(cls, path: Path) -> Node:
        """The root of one table. Raises CatalogueError if the file cannot be read or parsed."""
        try:
            text = path.read_bytes()
        except OSError as error:
            raise CatalogueError(f"{path.name}: cannot be read: {error.strerror}") from error
        return cls.parse(text, path.name)

    @classmethod
    def parse(cls, text: bytes, file: str) -> Node:
        """The root of the table in a text. Raises CatalogueError if it cannot be parsed."""
        try:
            value = _Maker(text).value()
        except yaml.MarkedYAMLError as error:
            line = "" if error.problem_mark is None else f":{error.problem_mark.line + 1}"
            raise CatalogueError(f"{file}{line}: is not YAML that can be read here: {error.problem}") from error
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise CatalogueError(f"{file}: is not YAML: {' '.join(str(error).split())}") from error
        return cls(value, file)

    def fail(self, reason: str) -> CatalogueError:
        return CatalogueError(f"{self.file}: {self.key or '(root)'}: {reason}")

    def __getitem__(self, name: str) -> Node:
        if not isinstance(self.value, dict):
            raise self.fail("must be a map")
        if name not in self.value:
            raise self.fail(f"lacks {name!r}")
        return Node(self.value[name], self.file, f"{self.key}.{name}" if self.key else name)

    def has(self, name: str) -> bool:
        return isinstance(self.value, dict) and name in self.value

    def entries(self) -> Iterator[tuple[Any, Node]]:
        """The entries of a non-empty map, in file order. Keys may be numbers (prices)."""
        if not isinstance(self.value, dict) or not self.value:
            raise self.fail("must be a map with at least one entry")
        for name, value in self.value.items():
            yield name, Node(value, self.file, f"{self.key}.{name}" if self.key else str(name))

    def items(self) -> Iterator[Node]:
        """The items of a non-empty list."""
        if not isinstance(self.value, list) or not self.value:
            raise self.fail("must be a list with at least one item")
        for position, value in enumerate(self.value):
            yield Node(value, self.file, f"{self.key}[{position}]")

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.fail(f"must be a text, not {self.value!r}")
        return self.value

    def digits(self, shortest: int, longest: int) -> str:
        text = self.text()
        if not (text.isascii() and text.isdigit() and shortest <= len(text) <= longest):
            raise self.fail(f"must be a text of {shortest} to {longest} digits, not {text!r}")
        return text

    def number(self, low: float, high: float) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)) or not low <= self.value <= high:
            raise self.fail(f"must be a number from {_plain(low)} to {_plain(high)}, not {self.value!r}")
        return float(self.value)

    def cents(self) -> int:
        """A price in reais as whole cents."""
        return to_cents(self.value, self)

    def weights(self) -> tuple[tuple[str, float], ...]:
        """A map of name to weight."""
        return tuple((str(name), node.number(0.0001, 1000)) for name, node in self.entries())

    def triple(self) -> tuple[Node, Node, Node]:
        parts = tuple(self.items())
        if len(parts) != 3:
            raise self.fail("must be a list of three")
        return parts[0], parts[1], parts[2]

    def texts(self) -> tuple[str, ...]:
        return tuple(item.text() for item in self.items())


def _plain(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


def to_cents(reais: Any, place: Node) -> int:
    """Reais with at most two decimals as whole cents."""
    if isinstance(reais, bool) or not isinstance(reais, (int, float)) or not 0 < reais < 1_000_000:
        raise place.fail(f"must be a price in reais, not {reais!r}")
    cents = round(reais * 100)
    if abs(reais * 100 - cents) > 1e-6:
        raise place.fail(f"has more than two decimals: {reais!r}")
    return cents
