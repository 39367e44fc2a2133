"""Says in what the answer to a probe departs: by the contract, by what both twins answered, and by
what was sent.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...contract.document import JSON, Document, Operation
from .catalogue import Catalogue, Steps, at, below, body_of, paths_in, pointer_of, queried, within
from .cleanup import Cleanup
from .comparing import Comparing, Difference, instant_of
from .conformity import Conformity
from .exchange import Answer, Exchange, code_of
from .findings import BESIDE, GROUPS, RANKS, Departure, Finding, Said
from .probes import Flaw, Probe, Roles, roles_in
from .showing import Showing
from .target import Rights, Target

_INVALID = (400, 422)
_SEVERAL = frozenset(("schema", "value"))
"""Classes of which an answer may have several findings, each with its own cause."""


@dataclass(slots=True)
class Run:
    """What the journeys of a run share, and what it has learned.

    - A change must show in what is read within `settle` seconds.
    - `statuses` and `groups` are by operationId; `suspected` has operationIds by class.
    - `chosen` are the operationIds that the run was about.
    - `away` is a clause that says why the target could not be asked any more.
    - `constants` are values that the twins share and that follow from nothing: theirs and the
      target's, by place.
    - `created` has each `createdAt` of the target's new records, in seconds since 1970.
    - `unanswered` operations may have changed something without an answer.
    - `needs` has, by operationId, the creating operations of the records that a request needs.
    - `asked_for` has, by operationId, members with values that the target asks for and the contract
      does not have.
    - `shown` has the places of all members that the target has answered.
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
    constants: dict[Steps, tuple[Any, Any]] = field(default_factory=dict)
    created: set[float] = field(default_factory=set)
    unanswered: list[Operation] = field(default_factory=list)
    shown: set[Steps] = field(default_factory=set)
    asked_for: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    needs: dict[str, list[str]] = field(default_factory=dict)
    conformity: Conformity = field(init=False)
    defaults: Mapping[str, set[Any]] = field(init=False)
    states: set[Steps] = field(init=False)
    unique: frozenset[str | None] = field(init=False)
    """Codes that refuse a second record with a value that must be unique."""

    def __post_init__(self) -> None:
        document = self.catalogue.document
        self.conformity = Conformity(document, self.showing)
        self.defaults = _defaults(document)
        self.states = {(lifecycle.field,) for lifecycle in document.lifecycles.values()}
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
        self.comparing = Comparing(roles, run.constants, run.defaults, run.created)
        self._run = run
        self.has_strange = False
        """Whether only one side has a record of this journey: figures count it."""
        self._departed: set[Steps] = set()  # places of values that are not as expected

    def findings(
        self, probe: Probe, exchange: Exchange, twins: tuple[Answer, Answer], took: float
    ) -> list[Finding]:
        """In what the target departs from both twins: findings of one class, and
        those of `BESIDE`. Asking all three took `took` seconds.

        Of a twin that was not asked, the answer is an empty 200.
        """
        if probe.operation is not None and exchange.answer.is_success:
            self._run.shown |= {*paths_in(exchange.answer.json())}
        status = self._status(probe, exchange.answer, twins[0])
        found = [*self._run.conformity.departures(exchange, probe.operation)]
        if status is not None:
            found.append(status)
        else:
            found += self._values(probe, exchange.answer, twins, took)
        found.sort(key=lambda each: RANKS[each.kind])
        main = [each for each in found if each.kind not in BESIDE]
        is_plural = bool(main) and main[0].kind in _SEVERAL
        main = [each for each in main if each.kind == main[0].kind] if is_plural else main[:1]
        return self._shown(
            probe, exchange, [*main, *(each for each in found if each.kind in BESIDE)]
        )

    def flaw(self, flaw: Flaw, probe: Probe, exchange: Exchange) -> list[Finding]:
        """The finding of a flaw in the answer to a probe."""
        expected = Said(exchange.answer.status, flaw.expected)
        return self._shown(
            probe,
            exchange,
            [self._departure(flaw.kind, probe, expected, flaw.title, f"{flaw.title}.")],
        )

    def _shown(self, probe: Probe, exchange: Exchange, found: list[Departure]) -> list[Finding]:
        return [
            self._run.showing.finding(each, exchange, probe.operation, probe.group)
            for each in found
        ]

    def _departure(
        self, kind: str, probe: Probe, expected: Said, cause: str, title: str, got: str = ""
    ) -> Departure:
        about = probe.about or probe.operation
        assert about is not None
        is_refusal = kind in ("wrong-status", "error-code")
        pointer = pointer_of(about, "responses") if is_refusal else probe.pointer
        return Departure(kind, pointer, cause, f"{about.id} · {title}", expected, got, about.id)

    # -- the status

    def _status(self, probe: Probe, target: Answer, twin: Answer) -> Departure | None:
        if target.status == 0 or target.status >= 500 or probe.operation is None:
            return None  # the contract says what departs
        if target.status == twin.status:
            return self._code(probe, target, twin) if target.status >= 400 else None
        # what is refused or accepted in a body or a parameter
        cause = probe.learns.rpartition(": ")[2]
        refused = {401: "auth", 403: "scope"}
        if target.is_success is twin.is_success:
            is_credential = probe.suspect in refused.values() and not twin.is_success
            # what is invalid too says nothing about a credential
            is_sure = is_credential and target.status not in _INVALID
            kind = probe.suspect if is_sure else "wrong-status"
            cause = f"{target.status} for {twin.status}"
        elif twin.is_success:
            suspect = "" if target.status in _INVALID else probe.suspect
            kind = refused.get(target.status) or suspect or "stricter"
        else:
            code = str(code_of(twin.json()))
            kind = refused.get(twin.status) or probe.suspect or self._laxer(code)
            if kind == "laxer" and twin.status == 409:
                cause = code  # a rule between several members
        title = f"{probe.learns}: answered {target.status}, expected {twin.status}."
        return self._departure(kind, probe, self._run.showing.said(twin), cause, title)

    def _code(self, probe: Probe, target: Answer, twin: Answer) -> Departure | None:
        code, expected = code_of(target.json()), code_of(twin.json())
        if code == expected:
            return None
        named = (
            "without a code" if code is None else f"with the code {self._run.showing.name(code)}"
        )
        said, cause = self._run.showing.said(twin), f"code {code} for {expected}"
        return self._departure(
            "error-code", probe, said, cause, f"{probe.learns}: {target.status} {named}."
        )

    def _laxer(self, code: str) -> str:
        """The class of a success in place of a refusal with a code."""
        if code in self._run.unique:
            return "uniqueness"
        return {"idempotency_key_reused": "idempotency", "reference_not_found": "reference"}.get(
            code, "laxer"
        )

    # -- the values

    def _values(
        self, probe: Probe, target: Answer, twins: tuple[Answer, Answer], took: float
    ) -> Iterator[Departure]:
        if probe.suspect == "sort" and target.is_success:
            yield from self._sorted(probe, target)
        bodies = target.json(), twins[0].json(), twins[1].json()
        if (
            probe.operation is None
            or probe.is_alone
            or target.status >= 300
            or twins[0].status >= 300
            or bodies[0] is None
        ):
            return
        steps = self._run.catalogue.entries_at(probe.operation)
        if steps is None and not _is_own(probe):
            return
        theirs, ours = (len(at(body, steps) or ()) if steps else 0 for body in bodies[:2])
        # which records are on a page depends on the order of those of one instant
        if probe.suspect == "paging":
            if theirs != ours:
                title = f"{probe.learns}: {theirs} entries, not {ours}."
                yield self._departure(
                    "paging", probe, Said(target.status, f"{ours} entries"), "entries", title
                )
            return
        entries = None if probe.narrowed else steps
        differences = [*self.comparing.differences(*bodies, took, entries)]
        if steps and theirs != ours and probe.suspect != "filter":  # totals follow from that
            differences = [each for each in differences if each.at[: len(steps)] == steps]
        if self.has_strange:
            differences = [
                each
                for each in differences
                if each.kind == "not-persisted" or not _is_number(each.expected)
            ]
        strange = [each for each in differences if each.kind == "filter"]
        for difference in strange or differences:  # what else differs follows from strange records
            yield self._differs(probe, target.status, difference)

    def _differs(self, probe: Probe, status: int, difference: Difference) -> Departure:
        operation, kind, learns = probe.operation, difference.kind, probe.learns
        assert operation is not None
        member = ".".join(difference.at) or "the body"
        got, wanted = str(difference.got), str(difference.expected)
        if kind not in ("list", "filter", "not-deleted"):
            got = self._run.showing.value(difference.got)
            wanted = wanted if kind == "reference" else self._run.showing.value(difference.expected)
        about, pointer = probe.about or operation, probe.pointer
        if kind == "filter" and probe.narrowed:  # the list is not narrowed to the journey's records
            name = next(iter(probe.query))
            about, pointer, learns = operation, queried(operation)[name][0], f"filtered by {name}"
        elif kind == "not-deleted":
            about = self.comparing.deleted[got.rpartition(" ")[2]]
            pointer = pointer_of(about)
        elif self._is_confirmed(probe.suspect, difference):
            kind = probe.suspect
        elif difference.writer is not None:
            about = difference.writer
            pointer = below(body_of(about), "properties", difference.member)
        else:
            kind = "value" if kind == "list" else kind
            about, pointer = operation, self._member_at(operation, status, difference.at)
        self._departed.add(difference.at)
        title = f"{learns}: {member} has {got}, not {wanted}."
        probe = replace(probe, about=about, pointer=pointer)
        return self._departure(
            kind, probe, Said(status, f"{member}: {wanted}"), member, title, f"{member}: {got}"
        )

    def _is_confirmed(self, suspect: str, difference: Difference) -> bool:
        """Whether a value is what the probe has suspected, and not one that departs
        elsewhere too.
        """
        match suspect:
            case "lifecycle":  # else the state was written by its name
                return difference.writer is None and difference.at[-1:] in self._run.states
            case "figures":
                return _is_number(difference.expected)
            case "idempotency":
                return difference.kind == "reference" or difference.at not in self._departed
        return bool(suspect) and difference.kind == "list"

    def _member_at(self, operation: Operation, status: int, steps: Steps) -> str:
        """The pointer to the schema of a member of an answer."""
        document = self._run.catalogue.document
        pointer = pointer_of(operation, "responses", status, "content", JSON, "schema")
        for step in steps:
            while within(document, pointer, ())[1].get("type") == "array":
                pointer, _, _ = within(document, pointer, [0])
            pointer, _, _ = within(document, pointer, [step])
        return pointer

    def _sorted(self, probe: Probe, target: Answer) -> Iterator[Departure]:
        assert probe.operation is not None
        steps = self._run.catalogue.entries_at(probe.operation)
        entries = at(target.json(), steps) if steps else None
        option = str(probe.query.get("sort", ""))
        key = option.removeprefix("-")
        values: list[Any] = [entry.get(key) for entry in entries or () if isinstance(entry, dict)]
        kinds = {type(value) for value in values}
        if len(kinds) != 1 or not kinds <= {str, int, float}:
            return
        if (
            kinds == {str}
            and not probe.narrowed
            and any(instant_of(value) is None for value in values)
        ):
            return  # how a target orders letters and accents is not in the contract
        values = [value.casefold() if isinstance(value, str) else value for value in values]
        if values != sorted(values, reverse=option.startswith("-")):
            title = f"The entries are not in the order of {option}."
            yield self._departure("sort", probe, Said(200, f"entries by {option}"), option, title)


def _is_own(probe: Probe) -> bool:
    """Whether an answer is about what the journey made."""
    return (
        bool(probe.makes)
        or probe.method != "GET"
        or any(roles_in([probe.path, *probe.query.values()]))
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _defaults(document: Document) -> Mapping[str, set[Any]]:
    """By the name of a member: its defaults in requests, and the states of records."""
    made: dict[str, set[Any]] = {"error": {True, False}}
    for schema in document.raw["components"]["schemas"].values():
        for name, node in schema.get("properties", {}).items():
            default = document.resolve(node).get("default")
            if isinstance(default, (str, bool)):
                made.setdefault(name, set()).add(default)
    for lifecycle in document.lifecycles.values():
        states: set[Any] = (
            {True, False} if lifecycle.field.startswith("is_") else set(lifecycle.states)
        )
        made.setdefault(lifecycle.field, set()).update(states)
    return made
