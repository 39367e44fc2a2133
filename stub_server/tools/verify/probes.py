"""A probe: one request with what it is to learn, and roles such as `{the project}` for ids; and
what builds probes.
"""

import re
from collections.abc import Container, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...contract.document import Operation
from ...contract.formats import is_uuid
from ...core.record import Body
from .catalogue import (
    Catalogue,
    Resource,
    Steps,
    body_of,
    leaves,
    path_names,
    pointer_of,
    role_of,
    with_leaves,
)
from .exchange import Answer
from .options import Options
from .variants import CNPJ, Variants, uneven

GIVEN, NONE, WRONG = "{the credential}", "", "verify.no.credential"
"""The credential of a request: the caller's, none, and an invalid one."""
FOREIGN = "a record, with the credential of another merchant"
QUIET = "quiet"
"""The group of probes of which a refusal is no finding: what follows finds its cause."""
MEMBERS = {"the public key": "the api key"}
"""Roles of members of records, by those of the records."""
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
    def is_alike(self) -> bool:
        """Whether both accepted, or both refused."""
        return self.target.is_success is self.twin.is_success

    @property
    def both_accept(self) -> bool:
        """Whether both accepted."""
        return self.target.is_success and self.twin.is_success


class Departed(Exception):
    """The target's records are no longer what the twin's are."""


PAUSE = 2.0
"""Asked for seconds, a walk waits: a change is dated then later than what it changes."""
Asked = Probe | Flaw | float
Journey = Generator[Asked, Seen, None]
"""Yields probes in order, on records of its own, and is sent what each was answered."""


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


