"""Requests are written once, with roles such as `{the project}`, and spelled for the target and for each twin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_ROLE = re.compile(r"\{(the [a-zA-Z0-9 ]+)\}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


class Names(NamedTuple):
    """What one thing is called at the target, and at both twins."""

    target: str
    first: str
    second: str


class Roles:
    """What is known of one journey's records."""

    def __init__(self) -> None:
        self._by_role: dict[str, Names] = {}
        self._by_twin: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.own: set[str] = set()
        """Ids of the target's records that the journey made or was answered about."""

    def play(self, role: str, names: Names) -> None:
        """Have a role be something from now on."""
        self._by_role[role] = names
        self.pair(*names)

    def of(self, role: str) -> Names | None:
        """What plays a role."""
        return self._by_role.get(role)

    def pair(self, target: str, first: str, second: str) -> None:
        """The twins' texts stand for the target's."""
        self._by_twin[0].setdefault(first, target)
        self._by_twin[1].setdefault(second, target)
        self.own.add(target)

    def role(self, first: str, second: str) -> str | None:
        """What the target calls what the twins call so; None where nothing has told."""
        found = self._by_twin[0].get(first)
        return found if found is not None and found == self._by_twin[1].get(second) else None

    def is_known(self, first: str) -> bool:
        """Whether the first twin's text stands for one of the target's."""
        return first in self._by_twin[0]

    def spelled(self, value: Any, party: int) -> Any:
        """A text, list or map for one party: 0 is the target. Raises KeyError for a role that nothing plays."""
        if isinstance(value, str):
            return _ROLE.sub(lambda found: self._by_role[found[1]][party], value) if "{the" in value else value
        if isinstance(value, Mapping):
            return {name: self.spelled(inner, party) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.spelled(inner, party) for inner in value]
        return value


def placeholder(role: str) -> str:
    """A role as requests contain it: `{the project}`."""
    return "{" + role + "}"


def roles_in(value: Any) -> Iterator[str]:
    """The roles that a request names."""
    if isinstance(value, str):
        yield from _ROLE.findall(value)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from roles_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from roles_in(inner)


def is_id(value: Any) -> bool:
    """Whether a value is an identifier that servers draw."""
    return isinstance(value, str) and _UUID(value) is not None
