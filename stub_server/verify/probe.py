"""A probe: one request with what it is to learn, and roles such as `{the project}` in place of ids."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..contract.document import JSON, Operation
from .exchange import Answer

GIVEN, NONE, WRONG = "given", "none", "wrong"
"""Credentials of a request: the caller's, none, and an invalid one. Others are roles of API keys."""
_ROLE = re.compile(r"\{(the [a-zA-Z0-9 ]+)\}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


@dataclass(frozen=True, slots=True)
class Probe:
    """A request with roles for ids (`{the project}`), sent alike to the target and to both twins.

    - `operation` is None for a path or method that the contract does not have.
    - `path` is percent-encoded except for its roles. `body` is JSON, or bytes that are sent as they are.
    - `learns` says in words what it tries; `pointer` leads to the rule of the contract.
    - `suspect` is the class of a divergence, if the probe knows better than the status shows.
    - `makes` is the role that the record in the answer plays from then on.
    - `keeps`: the journey ends if target and twins differ in success, since their records differ from then on.
    - `narrowed`: the list has only the journey's own records.
    - `about` is the operation to which a divergence belongs, such as the creation that a read shows.
    - `is_checked`: the record that it makes or changes is read again.
    - `is_alone`: it is sent to the target only, and its answer is compared only with the contract.
    """

    operation: Operation | None
    method: str
    path: str
    group: str
    learns: str
    pointer: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    credential: str = GIVEN
    suspect: str = ""
    makes: str = ""
    keeps: bool = True
    narrowed: bool = False
    about: Operation | None = None
    is_checked: bool = True
    is_alone: bool = False


class Flaw(NamedTuple):
    """What a journey found in the answer to its last probe: the class, a clause, and what was expected."""

    kind: str
    title: str
    expected: str


class Seen(NamedTuple):
    """The answers to a probe: of the target, with status 0 if there was none, and of the first twin.

    The bodies are parsed; they are None if they are not JSON. `has_departed` says whether the suspicion was confirmed.
    """

    target: Answer
    twin: Answer
    body: Any
    twin_body: Any
    has_departed: bool = False

    @property
    def is_alike(self) -> bool:
        """Whether both accepted, or both refused."""
        return (200 <= self.target.status < 300) is (200 <= self.twin.status < 300)


Journey = Generator["Probe | Flaw", Seen, None]
"""Yields probes in order, on records of its own, and is sent what each was answered."""


class Names(NamedTuple):
    """The ids, or other texts, of one thing: at the target and at both twins."""

    target: str
    first: str
    second: str


class Roles:
    """The records of one journey, by roles and by ids."""

    def __init__(self) -> None:
        self._by_role: dict[str, Names] = {}
        self._by_twin: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.own: set[str] = set()
        """Ids of the target's records that the journey made or was answered about."""

    def play(self, role: str, names: Names) -> None:
        """Set what plays a role from now on."""
        self._by_role[role] = names
        self.pair(*names)

    def of(self, role: str) -> Names | None:
        """What plays a role."""
        return self._by_role.get(role)

    def pair(self, target: str, first: str, second: str) -> None:
        """Note that texts of the twins mean the same as one of the target."""
        self._by_twin[0].setdefault(first, target)
        self._by_twin[1].setdefault(second, target)
        self.own.add(target)

    def role(self, first: str, second: str) -> str | None:
        """The target's text for what both twins call so; None if it is not known."""
        found = self._by_twin[0].get(first)
        return found if found is not None and found == self._by_twin[1].get(second) else None

    def is_known(self, first: str) -> bool:
        """Whether the target's text for one of the first twin is known."""
        return first in self._by_twin[0]

    def spelled(self, value: Any, party: int) -> Any:
        """A value with its roles replaced for one party: 0 is the target. Raises KeyError for an unknown role."""
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