class Builder:
    """One for each chain of journeys, which share records:

    `present` has the roles that are played.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        variants: Variants,
        options: Options,
        closed: Container[str],
    ) -> None:
        """`closed` are the operationIds out of reach."""
        self.catalogue, self.variants = catalogue, variants
        self.document = catalogue.document
        self.present: Body = {}
        """The roles that are played, with the bodies that made the records."""
        self.departed: set[str] = set()
        """Those of records that one side alone has changed."""
        self.is_lasting = False
        """Whether the journeys are about records of which a run makes few."""
        self.other = options.other
        """The credential of another merchant."""
        self._of_parts: dict[Steps, str] = {}
        self._options, self._closed = options, closed

    def begin_anew(self) -> None:
        """Let the next journey make records of its own, whose names no earlier one has."""
        self.present.clear()
        self.departed.clear()
        self.variants.begin_anew()

    def may(self, operation: Operation) -> bool:
        """Whether the options and the credential allow an operation to succeed."""
        if costs(operation) and not self._options.charges:
            return False
        return self._options.sends(operation) and operation.id not in self._closed

    def resource_of(self, operation: Operation) -> Resource | None:
        """The kind of record that an operation makes, or whose id is in its path."""
        for resource in self.catalogue.resources.values():
            if operation in resource.creates or f"{{{resource.key}}}" in operation.path:
                return resource
        return None

    def changed_by(self, operation: Operation) -> Resource | None:
        """The kind of record that an operation updates."""
        resource = self.resource_of(operation)
        return resource if resource is not None and operation == resource.update else None

    def assignable(self) -> list[str]:
        """The scopes that an API key may have."""
        return [scope["name"] for scope in self.document.scopes if scope["assignable"]]

    def reads_about(self, resource: Resource) -> list[Operation]:
        """What reads a record, and what is below it, such as its statistics."""
        found = []
        for each in self.document.operations.values():
            if each.method == "GET" and path_names(each) == [resource.key] and self.may(each):
                found.append(each)
        return found

    def write(
        self, operation: Operation, body: Any, learns: str, pointer: str = "", **more: Any
    ) -> Probe:
        """A request with a body; a record that it creates is another one of its kind."""
        kind = self.catalogue.made_by(operation)
        asked = {"group": "accepts", "makes": f"{kind.role} more" if kind else "", **more}
        return self.probe(
            operation,
            learns=learns,
            pointer=pointer or body_of(operation),
            body=body,
            **asked,
        )

    def path(self, operation: Operation, **others: str) -> str:
        """The path with roles for ids; `others` are values of path parameters, percent-encoded."""
        names = path_names(operation)
        return operation.at_ids(
            {name: others.get(name, placeholder(role_of(name))) for name in names}
        )

    def kind_of(self, role: str) -> Resource | None:
        """The kind of record that plays a role, such as `the plan more`, or has a member that
        plays it.
        """
        role = MEMBERS.get(role, role)
        for kind in self.catalogue.resources.values():
            if f"{role} ".startswith(f"{kind.role} "):
                return kind
        return None

    def named_by(self, member: str) -> str:
        """The role whose id a member has, such as `projectId`, or whose ids, such as `planIds` and
        `allowed_projects`; empty for other members.
        """
        stem = member.rpartition("_")[2].removesuffix("s").removesuffix("Id")
        kind = self.catalogue.resources.get(f"{stem}Id")
        return kind.role if kind is not None and member.endswith(("Id", "s")) else ""

    def needs(self, operation: Operation) -> list[Resource]:
        """The kinds of records that a request names, each after those that it needs itself."""
        found: list[Resource] = []
        for kind in map(self.kind_of, roles_in([self.path(operation), self.body(operation)])):
            if kind is not None:
                found += [*self.needs(kind.create), kind]
        return [*{kind.key: kind for kind in found}.values()]

    def properties(self, operation: Operation) -> Any:
        """The schemas of the members of a body, by their names."""
        schema = self.document.resolve(operation.body or {})
        return schema.get("properties", {})

    def options(self, operation: Operation | None, name: str) -> list[Any]:
        """The values that the contract lists for a member of a body, or for its entries; none
        without an operation.
        """
        if operation is None:
            return []
        node = self.document.resolve(self.properties(operation).get(name, {}))
        if node.get("type") == "boolean":
            return [True, False]
        return self.variants.options(self.document.resolve(node.get("items", node)))

    def harmless(self, operation: Operation, body: Any) -> Any:
        """The body with a webhook that, if it is active, hears only the run's own project."""
        if (
            not isinstance(body, dict)
            or not {"is_active", "url", "projectId"} <= self.properties(operation).keys()
        ):
            return body
        if body.get("projectId", "") is None:
            return {**body, "is_active": False}
        if operation.method == "POST" or body.get("is_active") is True:
            return {"projectId": "{the project}", **body}
        return body

    def body(self, operation: Operation) -> Any:
        """The first example of the contract for an operation, with roles and new values; None
        without a body.
        """
        return None if operation.body is None else self.examples(operation)[0]

    def examples(self, operation: Operation) -> list[Any]:
        """The examples of the contract, with roles and new values."""
        shown = self.document.examples(operation.raw.get("requestBody")) or [{}]
        own = [self._own(each) for each in shown]
        for each in own:
            if len(each.get("document", "")) == CNPJ:  # an update does not say its type
                each |= {"type": "company", "document_type": "cnpj"}
        return own

    def smallest(self, operation: Operation) -> Body:
        """The required members of a new body."""
        body, schema = self.body(operation), self.document.resolve(operation.body or {})
        return {name: body[name] for name in schema.get("required", ()) if name in body}

    def plain(self, operation: Operation) -> Any:
        """A small body whose record others can refer to: it is active, but for what is sent."""
        small = self.smallest(operation)
        for name, inner in self.properties(operation).items():
            if "active" in self.document.resolve(inner).get("enum", ()):
                small[name] = "active"
            elif name == "is_active":
                small[name] = False
        return small

    def probe(
        self,
        operation: Operation,
        group: str,
        learns: str,
        pointer: str = "",
        *,
        path: str = "",
        about: Operation | None = None,
        **more: Any,
    ) -> Probe:
        """A request to an operation, with roles in its path.

        Without a pointer, it is about the whole operation.
        """
        more["body"] = self.harmless(operation, more.get("body"))
        return Probe(
            operation,
            group,
            learns,
            pointer or pointer_of(operation),
            about or operation,
            path or self.path(operation),
            **more,
        )

    def make(self, resource: Resource, role: str = "", **changes: Any) -> Probe:
        """Create a record that plays a role from then on: that of its kind, or another one. Of
        those of which a run makes few, one that has departed is written anew.

        Raises KeyError where the credential or the options do not allow it.
        """
        operation, makes = resource.create, role or resource.role
        if not self.may(operation):
            raise KeyError(makes)
        if self.is_lasting and resource.update is not None and makes in self.departed:
            self.departed.discard(makes)
            known, body = self.properties(resource.update), self.body(operation) | changes
            self.present[makes] = {name: body[name] for name in body if name in known}
            path = resource.at(placeholder(makes))
            more = {"path": path, "body": self.present[makes]}
            return self.probe(resource.update, SETUP, f"write {makes}", **more)
        body = {**self.plain(operation), **changes}
        return self.probe(operation, SETUP, f"make {makes}", body=body, makes=makes)

    def missing(self, role: str, operation: Operation) -> Probe | None:
        """What makes the record that a request to an operation names, if it is not there: in a
        state from which the operation moves it, where a creation can set that.
        """
        kind, makes = self.kind_of(role), MEMBERS.get(role, role)
        if kind is None or makes in self.present:
            return None
        changes, lifecycle = Body(), kind.lifecycle
        if lifecycle is not None and operation != kind.update:
            node = self.document.resolve(self.properties(kind.create).get(lifecycle.field, {}))
            sent = (self.body(operation) or {}).get(lifecycle.field)
            states = {
                move.from_
                for move in lifecycle.moves
                if operation.id in move.by and sent in (None, move.to)
            }
            for state in self.variants.options(node):
                if state in states:
                    changes.setdefault(lifecycle.field, state)
        return self.make(kind, makes, **changes)

    def ready(self, resource: Resource, role: str = "", **changes: Any) -> Journey:
        """Create a record of a kind that plays a role, if there is none."""
        if (role or resource.role) not in self.present:
            yield self.make(resource, role, **changes)

    def removal(self, role: str) -> Probe | None:
        """Delete the record that plays a role, if that is possible: some kinds are limited in
        number.
        """
        kind = self.kind_of(role)
        if kind is None or kind.delete is None or self.present.pop(role, None) is None:
            return None
        path = kind.at(placeholder(role))
        return self.probe(kind.delete, SETUP, f"delete {role}", path=path, suspect="lifecycle")

    def _own(self, value: Any, place: Steps = ()) -> Any:
        """A value of an example with roles in place of ids, and new values.

        A part of a body, such as the customer of an order, is always the same: it need not be
        created often.
        """
        name = place[-1] if place else ""
        role, is_list = self.named_by(name), isinstance(value, list)
        if role and is_list is name.endswith("s"):
            return [placeholder(role)] if is_list else placeholder(role)
        if isinstance(value, Mapping):
            return {inner: self._own(other, (*place, inner)) for inner, other in value.items()}
        if is_list:
            return [self._own(inner, (*place, "")) for inner in value]
        if isinstance(value, float):
            return uneven(value)
        own = self.variants.value(name, value) if isinstance(value, str) else None
        if own is not None and len(place) > 1:
            own = self._of_parts.setdefault(place, own)
        return value if own is None else own


def costs(operation: Operation) -> bool:
    """Whether an operation may cost money or reach somebody: orders, and deliveries of webhooks."""
    return operation.method == "POST" and (
        operation.tag == "Orders" or bool({"test", "retry"} & set(operation.path.split("/")))
    )


def query_text(value: Any) -> str:
    """A value as a query contains it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
