"""Says in what the answer to a probe departs: by the contract, by what the twin answered, and by
what was sent.

A value is compared if it follows from a request, a default, a state or an earlier answer. The
schema alone decides about others.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...contract.document import JSON, Document, Operation
from ...contract.pointers import below, within
from ...contract.source import fixture
from ...core.clock import SECOND, iso
from ...core.record import Body
from .catalogue import (
    Steps,
    aligned,
    at,
    body_of,
    entries_of,
    is_list,
    is_record,
    leaves,
    pointer_of,
    queried,
)
from .comparing import folded, instant_of, is_like, is_number
from .exchange import Answer, Exchange, code_of
from .findings import CLASSES, RANKS, Finding, Got, Said, Words
from .learned import Run
from .probes import GIVEN, NONE, SETUP, WRONG, Flaw, Names, Probe, Roles, is_id, roles_in

INVALID = (400, 422)
_REFUSED = {401: "auth", 403: "scope"}
_TOLERANCE = 1.0  # seconds; against the target's, in addition to the time that requests took
_MISSING = object()
"""In place of a member that the target does not have."""
_MATCHING = Words("the records that match")


class Difference(NamedTuple):
    """A value that is not as expected. `at` has the names of members, without positions in lists.

    `kind` is a class, or `list` if a list has too few of the journey's own records, and `more` if
    it has too many: the class depends on the probe. It is `filter` if the list has records of
    others, and `missing` if the target has no such member: that is a departure only if it was
    written. `writer` is the operation that has lost the value, and `inside` is its place in the
    body.
    """

    at: Steps
    expected: Any
    got: Any
    kind: str = "value"
    writer: Operation | None = None
    inside: Steps = ()


class Write(NamedTuple):
    """An accepted request that wrote to a record, and the record as the target answered it then."""

    operation: Operation
    body: Body
    answered: Body


class Judge:
    """One per journey."""

    def __init__(self, run: Run, roles: Roles) -> None:
        self._run, self._roles = run, roles
        codes = [str(key.code) for keys in run.document.unique.values() for key in keys if key.code]
        known: dict[str, str] = fixture("verify.yaml")["refusals"]
        self._kinds = dict.fromkeys(codes, "uniqueness") | known
        """Classes of what is accepted or refused by one side alone, by the code of the refusal."""
        self.has_strange = False
        """Whether only one side has a record of this journey, or a change of one."""
        # by the places of values that are not as expected, what was found to be their cause
        self._departed: dict[Steps, Operation] = {}
        # from what values may follow: defaults, states, and what is sent
        self._known: set[Any] = {True, False}
        for schema in run.document.raw["components"]["schemas"]:
            self.sent(run.document.defaults(schema))
        for lifecycle in run.document.lifecycles.values():
            self.sent([*lifecycle.states])
        # what was written, by the record of the twin, the newest first
        self._written: dict[str, list[Write]] = {}
        # the `createdAt` of the first record, at the target and at the twin
        self._first: tuple[float, float] | None = None
        self._slowest = 0.0

    def sent(self, value: Any) -> None:
        """Note values from which those of answers may follow, such as a request has."""
        self._known |= {folded(leaf) for leaf in leaves(value)}

    def wrote(self, record: str, write: Write) -> None:
        """Note what an accepted request has written to a record of the twin: an answer that lacks
        it shows that it was not stored.
        """
        self._written.setdefault(record, []).insert(0, write)

    def findings(
        self, probe: Probe, exchange: Exchange, twin: Answer, took: float
    ) -> list[Finding]:
        """In what the target departs from the contract and from the twin: findings of the first
        class that fits, and of those that may stand beside it.

        Asking both took `took` seconds. Of a twin that was not asked, the answer is an empty 200.
        """
        answer = exchange.answer
        found = [*self._run.conformity.findings(exchange, probe.operation)]
        if 0 < answer.status < 500:
            found += self._status(probe, answer, twin)
            if answer.is_success and twin.is_success:
                self._slowest = max(self._slowest, took)
                found += self._values(probe, answer.json(), twin)
        found.sort(key=lambda each: RANKS[each.kind])
        chosen = []
        for each in found:
            if each.kind == found[0].kind or "beside" in CLASSES[each.kind]:
                chosen.append(self._shown(each, probe, exchange))
        return chosen

    def flaw(self, flaw: Flaw, probe: Probe, exchange: Exchange) -> Finding:
        """The finding of a flaw in the answer to a probe."""
        expected = Said(next(iter(probe.operation.successes), 200), flaw.expected)
        return self._shown(self._found(flaw.kind, probe, expected, flaw.title), probe, exchange)

    def _shown(self, found: Finding, probe: Probe, exchange: Exchange) -> Finding:
        return self._run.showing.finding(found, exchange, probe.operation, probe.group)

    def _found(
        self, kind: str, probe: Probe, expected: Said, title: str, got: Got | None = None
    ) -> Finding:
        about, pointer = probe.about, probe.pointer
        if kind in ("wrong-status", "error-code"):
            pointer = pointer_of(about, "responses")
        place, _, tries = probe.learns.rpartition(": ")
        title = f"{about.id} · {title}."
        return Finding(kind, pointer, title, expected, got, about.id, place, tries)

    # -- the status

    def _status(self, probe: Probe, target: Answer, twin: Answer) -> Iterator[Finding]:
        if probe.expects and target.is_success is twin.is_success:
            return
        is_of_others = probe.credential == self._run.options.other or not probe.suspect
        is_empty = target.is_success and is_list(probe.operation) and not entries_of(target.json())
        if is_empty and is_of_others and probe.credential != GIVEN:
            return  # it shows nothing of what belongs to others
        kind = self._kind(probe, target, twin)
        if kind == "read-only":
            written = probe.body[probe.pointer.rpartition("/")[2]]
            if folded(written) not in map(folded, leaves(target.json())):
                return  # it has ignored the member
        if kind:
            title = f"{probe.learns}: answered {_named(target)}, expected {_named(twin)}"
            yield self._found(kind, probe, self._run.showing.said(twin), title)

    def _kind(self, probe: Probe, target: Answer, twin: Answer) -> str:
        """The class of another status, or of another code; empty where there is none."""
        # what is invalid too says nothing about a credential or a state
        suspect = "" if target.status in INVALID else probe.suspect
        is_refused, refusal = not target.is_success, twin if target.is_success else target
        if target.status == twin.status:
            is_same = code_of(target.json()) == code_of(twin.json())
            return "error-code" if is_refused and not is_same else ""
        if target.status == 401 and probe.credential not in (GIVEN, NONE, WRONG):
            return "api-key"
        if target.is_success is twin.is_success:
            return suspect if suspect in _REFUSED.values() else "wrong-status"
        if suspect != "auth":
            suspect = _REFUSED.get(refusal.status) or suspect
        if is_refused:
            other = "refused-creation" if probe.group == SETUP else "stricter"
        else:
            other = "rule" if twin.status == 409 else "laxer"
        return suspect or self._kinds.get(str(code_of(refusal.json())), other)

    # -- the values

    def _values(self, probe: Probe, body: Any, twin: Answer) -> Iterator[Finding]:
        is_write = probe.makes or probe.operation.method != "GET"
        is_own = is_write or any(roles_in([probe.path, probe.query]))
        if is_list(probe.operation):
            # which records are on a page depends on the order of those of one instant
            is_own = probe.narrowed and probe.suspect != "paging"
        if probe.expects or body is None or not is_own:
            return
        like = twin.json()
        for each in [*self._walk((), aligned(body, like), like)]:
            # what is there beside has been found as it was made, or not deleted
            is_known = each.kind == "more" and probe.suspect not in ("filter", "not-deleted")
            is_count = each.kind == "list" or (is_number(each.expected) and not each.writer)
            # strange records are counted too
            if each.kind == "missing" or is_known or (is_count and self.has_strange):
                continue
            yield self._differs(probe, twin.status, each)

    def _differs(self, probe: Probe, status: int, it: Difference) -> Finding:
        document, operation, kind = self._run.document, probe.operation, it.kind
        member, inside = ".".join(it.at) or "the body", it.inside
        shown = pointer_of(operation, "responses", status, "content", JSON, "schema")
        if kind == "filter" and probe.narrowed:  # it is not, to the journey's records
            name = next(iter(probe.query))
            where = queried(operation)[name][0]
            probe = replace(probe, about=operation, pointer=where, learns=f"{name}: its records")
        elif self._is_confirmed(probe, it):
            kind = probe.suspect
        elif it.writer:
            holder = body_of(it.writer)
            if inside[0] not in _settable(document, it.writer):
                holder = within(document, shown, it.at[: -len(inside)])[0]
            where = within(document, holder, inside)[0]
            if where.endswith("additionalProperties"):  # of a map, whose names are free
                inside = inside[:1]
                where = below(holder, "properties", *inside)
            probe = replace(probe, about=it.writer, pointer=where)
        else:
            kind = "value" if it.expected == _MATCHING else kind
            kind = "figures" if is_number(it.expected) else kind
            probe = replace(probe, about=operation, pointer=within(document, shown, it.at)[0])
        self._departed.setdefault(it.at, probe.about)
        show = self._run.showing.value
        got, wanted = show(member, it.got), show(member, it.expected)
        title = f"{probe.learns}: {member} has {got}, not {wanted}"
        expected = Said(status, f"{member}: {wanted}")
        found = self._found(kind, probe, expected, title, Got(member, it.got))
        return replace(found, place=".".join(inside))

    def _is_confirmed(self, probe: Probe, difference: Difference) -> bool:
        """Whether a value is what the probe has suspected, and not one that departs
        elsewhere too.
        """
        if probe.suspect == "idempotency":
            return difference.kind == "reference"
        if probe.suspect != "lifecycle":
            return bool(probe.suspect) and difference.kind in ("list", "more")
        kinds = self._run.catalogue.resources.values()
        states = {kind.field for kind in kinds if kind.moves_by(probe.about)}
        # else the state was written by its name
        return not difference.writer and not states.isdisjoint(difference.at[-1:])

    # -- the walk over both bodies

    def _walk(self, place: Steps, target: Any, twin: Any) -> Iterator[Difference]:
        """Where the target's value differs from the twin's; if it has another type, the schema
        finds that.
        """
        instant = instant_of(twin)
        if target is _MISSING:
            yield Difference(place, twin, Words("nothing"), "missing")
        elif not is_like(target, twin):
            return
        elif isinstance(twin, dict):
            yield from self._members(place, target, twin)
        elif isinstance(twin, list):
            yield from self._list(place, target, twin)
        elif is_id(twin):
            yield from self._id(place, target, twin)
        elif instant is not None and instant not in self._known:
            yield from self._instant(place, target, instant)
        elif target == twin or (instant is not None and instant_of(target) == instant):
            return
        elif instant is not None or is_number(twin):  # numbers are always computed
            yield Difference(place, twin, target)
        elif None in (target, twin) or folded(twin) in self._known:
            yield Difference(place, twin, target, "default")

    def _members(self, place: Steps, target: Body, twin: Body) -> Iterator[Difference]:
        unknown = [target[name] for name in target.keys() - twin.keys()]
        written = self._written.get(str(twin.get("id")), [])
        for name, one in twin.items():
            theirs = target.get(name, _MISSING)
            # where only its name is unknown, it has another one, which the schema finds
            if theirs is _MISSING and one in unknown:
                continue
            for each in self._walk((*place, name), theirs, one):
                yield self._attributed(each, each.at[len(place) :], written)
        if unknown and "id" not in twin:
            yield Difference(place, twin, target, "missing")

    def _list(self, place: Steps, target: list[Any], twin: list[Any]) -> Iterator[Difference]:
        every = [*twin, *target]
        if every and all(map(is_record, every)):
            yield from self._records(place, target, twin)
            return
        if len(twin) != len(target):
            yield Difference(place, twin, target)
            return
        if all(isinstance(entry, str) and not is_id(entry) for entry in every):
            target, twin = sorted(target), sorted(twin)  # no order is documented
        for theirs, one in zip(target, twin, strict=True):
            yield from self._walk(place, theirs, one)

    def _records(self, place: Steps, target: list[Body], twin: list[Body]) -> Iterator[Difference]:
        """Compare lists of records. They are whole if all of the twin's are the journey's own."""
        listed = {str(entry["id"]): entry for entry in target}
        named = {self._roles.role(own["id"]): own for own in twin}
        for name, own in named.items():
            if name in listed:
                yield from self._walk(place, listed[name], own)
        if None in named:
            return
        others = listed.keys() - named.keys()
        if named.keys() - listed.keys():
            yield Difference(place, _MATCHING, Words("too few records"), "list")
        if others:
            kind = "more" if others <= self._roles.own else "filter"
            yield Difference(place, _MATCHING, Words("records that do not match"), kind)

    def _id(self, place: Steps, target: Any, twin: str) -> Iterator[Difference]:
        role = self._roles.role(twin)
        if role is None:
            if is_id(target):
                self._roles.pair(Names(target, twin))
        elif target != role:
            wanted = Words("the id of the record in the request") if target else twin
            yield Difference(place, wanted, target, "reference" if is_id(target) else "value")

    def _instant(self, place: Steps, target: Any, twin: float) -> Iterator[Difference]:
        """Compare an instant by its distance from the journey's first `createdAt`: what was before
        belongs to records of others.
        """
        theirs = instant_of(target)
        if theirs is not None and place[-1] == "createdAt":
            self._first = self._first or (theirs, twin)
        if self._first is None or twin < self._first[1]:
            return
        first, wanted = self._first[0], self._first[0] + twin - self._first[1]
        shown = iso(int(wanted * SECOND))
        if theirs is None:
            if target is None:
                yield Difference(place, shown, target)
        elif theirs + _TOLERANCE < first:
            # whatever a contract assumes, nothing happens before its record is there
            yield Difference(place, shown, target, "contradiction")
        # both requests took a while, the one of the first record and this one
        elif abs(theirs - wanted) > _TOLERANCE + 2 * self._slowest:
            # an update is dated before it was made, or a creation after that
            is_flawed = place[-1] == ("updatedAt" if theirs < wanted else "createdAt")
            yield Difference(place, shown, target, "contradiction" if is_flawed else "value")

    def _attributed(self, it: Difference, inside: Steps, written: Sequence[Write]) -> Difference:
        """A difference inside a record: with the operation that has lost a value that was written,
        or as a contradiction where the target has answered the value with nothing written since.
        """
        is_empty = it.expected is None and it.got in ("", [], {})  # another spelling of null
        if it.writer or not written or is_empty:
            return it
        name, wanted, last = inside[0], folded(it.expected), written[0]
        for writer, body, _ in written:
            if name not in body:
                continue
            is_lost = it.kind == "missing" and at(body, inside) is not None
            if is_lost or it.expected == body[name] or wanted in map(folded, leaves(body[name])):
                if writer != last.operation:  # an update must leave alone what it does not have
                    writer = self._departed.get(it.at, last.operation)
                return it._replace(kind="not-persisted", writer=writer, inside=inside)
        settable = _settable(self._run.document, last.operation)
        is_said = name in settable and last.answered.get(name, _MISSING) == it.expected
        return it._replace(kind="contradiction") if is_said and it.kind == "default" else it


def _settable(document: Document, operation: Operation) -> Collection[str]:
    """The members that a request may have."""
    members: Body = document.resolve(operation.body or {}).get("properties", {})
    return members.keys()


def _named(answer: Answer) -> str:
    """The status of an answer, and the code of a refusal."""
    code = "" if answer.is_success else code_of(answer.json()) or ""
    return f"{answer.status} {code}".rstrip()
