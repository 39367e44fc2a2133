"""Compares the values of the target's answer with those of the twin.

A value is compared if it follows from a request, a default, a state or an earlier answer. The
schema alone decides about others.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ...contract.document import Operation
from ...contract.formats import is_date_time
from ...core.clock import SECOND, iso, parse_iso
from ...core.record import Body
from .catalogue import Steps, aligned, at, leaves
from .findings import Words
from .probes import Names, Roles, is_id

_TOLERANCE = 1.0  # seconds; against the target's, in addition to the time that requests took
_MISSING = object()
"""In place of a member that the target does not have."""


class Difference(NamedTuple):
    """A value that is not as expected. `at` has the names of members, without positions in lists.

    `kind` is a class, or `list` if a list has too few of the journey's own records, and `more` if
    it has too many: the class depends on the probe. It is `filter` if the list has records of
    others, and `missing` if the target has no such member: that is a departure only if it was
    written. `writers` are the operation that wrote the value, `inside` its body, and the last one
    that wrote to the record.
    """

    at: Steps
    expected: Any
    got: Any
    kind: str = "value"
    writers: tuple[Operation, ...] = ()
    inside: Steps = ()


class Comparing:
    """One per journey."""

    def __init__(self, roles: Roles, assumed: Collection[Any], created: set[float]) -> None:
        """`assumed` are the defaults and states of members.

        `created` has each `createdAt` that the target has shown to any journey, in seconds
        since 1970.
        """
        self._roles, self._assumed = roles, assumed
        self._created = created
        self._sent: set[Any] = set()
        # by the record of the twin, the newest first
        self._written: dict[str, list[tuple[Operation, Body]]] = {}
        # the `createdAt` of the first record, at the target and at the twin
        self._first: tuple[float, float] | None = None
        self._slowest = 0.0

    def sent(self, value: Any) -> None:
        """Note the values of a request: those of answers may follow from them."""
        self._sent |= {folded(leaf) for leaf in leaves(value)}

    def wrote(self, operation: Operation, record: str, body: Body) -> None:
        """Note what an accepted request has written to a record of the twin: an answer that lacks
        it shows that it was not stored.
        """
        self._written.setdefault(record, []).insert(0, (operation, body))

    def differences(self, target: Any, twin: Any, took: float) -> Iterator[Difference]:
        """Where the target's answer differs. It and the twin's together took `took` seconds."""
        self._slowest = max(self._slowest, took)
        for each in self._walk((), aligned(target, twin), twin):
            if each.kind != "missing":
                yield each

    def _walk(self, place: Steps, target: Any, twin: Any) -> Iterator[Difference]:
        if target is _MISSING:
            yield Difference(place, twin, Words("nothing"), "missing")
        elif isinstance(twin, dict):
            yield from self._members(place, target, twin)
        elif isinstance(twin, list):
            yield from self._list(place, target, twin)
        else:
            yield from self._leaf(place, target, twin)

    def _members(self, place: Steps, target: Any, twin: Body) -> Iterator[Difference]:
        if not isinstance(target, dict):
            return  # the schema finds it
        unknown = [target[name] for name in target.keys() - twin.keys()]
        written = self._written.get(str(twin.get("id")), ())
        for name, one in twin.items():
            theirs = target.get(name, _MISSING)
            # where only its name is unknown, it has another one, which the schema finds
            if theirs is _MISSING and one in unknown:
                continue
            for each in self._walk((*place, name), theirs, one):
                yield _attributed(each, (*place, name), written)
        if unknown and "id" not in twin:
            yield Difference(place, twin, target, "missing")

    def _list(self, place: Steps, target: Any, twin: list[Any]) -> Iterator[Difference]:
        if not isinstance(target, list):
            return  # the schema finds it
        every = [*twin, *target]
        if every and all(isinstance(entry, dict) and "id" in entry for entry in every):
            yield from self._records(place, target, twin)
            return
        if len(twin) != len(target):
            yield Difference(place, twin, target)
            return
        if all(isinstance(entry, str) and not is_id(entry) for entry in every):
            target, twin = sorted(target), sorted(twin)  # no order is documented
        for theirs, one in zip(target, twin, strict=True):
            yield from self._walk(place, theirs, one)

    def _records(self, place: Steps, target: list[Any], twin: list[Any]) -> Iterator[Difference]:
        """Compare lists of records. They are whole if all of the twin's are the journey's own."""
        listed = {str(entry["id"]): entry for entry in target}
        named = set[str]()
        for own in twin:
            name = self._roles.role(own["id"])
            if name is None:
                continue
            named.add(name)
            if name in listed:
                yield from self._walk(place, listed[name], own)
        if len(named) < len(twin):
            return
        wanted, others = Words("the records that match"), listed.keys() - named
        if named - listed.keys():
            yield Difference(place, wanted, Words("too few records"), "list")
        if others:
            kind = "more" if others <= self._roles.own else "filter"
            yield Difference(place, wanted, Words("records that do not match"), kind)

    def _leaf(self, place: Steps, target: Any, twin: Any) -> Iterator[Difference]:
        instant = instant_of(twin)
        if is_id(twin):
            yield from self._id(place, target, twin)
        elif instant is not None:
            if instant not in self._sent:
                yield from self._instant(place, target, instant)
            elif instant_of(target) != instant:
                yield Difference(place, twin, target)
        elif twin != target:
            # what has another type the schema finds
            kinds = {_kind(value) for value in (twin, target)} - {type(None)}
            if len(kinds) != 1:
                return
            if is_number(twin):  # numbers are always computed
                yield Difference(place, twin, target)
            elif None in (target, twin) or twin in self._assumed or folded(twin) in self._sent:
                yield Difference(place, twin, target, "default")

    def _id(self, place: Steps, target: Any, twin: str) -> Iterator[Difference]:
        role = self._roles.role(twin)
        if role is not None:
            if target != role:
                wanted = Words("the id of the record in the request") if target else twin
                kind = "reference" if is_id(target) else "value"
                yield Difference(place, wanted, target, kind)
        elif is_id(target):
            self._roles.pair(Names(target, twin))

    def _instant(self, place: Steps, target: Any, twin: float) -> Iterator[Difference]:
        """Compare an instant by its distance from the journey's first `createdAt`: what was before
        belongs to records of others.

        A clock that never shows another `createdAt` may stand still: it tells nothing.
        """
        theirs = instant_of(target)
        if theirs is not None and place[-1] == "createdAt":
            self._created.add(theirs)
            self._first = self._first or (theirs, twin)
        if self._first is None or twin < self._first[1]:
            return
        wanted = self._first[0] + twin - self._first[1]
        shown = iso(int(wanted * SECOND))
        if target is None:
            yield Difference(place, shown, None)
        if theirs is None or len(self._created) == 1:
            return
        # both requests took a while, the one of the first record and this one
        if abs(theirs - wanted) > _TOLERANCE + 2 * self._slowest:
            yield Difference(place, shown, target)


def _attributed(
    difference: Difference, place: Steps, written: Sequence[tuple[Operation, Body]]
) -> Difference:
    """The difference in the member of a record at a place, with the operation that has written its
    value.
    """
    inside, wanted = difference.at[len(place) - 1 :], folded(difference.expected)
    for writer, body in written:
        if place[-1] not in body or difference.writers:
            continue
        sent = body[place[-1]]
        is_lost = difference.kind == "missing" and at(body, inside) is not None
        if is_lost or difference.expected == sent or wanted in map(folded, leaves(sent)):
            writers = writer, written[0][0]
            return difference._replace(kind="not-persisted", writers=writers, inside=inside)
    return difference


def folded(value: Any) -> Any:
    """An instant in seconds since 1970, a text without its case; any other value as it is."""
    instant = instant_of(value)
    if instant is not None:
        return instant
    return value.casefold() if isinstance(value, str) else value


def is_number(value: Any) -> bool:
    """Whether a value is a number of JSON."""
    return _kind(value) is float


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def instant_of(value: Any) -> float | None:
    """The seconds since 1970 of a text that is an instant; None for any other value."""
    is_instant = isinstance(value, str) and is_date_time(value)
    return parse_iso(value) / SECOND if is_instant else None
