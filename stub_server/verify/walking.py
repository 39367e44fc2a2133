"""Walks one journey: sends each probe to the target and to both twins, and says in what the target departs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from time import monotonic, time
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from ..contract.document import JSON, Document, Operation
from .building import costs
from .comparing import Comparing, Difference, Moment, Steps, TargetClock, instant_of
from .conformity import Conformity
from .exchange import Answer, Exchange, Request, bearer, code_of
from .findings import BESIDE, RANKS, Finding, Said
from .places import Places, pointer_of
from .probe import GIVEN, NONE, WRONG, Flaw, Journey, Probe, Seen
from .resources import Catalogue, at
from .roles import Names, Roles, placeholder, roles_in
from .showing import Showing
from .target import TRIES, Limited, Over, Target
from .twin import Fork

_WRONG = "verify.no.credential"
_PAUSES = (0.1, 0.3, 0.6, 1.0)


class Run(NamedTuple):
    """What the journeys of a run share."""

    document: Document
    catalogue: Catalogue
    conformity: Conformity
    showing: Showing
    target: Target
    constants: dict[Steps, tuple[Any, Any]]
    clock: TargetClock
    defaults: Mapping[str, set[Any]]
    unique: frozenset[str]
    unknown_id: str
    settle: float
    kept: Callable[[Finding], None]
    answered: Callable[[Probe, int], None]
    """Told of each answer that was judged, by its status."""
    unanswered: list[Operation]
    """Those that were sent to change something, and may have done so without an answer."""
    strange: set[str]
    """Ids of records that the target made of what the contract refuses: that they are so is told already."""


class Walk:
    """One journey."""

    def __init__(
        self,
        run: Run,
        token: str,
        forks: tuple[Fork, Fork],
        made: Callable[[Operation, str], None],
        gone: Callable[[str], None],
    ) -> None:
        """`token` is the target's credential; `made` and `gone` are told of records of the target by their ids."""
        self._run, self._token, self._forks, self._made, self._gone = run, token, forks, made, gone
        self.roles = Roles()
        self._has_departed = self._is_lost = False
        self._departed: dict[tuple[str, str], str] = {}  # values that differ: what is read later is no other departure
        self._comparing = Comparing(self.roles, run.constants, self._follows, run.clock)
        self.roles.play("the unknown id", Names(run.unknown_id, run.unknown_id, run.unknown_id))

    def _follows(self, steps: Steps) -> Any:
        """The states that a member of a record may have; what defaults say."""
        return self._run.defaults.get(steps[-1] if steps else "")

    async def go(self, journey: Journey) -> None:
        """Send the probes in order, until the target's records are no longer what the twins' are."""
        await self._ask_nowhere()
        seen: Seen | None = None
        last: tuple[Probe, Exchange] | None = None
        while True:
            try:
                probe = next(journey.steps) if seen is None else journey.steps.send(seen)
            except StopIteration:
                return
            if isinstance(probe, Flaw):
                assert last is not None
                self._run.kept(self._flaw(probe, *last))
                continue
            try:
                seen = await self._probe(probe)
                last = probe, Exchange(self._request(probe, 0), seen.target)
            except KeyError:  # a role that nothing plays: what makes it was refused
                return
            if self._is_lost or (probe.keeps and not seen.is_alike):
                return
            check = self._check(probe, seen)
            if check is not None:
                await self._probe(check)
                if self._has_departed:
                    return

    async def _ask_nowhere(self) -> None:
        """Have the target say what a path is that nobody has, so that a 404 of an operation can be told from it."""
        if not self._run.conformity.knows_nowhere:
            request = Request("GET", "/v2/verify-unknown", "", bearer(self._token))
            self._run.conformity.learn_nowhere(Exchange(request, await self._run.target.send(request, TRIES)))

    def _check(self, probe: Probe, seen: Seen) -> Probe | None:
        """A read that shows whether what was just made or changed is so; None where nothing reads it by its id."""
        operation = probe.operation
        if operation is None or not probe.is_checked or not 200 <= seen.twin.status < 300 or not seen.is_alike:
            return None
        for resource in self._run.catalogue.resources.values():
            key = f"{{{resource.key}}}"
            if resource.read is None:
                continue
            if operation in resource.creates and probe.makes:
                path = resource.read.path.replace(key, placeholder(probe.makes))
            elif operation == resource.update:
                path = probe.path
            else:
                continue
            return Probe(
                resource.read, "GET", path, "remembers", f"what {operation.id} said", pointer_of(operation),
                suspect="not-persisted", about=operation,
            )  # fmt: skip
        return None

    def _flaw(self, flaw: Flaw, probe: Probe, exchange: Exchange) -> Finding:
        expected = Said(exchange.answer.status, flaw.expected)
        return self._departs(flaw.kind, probe, exchange, expected, flaw.title, f"{flaw.title}.")

    async def _probe(self, probe: Probe) -> Seen:
        if probe.is_alone:
            return await self._probe_alone(probe)
        requests = [self._request(probe, party) for party in range(3)]
        self._comparing.sent(probe.body)
        self._comparing.sent(dict(probe.query))
        answer = await self._ask(probe, requests[0])  # first: it may have to wait, and the twins' clocks go on
        began = time()
        first, second = await asyncio.gather(*(f.send(r) for f, r in zip(self._forks, requests[1:], strict=True)))
        ended = time()
        seen = Seen(answer, first, answer.json(), first.json())
        if self._is_lost and not self._is_to_tell(probe, seen.target):
            self._learn(probe, seen, second)
            return seen
        moment = Moment(began - answer.seconds, began, began, answer.seconds + ended - began)
        findings = self._judged(probe, requests, seen, second, moment)
        if findings and probe.method == "GET" and probe.credential == GIVEN:
            until = monotonic() + self._run.settle
            for pause in _PAUSES:
                if not findings or monotonic() + pause > until or findings[0].kind not in _SETTLING:
                    break
                await asyncio.sleep(pause)
                answer = await self._ask(probe, requests[0])
                seen = Seen(answer, first, answer.json(), first.json())
                moment = Moment(time() - answer.seconds, began, began, answer.seconds + ended - began)
                findings = self._judged(probe, requests, seen, second, moment)
        for finding in findings:
            self._run.kept(finding)
        self._has_departed = any(finding.kind == probe.suspect for finding in findings)
        seen = seen._replace(has_departed=self._has_departed)
        if probe.operation is not None:
            self._run.answered(probe, seen.target.status)
        self._learn(probe, seen, second)
        return seen

    def _is_to_tell(self, probe: Probe, answer: Answer) -> bool:
        """Whether it departs that a request has no answer: again it had none, or another one of a kind not repeated."""
        operation = probe.operation
        return answer.status == 0 and (
            answer.tries > 1 or operation is None or not costs(operation) or self._run.unanswered.count(operation) > 1
        )

    async def _probe_alone(self, probe: Probe) -> Seen:
        request = self._request(probe, 0)
        answer = await self._run.target.send(request, TRIES)
        exchange = Exchange(request, answer)
        found = self._run.conformity.findings(exchange, probe.operation, probe.group)
        seen = Seen(answer, answer, answer.json(), None)
        if not found and answer.status < 300 and probe.suspect == "sort":
            found = [*self._sorted(probe, exchange, seen)]
        if not found and 300 <= answer.status < 500:
            found = [self._finding("stricter", probe, exchange, Answer(200, (), b"an answer"), "refused")]
        for finding in found:
            self._run.kept(finding)
        self._run.answered(probe, answer.status)
        return seen

    async def _ask(self, probe: Probe, request: Request) -> Answer:
        target, operation, unanswered = self._run.target, probe.operation, self._run.unanswered
        if probe.method == "GET" or operation is None:
            return await target.send(request, TRIES)
        unanswered.append(operation)
        try:
            answer = await target.send(request, 1 if costs(operation) else TRIES)
        except (Limited, Over):
            unanswered.remove(operation)
            raise
        self._is_lost = answer.status == 0 or answer.tries > 1  # nobody knows how often it was done
        if not self._is_lost:
            unanswered.remove(operation)
        return answer

    # -- the request

    def _request(self, probe: Probe, party: int) -> Request:
        path = self.roles.spelled(probe.path, party)
        query = urlencode({n: self.roles.spelled(v, party) for n, v in probe.query.items()}, quote_via=quote)
        headers = [(name, self.roles.spelled(value, party)) for name, value in probe.headers.items()]
        if probe.credential == GIVEN:
            headers += bearer((self._token, *(fork.token for fork in self._forks))[party])
        elif probe.credential == WRONG:
            headers += bearer(_WRONG)
        elif probe.credential != NONE:
            headers += bearer(self.roles.spelled(placeholder(probe.credential), party))
        body = b""
        if isinstance(probe.body, bytes):
            body = probe.body
        elif probe.body is not None:
            body = orjson.dumps(self.roles.spelled(probe.body, party))
        if body:
            headers.append(("Content-Type", probe.media))
        return Request(probe.method, path, query, tuple(headers), body)

    # -- the judgement

    def _judged(
        self, probe: Probe, requests: list[Request], seen: Seen, second: Answer, moment: Moment
    ) -> list[Finding]:
        """What the target departs in: findings of one class, and what may stand beside them."""
        exchange = Exchange(requests[0], seen.target)
        operation = probe.operation
        found = self._run.conformity.findings(self._without_strange(exchange, operation), operation, probe.group)
        own = self._status(probe, exchange, seen)
        found += self._values(probe, exchange, seen, second, moment) if own is None else [own]
        found.sort(key=lambda finding: RANKS[finding.kind])
        main = [finding for finding in found if finding.kind not in BESIDE]
        main = [each for each in main if each.kind == main[0].kind] if main and main[0].kind in _SEVERAL else main[:1]
        beside = [finding for finding in found if finding.kind in BESIDE]
        return [*main, *beside]

    def _without_strange(self, exchange: Exchange, operation: Operation | None) -> Exchange:
        """The exchange, with no strange records in a list."""
        steps = None if operation is None else self._run.catalogue.entries_at(operation)
        body = exchange.answer.json() if steps and self._run.strange else None
        entries = at(body, steps or ())
        if not isinstance(entries, list):
            return exchange
        entries[:] = [e for e in entries if not isinstance(e, dict) or e.get("id") not in self._run.strange]
        return exchange._replace(answer=exchange.answer._replace(body=orjson.dumps(body)))

    def _status(self, probe: Probe, exchange: Exchange, seen: Seen) -> Finding | None:
        target, twin = seen.target, seen.twin
        if target.status == 0 or target.status >= 500:
            return None  # the contract tells
        codes = code_of(seen.body), code_of(seen.twin_body)
        if probe.operation is None:
            is_no = target.status in (404, 405)
            return None if is_no else self._finding("laxer", probe, exchange, twin, f"{probe.learns} is answered")
        if target.status == twin.status:
            if target.status < 400 or codes[0] == codes[1]:
                return None
            named = "a code" if codes[0] is None else f"the code {self._run.showing.name(codes[0])}"
            title = f"{probe.learns}: {target.status} with{'out' if codes[0] is None else ''} {named}."
            cause = f"code {codes[0]} for {codes[1]}"
            return self._departs("error-code", probe, exchange, self._run.showing.said(twin), cause, title)
        if 200 <= target.status < 300 and 200 <= twin.status < 300:
            return self._finding("wrong-status", probe, exchange, twin, f"{target.status} for {twin.status}")
        if 200 <= twin.status < 300:
            kind = {401: "auth", 403: "scope"}.get(target.status) or probe.suspect or "stricter"
            return self._finding(kind, probe, exchange, twin, "refused")
        if 200 <= target.status < 300:
            kind = {401: "auth", 403: "scope"}.get(twin.status, "") or probe.suspect
            cause = probe.learns.rpartition(": ")[2]  # what a body or a parameter has that the contract refuses
            return self._finding(kind or self._laxer(codes[1]), probe, exchange, twin, cause)
        kind = probe.suspect if probe.suspect in ("auth", "scope") else "wrong-status"
        return self._finding(kind, probe, exchange, twin, f"{target.status} for {twin.status}")

    def _laxer(self, code: str | None) -> str:
        """The class of a success where the twin refuses with a code."""
        if code in self._run.unique:
            return "uniqueness"
        return {"idempotency_key_reused": "idempotency", "reference_not_found": "reference"}.get(code or "", "laxer")

    def _values(
        self, probe: Probe, exchange: Exchange, seen: Seen, second: Answer, moment: Moment
    ) -> Iterator[Finding]:
        if probe.operation is None or seen.target.status >= 300 or seen.twin.status >= 300 or seen.body is None:
            return
        steps = self._run.catalogue.entries_at(probe.operation)
        if steps is None and not self._is_own(probe):
            return
        bodies = seen.body, seen.twin_body, second.json()
        if probe.suspect == "paging":  # which records are on a page depends on how those of one instant are ordered
            yield from self._counted(probe, exchange, *bodies[:2])
            return
        differences = [*self._comparing.differences(*bodies, moment, None if probe.narrowed else steps)]
        strange = [
            each for each in differences if each.kind == "filter"
        ]  # what else differs follows from those records
        for difference in strange or differences:
            yield self._differs(probe, exchange, difference)
        if probe.suspect == "sort":
            yield from self._sorted(probe, exchange, seen)

    def _counted(self, probe: Probe, exchange: Exchange, body: Any, wanted: Any) -> Iterator[Finding]:
        """Whether a page has as many entries as it should."""
        assert probe.operation is not None
        steps = self._run.catalogue.entries_at(probe.operation) or ()
        theirs, ours = at(body, steps), at(wanted, steps)
        if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) != len(ours):
            difference = Difference(steps, f"{len(ours)} entries", f"{len(theirs)} entries", "list")
            yield self._differs(probe, exchange, difference)

    def _is_own(self, probe: Probe) -> bool:
        """Whether an answer is about what the journey made."""
        return bool(probe.makes) or probe.method != "GET" or any(roles_in([probe.path, *probe.query.values()]))

    def _differs(self, probe: Probe, exchange: Exchange, difference: Difference) -> Finding:
        operation = probe.operation
        assert operation is not None
        member, kind = ".".join(difference.at) or "the body", difference.kind
        if kind in ("list", "filter"):
            got, wanted = str(difference.got), str(difference.expected)
            title = f"{probe.learns}: {member} has {got}."
        elif kind == "reference":
            got, wanted = self._run.showing.value(difference.got), str(difference.expected)
            title = f"{probe.learns}: {member} is not {wanted}."
        else:
            got, wanted = (self._run.showing.value(value) for value in (difference.got, difference.expected))
            title = f"{probe.learns}: {member} is {got}, not {wanted}."
        known = member.rpartition(".")[2], got
        if kind == "filter" and probe.narrowed:  # the list is not narrowed to the journey's records
            name = next(iter(probe.query))
            number = next(n for n, parameter in enumerate(operation.parameters) if parameter.name == name)
            at_parameter = pointer_of(operation, "parameters", number)
            probe = replace(probe, about=None, learns=f"{name} of one's own records", pointer=at_parameter)
            title = f"{probe.learns}: {member} has {got}."
        elif kind in ("value", "reference") and (probe.suspect not in _SEEN_LATER or known in self._departed):
            here = self._member_at(operation, exchange.answer.status, difference.at)
            probe = replace(probe, about=None, pointer=self._departed.setdefault(known, here))
        elif kind != "filter" and probe.suspect:
            kind = probe.suspect
        elif kind == "list":
            kind = "value"
        expected = Said(exchange.answer.status, f"{member}: {wanted}")
        return self._departs(kind, probe, exchange, expected, member, title, got=f"{member}: {got}")

    def _member_at(self, operation: Operation, status: int, steps: Steps) -> str:
        """The line of the contract that names a member of an answer."""
        where = pointer_of(operation, "responses", status, "content", JSON, "schema")
        response = operation.responses.get(status)
        if response is None or JSON not in response.media:
            return pointer_of(operation, "responses")
        places = Places(self._run.document)
        found = places.of(where, response.media[JSON])
        for step in steps:
            while any(place.schema.get("type") == "array" for place in found):
                found = places.step(found, 0)
            found = places.step(found, step) or found
        return found[0].pointer

    def _sorted(self, probe: Probe, exchange: Exchange, seen: Seen) -> Iterator[Finding]:
        assert probe.operation is not None
        steps = self._run.catalogue.entries_at(probe.operation)
        entries = at(seen.body, steps) if steps else None
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
            expected = Said(200, f"entries by {option}")
            yield self._departs(
                "sort", probe, exchange, expected, option, f"The entries are not in the order of {option}."
            )

    def _finding(self, kind: str, probe: Probe, exchange: Exchange, twin: Answer, cause: str) -> Finding:
        expected = self._run.showing.said(twin)
        title = f"{probe.learns}: {exchange.answer.status} and not {twin.status}."
        return self._departs(kind, probe, exchange, expected, cause, title)

    def _departs(
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

    # -- what is learned

    def _learn(self, probe: Probe, seen: Seen, second: Answer) -> None:
        operation = probe.operation
        if operation is None or not 200 <= seen.target.status < 300:
            return
        if operation.method == "DELETE":
            self._gone(self._request(probe, 0).path.rpartition("/")[2])
        place = self._run.catalogue.record_at(operation)
        if place is None:
            return
        record = at(seen.body, place[0])
        ident = record.get("id") if isinstance(record, dict) else None
        if isinstance(ident, str) and not seen.is_alike:
            self._run.strange.add(ident)
        if isinstance(ident, str) and operation.method == "POST" and self._run.catalogue.success(operation) == 201:
            self._made(operation, ident)
        twins = at(seen.twin_body, place[0]), at(second.json(), place[0])
        if not probe.makes or not isinstance(record, dict) or not all(isinstance(twin, dict) for twin in twins):
            return
        for member in record.keys() & twins[0].keys() & twins[1].keys():
            names = Names(record[member], twins[0][member], twins[1][member])
            if not all(isinstance(name, str) for name in names):
                continue
            if member == "id":
                self.roles.play(probe.makes, names)
            elif member in _KEYS:
                self.roles.play(f"{probe.makes} secret", names)
            elif member == "public_key":
                self.roles.play("the public key", names)
            elif member == "code":
                self.roles.play(f"{probe.makes} code", names)


_SEVERAL = frozenset(("schema", "value"))
"""Classes of which an answer may have several, each with a cause of its own."""
_SEEN_LATER = frozenset(("not-persisted", "idempotency", "figures", "paging"))
"""Suspicions of a probe that a value confirms, if nothing has shown it before."""
_KEYS = ("api_key", "key", "private_key", "secret", "token")
_SETTLING = frozenset(("not-persisted", "not-deleted", "figures", "filter", "value", "stricter"))


def defaults_of(document: Document) -> Mapping[str, set[Any]]:
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
