"""A probe: one request with what it is to learn, and roles such as `{the project}` for ids."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...contract.document import Operation
from ...contract.formats import is_uuid
from .catalogue import entries_of, leaves, with_leaves
from .exchange import Answer

GIVEN, NONE, WRONG = "{the credential}", "", "verify.no.credential"
"""The credential of a request: the caller's, none, and an invalid one."""
FOREIGN = "a record, with the credential of another merchant"
QUIET = "quiet"
"""The group of probes of which a refusal is no finding: what follows finds its cause."""
SETUP = "setup"
"""The group of probes that make what others need. They have no column in the report."""
_ROLE = re.compile(r"\{(the [a-zA-Z0-9 ]+)\}")


@dataclass(frozen=True, slots=True)
class Probe:
    """A request with roles for ids (`{the project}`), sent alike to the target and to the twin.

    - `group` is its column in the report. `learns` says in words what it tries.
    - `pointer` leads to the rule of the contract.
    - `about` is the operation to which a divergence belongs, such as the creation that a read
      shows.
    - `path` is percent-encoded except for its roles. `body` is JSON, or bytes that are sent as they
      are.
    - `suspect` is the class of a divergence, if the probe knows better than the status shows.
    - `makes` is the role that the record in the answer plays from then on.
    - `narrowed`: the list has only the journey's own records.
    - `expects`: it is sent to the target only, which is to answer so, and not to the twin.
    """

    operation: Operation
    group: str
    learns: str
    pointer: str
    about: Operation
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    credential: str = GIVEN
    suspect: str = ""
    makes: str = ""
    narrowed: bool = False
    expects: int = 0


class Flaw(NamedTuple):
    """What a journey found in the answer to its last probe: the class, a clause, and what
    was expected.
    """

    kind: str
    title: str
    expected: str


class Seen(NamedTuple):
    """The answers to a probe: of the target, with status 0 if there was none, and of the twin.

    `has_departed` says whether the suspicion was confirmed.
    """

    target: Answer
    twin: Answer
    has_departed: bool = False

    @property
    def entries(self) -> list[Any]:
        """The records in the list that the target has answered."""
        return entries_of(self.target.json())

    @property
    def is_alike(self) -> bool:
        """Whether both accepted, or both refused."""
        return self.target.is_success is self.twin.is_success

    @property
    def both_accept(self) -> bool:
        """Whether both accepted."""
        return self.target.is_success and self.twin.is_success


class Departed(KeyError):
    """The records are of no use to the next journey: most often those of the target are no longer
    what the twin's are.
    """


class Names(NamedTuple):
    """The ids, or other texts, of one thing: at the target and at the twin."""

    target: str
    twin: str


class Roles:
    """The records of one journey, by roles and by ids."""

    def __init__(self) -> None:
        self._by_role: dict[str, Names] = {}
        self._of_twin: dict[str, str] = {}  # the target's texts by those of the twin
        self.own: set[str] = set()
        """Ids of the target's records that the journey made or was answered about."""

    def play(self, role: str, names: Names) -> None:
        """Set what plays a role from now on."""
        self._by_role[role] = names
        self.pair(names)

    def pair(self, names: Names) -> None:
        """Note that a text of the twin means the same as one of the target."""
        self._of_twin.setdefault(names.twin, names.target)
        self.own.add(names.target)

    def forget(self, role: str) -> None:
        """Compare a record no more: the target's state has departed from that of the twin."""
        self._of_twin.pop(self._by_role[role].twin, None)

    def role(self, twin: str) -> str | None:
        """The target's text for what the twin calls so; None if it is not known."""
        return self._of_twin.get(twin)

    def spelled(self, value: Any, party: int) -> Any:
        """A value with its roles replaced for one party: 0 is the target, 1 the twin.

        Raises KeyError for an unknown role.
        """

        def spell(leaf: Any) -> Any:
            if not isinstance(leaf, str):
                return leaf
            return _ROLE.sub(lambda found: self._by_role[found[1]][party], leaf)

        return with_leaves(value, spell)


def placeholder(role: str) -> str:
    """A role as requests contain it: `{the project}`."""
    return "{" + role + "}"


def roles_in(value: Any) -> Iterator[str]:
    """The roles that a request names."""
    return (role for leaf in leaves(value) if isinstance(leaf, str) for role in _ROLE.findall(leaf))


def is_id(value: Any) -> bool:
    """Whether a value is an identifier that servers draw."""
    return isinstance(value, str) and is_uuid(value) is not None


def costs(operation: Operation) -> bool:
    """Whether an operation may cost money or reach somebody: orders, and deliveries of webhooks."""
    return operation.method == "POST" and (
        operation.tag == "Orders" or bool({"test", "retry"} & set(operation.path.split("/")))
    )
