"""Says in what the answer to a probe departs: by the contract, by what the twin answered, and by
what was sent.
"""

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ...contract.document import JSON, Document, Operation
from ...contract.pointers import below, within
from ...contract.source import fixture
from ...core.record import Body
from .catalogue import (
    Catalogue,
    Steps,
    body_of,
    entries_of,
    is_list,
    leaves,
    pointer_of,
    queried,
)
from .cleanup import Cleanup
from .comparing import Comparing, Difference, folded, is_number
from .exchange import Answer, Exchange, base_of, code_of
from .findings import CLASSES, RANKS, Finding, Got, Said
from .merging import Ledger
from .options import Options
from .probes import GIVEN, NONE, SETUP, WRONG, Flaw, Probe, Roles, roles_in
from .target import Target

INVALID = (400, 422)
_LISTS = ("list", "more", "filter")
_REFUSED = {401: "auth", 403: "scope"}


class Run(Ledger):
    """What the journeys of a run share, and what it has learned."""

    def __init__(self, options: Options, on_exchange: Callable[[Exchange], None]) -> None:
        """Raises ContractError."""
        mode = "write" if options.write else "read"
        super().__init__(options.overlays, base_of(options.url), mode)
        document = self.document
        self.options, self.catalogue = options, Catalogue(document)
        self.target, self.showing.token = Target(options, on_exchange), options.token
        self.tag = secrets.token_hex(3)
        """Differs from run to run."""
        self.cleanup = Cleanup(self.catalogue, self.target, f"verify-{self.tag}")
        self.demanded: dict[str, Body] = defaultdict(dict)
        """What creations demand that the contract lacks, by operationId."""
        self.instead: dict[str, Body] = defaultdict(dict)
        """By operationId, values of required members that a creation accepts in place of those of
        the examples, and that the contract lists too.
        """
        self.closed: dict[str, str] = {}
        """Why operations are out of the credential's reach, by operationId."""
        chosen = filter(options.includes, document.operations.values())
        self.chosen = [operation.id for operation in chosen]
        """The operationIds that the run is about."""
        self.created: set[float] = set()
        """Each `createdAt` of the target's new records, in seconds since 1970."""
        self.unanswered = 0
        """Requests that may have changed something without an answer."""
        self.seconds = 0.0
        self.away = ""
        """A clause that says why the target could not be asked any more."""
        self.is_late, self.is_interrupted = False, False


