"""Says in what the answer to a probe departs: by the contract, by what both twins answered, and by what was sent."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ...contract.document import JSON, Document, Operation
from .catalogue import Catalogue, Places, Steps, at, below, body_of, pointer_of
from .cleanup import Cleanup
from .comparing import Comparing, Difference, Moment, TargetClock, instant_of
from .conformity import Conformity
from .exchange import Answer, Exchange, code_of
from .findings import BESIDE, GROUPS, RANKS, Finding, Said
from .probes import Flaw, Probe, Roles, roles_in
from .showing import Showing
from .target import Rights, Target

_SEVERAL = frozenset(("schema", "value"))
"""Classes of which an answer may have several findings, each with its own cause."""
_SURE = frozenset(("lifecycle", "idempotency", "figures", "paging", "filter"))
"""Suspicions of a probe that a value confirms, unless the same value has departed before."""


@dataclass(slots=True)
class Run:
    """What the journeys of a run share, and what it has learned.

    - A change must show in what is read within `settle` seconds.
    - `statuses` and `groups` are by operationId; `suspected` has operationIds by class.
    - `chosen` are the operationIds that the run was about.
    - `away` is a clause that says why the target could not be asked any more.
    - `constants` are values that the twins share and that follow from nothing: theirs and the target's, by place.
    - `unanswered` operations may have changed something without an answer.
    - `needs` has, by operationId, the creating operations of the records that a request needs.
    - `measured` has the target's limits, by pointer and keyword.
    - `strange` are ids of records that the target made although the contract refuses it: that finding is enough.
    """

    catalogue: Catalogue
    target: Target
    cleanup: Cleanup
    showing: Showing
    unknown_id: str
    settle: float
    findings: list[Finding] = field(default_factory=list)
    statuses: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    groups: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    suspected: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    rights: Rights = field(default_factory=Rights)
    chosen: tuple[str, ...] = ()
    seconds: float = 0.0
    away: str = ""
    is_late: bool = False
    is_interrupted: bool = False
    clock: TargetClock = field(default_factory=TargetClock)
    constants: dict[Steps, tuple[Any, Any]] = field(default_factory=dict)
    unanswered: list[Operation] = field(default_factory=list)
    strange: set[str] = field(default_factory=set)
    needs: dict[str, list[str]] = field(default_factory=dict)
    measured: dict[tuple[str, str], Any] = field(default_factory=dict)
    conformity: Conformity = field(init=False)
    defaults: Mapping[str, set[Any]] = field(init=False)
    unique: frozenset[str | None] = field(init=False)
    """Codes that refuse a second record with a value that must be unique."""

    def __post_init__(self) -> None:
        document = self.catalogue.document
        self.conformity = Conformity(document, self.showing)
        self.defaults = _defaults(document)
        self.unique = frozenset(key.code for keys in document.unique.values() for key in keys)

    def answered(self, probe: Probe, status: int) -> None:
        """Note that the answer to a probe was judged."""
        assert probe.operation is not None
        about = probe.about or probe.operation
        self.statuses[probe.operation.id].add(status)
        if probe.group in GROUPS:
            self.groups[probe.operation.id].add(probe.group)
            self.groups[about.id].add(probe.group)
        if probe.suspect:
            self.suspected[probe.suspect].add(about.id)


class Judge:
    """One per journey."""

    def __init__(self, run: Run, roles: Roles) -> None:
        self.comparing = Comparing(roles, run.constants, run.defaults, run.clock)
        self._run = run
        # Values that differ, with the class, the operation and the pointer that were reported.
        self._departed: dict[tuple[str, str], tuple[str, Operation | None, str]] = {}

    def findings(self, probe: Probe, exchange: Exchange, twins: tuple[Answer, Answer], moment: Moment) -> list[Finding]:
        """In what the target departs from both twins: findings of one class, and those of `BESIDE`."""
        operation = probe.operation
        found = self._run.conformity.findings(self._without_strange(exchange, operation), operation, probe.group)
        own = self._status(probe, exchange, twins[0])
        found += self._values(probe, exchange, twins, moment) if own is None else [own]
        found.sort(key=lambda finding: RANKS[finding.kind])
        main = [finding for finding in found if finding.kind not in BESIDE]
        main = [each for each in main if each.kind == main[0].kind] if main and main[0].kind in _SEVERAL else main[:1]
        return [*main, *(finding for finding in found if finding.kind in BESIDE)]

    def findings_alone(self, probe: Probe, exchange: Exchange) -> list[Finding]:
        """In what the target departs, without a twin: by the contract, and by the order that was asked for."""
        status = exchange.answer.status
        found = self._run.conformity.findings(exchange, probe.operation, probe.group)
        if not found and status < 300 and probe.suspect == "sort":
            found = [*self._sorted(probe, exchange)]
        if not found and 300 <= status < 500:
            title = f"{probe.learns}: answered {status}, expected 200."
            found = [self._finding("stricter", probe, exchange, Said(200, "an answer"), "refused", title)]
        return found

    def flaw(self, flaw: Flaw, probe: Probe, exchange: Exchange) -> Finding:
        """The finding of a flaw in the answer to a probe."""
        expected = Said(exchange.answer.status, flaw.expected)
        return self._finding(flaw.kind, probe, exchange, expected, flaw.title, f"{flaw.title}.")

    # -- the status

    def _status(self, probe: Probe, exchange: Exchange, twin: Answer) -> Finding | None:
        target = exchange.answer
        if target.status == 0 or target.status >= 500:
            return None  # the contract allows neither
        codes = code_of(target.json()), code_of(twin.json())
        if probe.operation is None:
            is_no = target.status in (404, 405)
            return (
                None
                if is_no
                else self._unlike("undocumented-operation", probe, exchange, twin, f"{probe.learns} is answered")
            )
        if target.status == twin.status:
            if target.status < 400 or codes[0] == codes[1]:
                return None
            code = "without a code" if codes[0] is None else f"with the code {self._run.showing.name(codes[0])}"
            title, cause = f"{probe.learns}: {target.status} {code}.", f"code {codes[0]} for {codes[1]}"
            return self._finding("error-code", probe, exchange, self._run.showing.said(twin), cause, title)
        if target.is_success and twin.is_success:
            return self._unlike("wrong-status", probe, exchange, twin, f"{target.status} for {twin.status}")
        cause = probe.learns.rpartition(": ")[2]  # what is refused or accepted in a body or a parameter
        if twin.is_success:
            kind = {401: "auth", 403: "scope"}.get(target.status) or probe.suspect or "stricter"
            return self._unlike(kind, probe, exchange, twin, cause)
        if target.is_success:
            kind = {401: "auth", 403: "scope"}.get(twin.status, "") or probe.suspect or self._laxer(codes[1])
            cause = str(codes[1]) if kind == "laxer" and twin.status == 409 else cause  # a rule between several members
            return self._unlike(kind, probe, exchange, twin, cause)
        kind = probe.suspect if probe.suspect in ("auth", "scope") else "wrong-status"
        return self._unlike(kind, probe, exchange, twin, f"{target.status} for {twin.status}")

    def _laxer(self, code: str | None) -> str:
        """The class of a success in place of a refusal with a code."""
        if code is not None and code in self._run.unique:
            return "uniqueness"
        return {"idempotency_key_reused": "idempotency", "reference_not_found": "reference"}.get(code or "", "laxer")

    # -- the values

    def _values(
        self, probe: Probe, exchange: Exchange, twins: tuple[Answer, Answer], moment: Moment
    ) -> Iterator[Finding]:
        bodies = exchange.answer.json(), twins[0].json(), twins[1].json()
        if probe.operation is None or exchange.answer.status >= 300 or twins[0].status >= 300 or bodies[0] is None:
            return
        steps = self._run.catalogue.entries_at(probe.operation)
        if steps is None and not _is_own(probe):
            return
        if probe.suspect == "paging":  # which records are on a page depends on the order of those of one instant
            theirs, ours = (at(body, steps or ()) for body in bodies[:2])
            if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) != len(ours):
                difference = Difference(steps or (), f"{len(ours)} entries", f"{len(theirs)} entries", "list")
                yield self._differs(probe, exchange, difference)
            return
        differences = [*self.comparing.differences(*bodies, moment, None if probe.narrowed else steps)]
        sizes = [len(at(body, steps) or ()) for body in bodies[:2]] if steps else []
        if steps and sizes[0] != sizes[1] and probe.suspect != "filter":  # totals follow from that
            differences = [each for each in differences if each.at[: len(steps)] == steps]
        strange = [each for each in differences if each.kind == "filter"]
        for difference in strange or differences:  # what else differs follows from strange records
            yield self._differs(probe, exchange, difference)
        if probe.suspect == "sort":
            yield from self._sorted(probe, exchange)

    def _differs(self, probe: Probe, exchange: Exchange, difference: Difference) -> Finding:
        operation = probe.operation
        assert operation is not None
        member, kind = ".".join(difference.at) or "the body", difference.kind
        got, wanted = str(difference.got), str(difference.expected)
        if kind in ("list", "filter", "not-deleted"):
            title = f"{probe.learns}: {member} has {got}."
        elif kind == "reference":
            got = self._run.showing.value(difference.got)
            title = f"{probe.learns}: {member} is not {wanted}."
        else:
            got, wanted = (self._run.showing.value(value) for value in (difference.got, difference.expected))
            title = f"{probe.learns}: {member} is {got}, not {wanted}."
        known = member.rpartition(".")[2], got
        if kind == "filter" and probe.narrowed:  # the list is not narrowed to the journey's records
            name = next(iter(probe.query))
            number = next(n for n, parameter in enumerate(operation.parameters) if parameter.name == name)
            pointer = pointer_of(operation, "parameters", number)
            probe = replace(probe, about=None, learns=f"filtered by {name}", pointer=pointer)
            title = f"{probe.learns}: {member} has {got}."
        elif kind == "not-deleted":
            gone_by = self.comparing.deleted[got.rpartition(" ")[2]]
            probe = replace(probe, about=gone_by, pointer=pointer_of(gone_by))
        elif known in self._departed:
            kind, about, pointer = self._departed[known]
            probe = replace(probe, about=about, pointer=pointer)
        elif kind == "not-persisted" and probe.suspect not in ("lifecycle", "idempotency"):
            name = next(step for step in difference.at if step in self.comparing.writers)
            writer = self.comparing.writers[name]
            probe = replace(probe, about=writer, pointer=below(body_of(writer), "properties", name))
            self._departed[known] = kind, writer, probe.pointer
        elif kind in ("value", "reference", "not-persisted") and probe.suspect not in _SURE:
            kind = "value" if kind == "not-persisted" else kind
            probe = replace(
                probe, about=None, pointer=self._member_at(operation, exchange.answer.status, difference.at)
            )
            self._departed[known] = kind, None, probe.pointer
        elif kind != "filter" and probe.suspect:
            kind = probe.suspect
        elif kind == "list":
            kind = "value"
        expected = Said(exchange.answer.status, f"{member}: {wanted}")
        return self._finding(kind, probe, exchange, expected, member, title, got=f"{member}: {got}")

    def _member_at(self, operation: Operation, status: int, steps: Steps) -> str:
        """The pointer to the schema of a member of an answer."""
        where = pointer_of(operation, "responses", status, "content", JSON, "schema")
        response = operation.responses.get(status)
        if response is None or JSON not in response.media:
            return pointer_of(operation, "responses")
        places = Places(self._run.catalogue.document)
        found = places.of(where, response.media[JSON])
        for step in steps:
            while any(place.schema.get("type") == "array" for place in found):
                found = places.step(found, 0)
            found = places.step(found, step) or found
        return found[0].pointer

    def _sorted(self, probe: Probe, exchange: Exchange) -> Iterator[Finding]:
        assert probe.operation is not None
        steps = self._run.catalogue.entries_at(probe.operation)
        entries = at(exchange.answer.json(), steps) if steps else None
        option = str(probe.query.get("sort", ""))
        key = option.removeprefix("-")
        values: list[Any] = [entry.get(key) for entry in entries or () if isinstance(entry, dict)]
        kinds = {type(value) for value in values}
        if len(kinds) != 1 or not kinds <= {str, int, float}:
            return
        if kinds == {str} and not probe.narrowed and any(instant_of(value) is None for value in values):
            return  # how a target orders letters and accents is not in the contract
        values = [value.casefold() if isinstance(value, str) else value for value in values]
        if values != sorted(values, reverse=option.startswith("-")):
            title = f"The entries are not in the order of {option}."
            yield self._finding("sort", probe, exchange, Said(200, f"entries by {option}"), option, title)

    # -- findings

    def _unlike(self, kind: str, probe: Probe, exchange: Exchange, twin: Answer, cause: str) -> Finding:
        """A finding about the status."""
        title = f"{probe.learns}: answered {exchange.answer.status}, expected {twin.status}."
        return self._finding(kind, probe, exchange, self._run.showing.said(twin), cause, title)

    def _finding(
        self, kind: str, probe: Probe, exchange: Exchange, expected: Said, cause: str, title: str, got: str = ""
    ) -> Finding:
        said = self._run.showing.said(exchange.answer, exchange.request)
        about = probe.about or probe.operation
        name = "" if about is None else about.id
        pointer = probe.pointer
        if about is not None and kind in ("wrong-status", "error-code"):
            pointer = pointer_of(about, "responses")
        return Finding(
            kind,
            name,
            probe.group,
            pointer,
            cause,
            f"{name or probe.path} · {title}",
            self._run.showing.shown(exchange.request, probe.operation),
            Said(said.status, got) if got else said,
            expected,
        )

    def _without_strange(self, exchange: Exchange, operation: Operation | None) -> Exchange:
        """The exchange, with no strange records in a list."""
        steps = None if operation is None else self._run.catalogue.entries_at(operation)
        body = exchange.answer.json() if steps and self._run.strange else None
        entries = at(body, steps or ())
        if not isinstance(entries, list):
            return exchange
        entries[:] = [e for e in entries if not isinstance(e, dict) or e.get("id") not in self._run.strange]
        return exchange._replace(answer=exchange.answer._replace(body=orjson.dumps(body)))


def _is_own(probe: Probe) -> bool:
    """Whether an answer is about what the journey made."""
    return bool(probe.makes) or probe.method != "GET" or any(roles_in([probe.path, *probe.query.values()]))


def _defaults(document: Document) -> Mapping[str, set[Any]]:
    """By the name of a member: its defaults in requests, and the states of records."""
    made: dict[str, set[Any]] = {"error": {True, False}}
    for schema in document.raw["components"]["schemas"].values():
        for name, node in schema.get("properties", {}).items():
            default = document.resolve(node).get("default")
            if isinstance(default, (str, bool)):
                made.setdefault(name, set()).add(default)
    for lifecycle in document.lifecycles.values():
        states: set[Any] = {True, False} if lifecycle.field.startswith("is_") else set(lifecycle.states)
        made.setdefault(lifecycle.field, set()).update(states)
    return made
