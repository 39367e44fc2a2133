"""One request, and what it is to learn."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..contract.document import JSON, Operation
from .exchange import Answer

GIVEN, NONE, WRONG = "given", "none", "wrong"
"""Credentials of a request: the caller's, none at all, one that nobody issued. Others are roles of API keys."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A request with roles for ids (`{the project}`), sent alike to the target and to both twins.

    `operation` is None for a path or method that the contract does not have; `path` is percent-encoded but for roles.
    `body` is JSON, or bytes sent as they are. `learns` says in words what it tries, `pointer` is the line of the
    contract that says what must come. `suspect` is the class of a status that departs, where the probe knows it.
    `makes` is the role that the record of the answer plays from then on. With `keeps` the journey ends where the
    target's status departs, as its records are no longer what the twins' are. A list that is `narrowed` has no other
    records than the journey's. What departs is told of `about`, such as the creation that a read shows, if it is given.
    What it makes or changes is read again, if it `is_checked`.
    One that `is_alone` is sent to the target and to no twin: its answer is held to the contract alone.
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
    """What a journey itself found in the answer to its last probe: the class, a sentence, and what was expected."""

    kind: str
    title: str
    expected: str


class Seen(NamedTuple):
    """What a probe was answered: by the target, whose status 0 is no answer, and by the first twin.

    The bodies are parsed, None where they are no JSON. It has departed if it differs in what the probe suspects.
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


Steps = Generator["Probe | Flaw", Seen, None]


@dataclass(slots=True)
class Journey:
    """Probes in order, on records of its own. `operations` are the ids of those that it is about."""

    name: str
    steps: Steps
    operations: frozenset[str] = field(default_factory=frozenset)