class Judge:
    """One per journey."""

    def __init__(self, run: Run, roles: Roles) -> None:
        self.comparing = Comparing(roles, _assumed(run.document), run.created)
        self._run = run
        codes = [str(key.code) for keys in run.document.unique.values() for key in keys if key.code]
        known: dict[str, str] = fixture("verify.yaml")["refusals"]
        self._kinds = dict.fromkeys(codes, "uniqueness") | known
        """Classes of what is accepted or refused by one side alone, by the code of the refusal."""
        self.has_strange = False
        """Whether only one side has a record of this journey, or a change of one: figures and
        searches show it.
        """
        # by the places of values that are not as expected, what was found to be their cause
        self._departed: dict[Steps, Operation] = {}

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
                found += self._values(probe, answer, twin, took)
        found.sort(key=lambda each: RANKS[each.kind])
        chosen = []
        for each in found:
            is_of_line = each.kind == found[0].kind and "by_line" in CLASSES[each.kind]
            if each is found[0] or is_of_line or "beside" in CLASSES[each.kind]:
                chosen.append(each)
        showing = self._run.showing
        return [showing.finding(each, exchange, probe.operation, probe.group) for each in chosen]

    def flaw(self, flaw: Flaw, probe: Probe, exchange: Exchange) -> Finding:
        """The finding of a flaw in the answer to a probe."""
        expected = Said(next(iter(probe.operation.successes), 200), flaw.expected)
        found = self._found(flaw.kind, probe, expected, flaw.title)
        return self._run.showing.finding(found, exchange, probe.operation, probe.group)

    def _found(
        self, kind: str, probe: Probe, expected: Said, title: str, got: Got | None = None
    ) -> Finding:
        about, pointer = probe.about, probe.pointer
        if kind in ("wrong-status", "error-code"):
            pointer = pointer_of(about, "responses")
        elif kind == "demanded":
            pointer = body_of(about)
        elif kind == "lifecycle":  # which request has found it says no more
            pointer = pointer_of(about)
        place, _, tries = probe.learns.rpartition(": ")
        title = f"{about.id} · {title}."
        return Finding(kind, pointer, title, expected, got, about.id, place, tries)

    def _status(self, probe: Probe, target: Answer, twin: Answer) -> Iterator[Finding]:
        # what is invalid too says nothing about a credential or a state
        suspect = "" if target.status in INVALID else probe.suspect
        title = f"{probe.learns}: answered {target.status}, expected {twin.status}"
        if probe.expects and target.is_success is twin.is_success:
            return
        if twin.status == 404 and probe.group == SETUP:
            return  # the twin has refused to make what this removes
        if self._is_harmless(probe, target, twin):
            return
        if target.status == twin.status:
            expected = code_of(twin.json())
            if target.is_success or expected == code_of(target.json()):
                return
            kind = "error-code"
            title = f"{probe.learns}: {target.status} without the code {expected}"
        elif target.status == 401 and probe.credential not in (GIVEN, NONE, WRONG):
            kind = "api-key"
        elif target.is_success is twin.is_success:
            kind = suspect if suspect in _REFUSED.values() else "wrong-status"
        else:
            refusal = twin if target.is_success else target
            rights = suspect if suspect == "auth" else _REFUSED.get(refusal.status)
            kind = rights or suspect or self._kind(probe, refusal, twin)
        if kind == "read-only":
            written = probe.body[probe.pointer.rpartition("/")[2]]
            if folded(written) not in map(folded, leaves(target.json())):
                return  # it has ignored the member
        yield self._found(kind, probe, self._run.showing.said(twin), title)

    def _kind(self, probe: Probe, refusal: Answer, twin: Answer) -> str:
        """The class of a request that one side alone refuses."""
        if refusal is not twin:
            other = "refused-creation" if probe.group == SETUP else "stricter"
        else:
            other = "rule" if twin.status == 409 else "laxer"
        return self._kinds.get(str(code_of(refusal.json())), other)

    def _is_harmless(self, probe: Probe, target: Answer, twin: Answer) -> bool:
        """Whether another credential than the caller's is refused what the contract shows to it, or
        is shown an empty list of what belongs to others.
        """
        if probe.credential in (GIVEN, NONE):
            return False
        is_of_others = probe.credential == self._run.options.other or not probe.suspect
        if target.is_success and is_of_others and is_list(probe.operation):
            return not entries_of(target.json())
        return twin.is_success and target.status == 403

    def _values(self, probe: Probe, target: Answer, twin: Answer, took: float) -> Iterator[Finding]:
        body, names_own = target.json(), any(roles_in([probe.path, *probe.query.values()]))
        is_own = probe.makes or probe.operation.method != "GET" or names_own
        if is_list(probe.operation):
            is_own = probe.narrowed
        # which records are on a page depends on the order of those of one instant
        if probe.expects or body is None or not is_own or probe.suspect == "paging":
            return
        found = [*self.comparing.differences(body, twin.json(), took)]
        has_others = self.has_strange or any(each.kind in _LISTS for each in found)
        for each in found:
            is_figure = is_number(each.expected) and each.kind != "not-persisted"
            # what is there beside has been found as it was made, or not deleted
            is_known = each.kind == "more" and probe.suspect not in ("filter", "not-deleted")
            if not is_known and not (is_figure and has_others):
                yield self._differs(probe, twin.status, each)

    def _differs(self, probe: Probe, status: int, it: Difference) -> Finding:
        kind, member, operation = it.kind, ".".join(it.at) or "the body", probe.operation
        inside = Steps()
        got = self._run.showing.value(member, it.got)
        wanted = self._run.showing.value(member, it.expected)
        if kind == "filter" and probe.narrowed:  # it is not, to the journey's records
            name = next(iter(probe.query))
            where = queried(operation)[name][0]
            probe = replace(probe, about=operation, pointer=where, learns=f"filtered by {name}")
        elif self._is_confirmed(probe, it):
            kind = probe.suspect
        elif it.writer is not None:
            inside, writer = it.at[it.at.index(it.member) :], it.writer
            where = within(self._run.document, body_of(writer), inside)[0]
            if where.endswith("additionalProperties"):  # of a map, whose names are free
                inside = (it.member,)
                where = below(body_of(writer), "properties", it.member)
            if writer != probe.about:  # an update must leave alone what it does not have
                for kept in self._run.catalogue.resources.values():
                    if kept.update == probe.about and kept.read is not None:
                        writer = probe.about
                writer = self._departed.get(it.at, writer)
            probe = replace(probe, about=writer, pointer=where)
        else:
            kind = {"list": "value", "more": "value"}.get(kind, kind)
            if kind == "value" and is_number(it.expected):
                kind = "figures"
            root = pointer_of(operation, "responses", status, "content", JSON, "schema")
            where = within(self._run.document, root, it.at)[0]
            probe = replace(probe, about=operation, pointer=where)
        self._departed.setdefault(it.at, probe.about)
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
        return difference.writer is None and not states.isdisjoint(difference.at[-1:])


def _assumed(document: Document) -> set[Any]:
    """The values that records have unless a request says otherwise: defaults, and states."""
    found: set[Any] = {True, False}
    for schema in document.raw["components"]["schemas"]:
        defaults = document.defaults(schema).values()
        found.update(each for each in defaults if isinstance(each, str))
    for lifecycle in document.lifecycles.values():
        found.update(lifecycle.states)
    return found
