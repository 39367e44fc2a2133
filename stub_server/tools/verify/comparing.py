"""Compares the values of the target's answer with those of both twins.

A value is compared if both twins agree on it and it follows from a request, a default, a state or
an earlier answer. Other values that the twins share are learned from the target's first answer, and
must stay the same.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ...contract.document import Operation
from .catalogue import Steps, at, leaves
from .probes import Roles, is_id

_TOLERANCE = 1.0  # seconds; against the target's, in addition to the time that requests took


class Difference(NamedTuple):
    """A value that is not as expected. `at` has the names of members, without positions in lists.

    `kind` is a class, or `list` if a list has too few or too many of the journey's own records: the
    class depends on the probe. It is `filter` if the list has records of others, and `missing` if
    the target has no such member: that is a departure only if it was written. `writer` is the
    operation that wrote the value, and `member` where in its body.
    """

    at: Steps
    expected: Any
    got: Any
    kind: str = "value"
    writer: Operation | None = None
    member: str = ""


class Comparing:
    """One per journey."""

    def __init__(
        self,
        roles: Roles,
        constants: dict[Steps, tuple[Any, Any]],
        defaults: Mapping[str, Collection[Any]],
        created: set[float],
    ) -> None:
        """`constants` are what all journeys have learned of the target: by place the twins' value
        and the target's.

        `defaults` are the defaults and states of members, by their names.

        `created` has each `createdAt` that the target has shown to any journey, in seconds
        since 1970.
        """
        self._roles, self._constants, self._defaults = roles, constants, defaults
        self._created = created
        self._sent: set[Any] = set()
        self.deleted: dict[str, Operation] = {}
        """By the id of a record, the operation that has deleted it."""
        # by the record of the first twin, the newest first
        self._written: dict[str, list[tuple[Operation, Any]]] = {}
        self._skew: float | None = None  # seconds that the target's clock is ahead of the twins'
        self._slowest = 0.0

    def sent(self, value: Any) -> None:
        """Note the values of a request: those of answers may follow from them."""
        for leaf in leaves(value):
            if isinstance(leaf, (str, int, float)):
                self._sent |= {leaf, leaf.casefold() if isinstance(leaf, str) else leaf}

    def wrote(self, operation: Operation, record: str, body: Any) -> None:
        """Note what an accepted request has written to a record of the first twin: an answer that
        lacks it shows that it was not stored.
        """
        self._written.setdefault(record, []).insert(0, (operation, body))

    def differences(
        self, target: Any, first: Any, second: Any, took: float, entries: Steps | None = None
    ) -> Iterator[Difference]:
        """Where the target's answer differs. It and the twins' together took `took` seconds.

        With `entries`, the place of a list, only its own records are compared.
        """
        self._slowest = max(self._slowest, took)
        found = self._differences(target, first, second, entries)
        return (each for each in found if each.kind != "missing")

    def _differences(
        self, target: Any, first: Any, second: Any, entries: Steps | None
    ) -> Iterator[Difference]:
        if entries is None:
            yield from self._walk((), target, first, second)
            return
        theirs, own, other = (at(answer, entries) for answer in (target, first, second))
        if isinstance(theirs, list) and isinstance(own, list) and isinstance(other, list):
            yield from self._list(entries, theirs, own, other, is_whole=False)

    def _walk(self, place: Steps, target: Any, first: Any, second: Any) -> Iterator[Difference]:
        if isinstance(first, dict) and isinstance(second, dict):
            if not isinstance(target, dict):
                return  # the schema finds it
            bodies = self._written.get(str(first.get("id")), ())
            for difference in self._members(place, target, first, second):
                steps = difference.at[len(place) :]
                for writer, body in bodies if difference.writer is None else ():
                    if _has(body, steps, difference.expected):
                        difference = Difference(
                            *difference[:3], "not-persisted", writer, member=steps[0]
                        )
                        break
                yield difference
        elif isinstance(first, list) and isinstance(second, list):
            if not isinstance(target, list):
                return  # the schema finds it
            if (
                _are_texts(target, first)
                and first == second
                and all(self._follows_from(place, text) for text in first)
            ):
                if {*target} != {*first}:  # no order is documented
                    yield Difference(place, first, target)
                return
            yield from self._list(place, target, first, second)
        else:
            yield from self._leaf(place, target, first, second)

    def _members(self, place: Steps, target: Any, first: Any, second: Any) -> Iterator[Difference]:
        unknown = [target[name] for name in target.keys() - first.keys()]
        for name in first:
            if name not in second:
                continue
            if name in target:
                yield from self._walk((*place, name), target[name], first[name], second[name])
            elif first[name] == second[name] and first[name] not in unknown:
                # else it has another name, which the schema finds
                yield Difference((*place, name), first[name], "nothing", "missing")
        if first == second and unknown:
            yield Difference(place, first, target, "missing")

    def _list(
        self,
        place: Steps,
        target: list[Any],
        first: list[Any],
        second: list[Any],
        *,
        is_whole: bool = True,
    ) -> Iterator[Difference]:
        if not all(
            isinstance(entry, dict) and "id" in entry for entry in (*first, *second, *target)
        ):
            if len(first) == len(second) == len(target):
                for theirs, one, two in zip(target, first, second, strict=True):
                    yield from self._walk(place, theirs, one, two)
            elif is_whole and len(first) == len(second):
                yield Difference(place, first, target)
            return
        named: dict[str, tuple[Any, Any]] = {}
        for own in first:
            for other in second:
                name = self._roles.role(own["id"], other["id"])
                if name is not None:
                    named[name] = own, other
        listed = {entry["id"]: entry for entry in target}
        are_own = is_whole and len(first) == len(second) == len(named)
        for name, entries in named.items():
            if name in listed:
                yield from self._walk(place, listed[name], *entries)
            elif are_own:
                yield Difference(place, "all records that match", "too few records", "list")
        others = listed.keys() - named.keys()
        if gone := others & self.deleted.keys():
            others -= gone
            yield Difference(
                place,
                "no record that was deleted",
                f"the deleted record {min(gone)}",
                "not-deleted",
            )
        if are_own and others:
            kind = "list" if others <= self._roles.own else "filter"
            yield Difference(place, "the records that match", "records that do not match", kind)

    def _leaf(self, place: Steps, target: Any, first: Any, second: Any) -> Iterator[Difference]:
        if is_id(first) and is_id(second):
            yield from self._id(place, target, first, second)
            return
        one, two, theirs = map(instant_of, (first, second, target))
        if one is not None and two is not None:
            if first != second or first not in self._sent:
                if abs(one - two) <= _TOLERANCE:
                    yield from self._instant(place, target, theirs, one)
            elif theirs != one:
                yield Difference(place, first, target)
            return
        if type(first) is not type(second) or first != second or _is_other(first, target):
            return
        if target == first and isinstance(target, bool) is isinstance(first, bool):
            return
        if first is None or target is None or self._follows_from(place, first):
            yield Difference(place, first, target)
            return
        known = self._constants.setdefault(place, (first, target))
        if known[0] == first and known[1] != target:
            yield Difference(place, known[1], target)

    def _follows_from(self, place: Steps, value: Any) -> bool:
        """Whether a value follows from a request, a default or a state.

        Numbers are always computed.
        """
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return True
        if value in self._sent or (isinstance(value, str) and value.casefold() in self._sent):
            return True
        return value in self._defaults.get(place[-1] if place else "", ())

    def _id(self, place: Steps, target: Any, first: str, second: str) -> Iterator[Difference]:
        role = self._roles.role(first, second)
        if role is not None:
            if target is None:
                yield Difference(place, first, target, "reference")
            elif target != role:
                yield Difference(place, "the id of the record in the request", target, "reference")
        elif is_id(target) and not self._roles.is_known(first):
            self._roles.pair(target, first, second)

    def _instant(
        self, place: Steps, target: Any, theirs: float | None, one: float
    ) -> Iterator[Difference]:
        """Compare an instant by the skew of the journey's first `createdAt`.

        A clock that never shows another `createdAt` may stand still: it tells nothing.
        """
        if theirs is None:
            if target is None:
                yield Difference(place, "an instant", None)
            return
        if place[-1] == "createdAt":
            self._created.add(theirs)
            if self._skew is None:
                self._skew = theirs - one
        if self._skew is None or len(self._created) == 1:
            return
        late = theirs - one - self._skew
        # the request that made the record may have taken longer than this one
        if abs(late) > _TOLERANCE + self._slowest:
            got = f"a time {abs(late):.0f} s too {'late' if late > 0 else 'early'}"
            yield Difference(place, "the time of the change", got)


def _has(body: Any, steps: Steps, value: Any) -> bool:
    """Whether a body has a value at a place."""
    holder = at(body, steps[:-1]) if steps else None
    return isinstance(holder, dict) and steps[-1] in holder and holder[steps[-1]] == value


def _are_texts(*lists: list[Any]) -> bool:
    return all(isinstance(entry, str) for entries in lists for entry in entries)


def _is_other(first: Any, target: Any) -> bool:
    """Whether a value has another type, which the schema finds."""
    kinds = [
        float if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)
        for value in (first, target)
    ]
    return kinds[0] is not kinds[1] and first is not None and target is not None


def instant_of(value: Any) -> float | None:
    """The seconds since 1970 of a text that is an instant; None for any other value."""
    if not isinstance(value, str) or not 20 <= len(value) <= 40 or value[10:11] not in ("T", "t"):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo is not None else None
