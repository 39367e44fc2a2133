"""Walks one journey: sends each probe to the target and to both twins, has the answers judged, and
learns from them.
"""

import asyncio
import re
from collections.abc import Iterable
from time import monotonic
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from ...contract.document import Operation
from .catalogue import pointer_of, records_at
from .cleanup import Made
from .exchange import Answer, Exchange, Request, bearer
from .findings import Finding
from .judging import Judge, Run
from .probes import (
    GIVEN,
    NONE,
    UNKNOWN,
    WRONG,
    Builder,
    Flaw,
    Journey,
    Names,
    Probe,
    Roles,
    Seen,
    costs,
    placeholder,
    roles_in,
)
from .target import TRIES
from .twin import Fork

_PAUSES = (0.1, 0.3, 0.6, 1.0)  # seconds before a read is repeated
_SETTLING = frozenset(("not-persisted", "not-deleted", "figures", "filter", "value", "stricter"))
"""Classes that a read may find only because a change does not show yet."""
_REFUSALS = (400, 422)
_LAST = 3.0  # seconds for which an interrupted run waits for an answer
_GUESSES = (49.9, 1, "verify", True, "2030-01-01T00:00:00Z")
"""Values for members that the contract does not have."""
_ENTRY = re.compile(r"(\w+)\[([0-9]{1,4})\]").fullmatch
_ROLES = {"id": "{}", "private_key": "{} secret", "public_key": "the public key"}
"""The roles that members of a new record play."""


class _Departed(Exception):
    """The target's records are no longer what the twins' are."""


class Walk:
    """A chain of journeys over records that they share."""

    _last: tuple[Probe, Exchange]

    def __init__(self, run: Run, builder: Builder, forks: tuple[Fork, Fork], made: Made) -> None:
        """`made` collects the records of the target."""
        self._run, self._builder, self._forks, self._made = run, builder, forks, made
        self._roles = Roles()
        self._judge = Judge(run, self._roles)
        self._roles.play(GIVEN, Names(run.options.token, *(fork.token for fork in forks)))
        for role, text in ((NONE, ""), (WRONG, "verify.no.credential"), (UNKNOWN, run.unknown_id)):
            self._roles.play(role, Names(text, text, text))

    async def go(self, journeys: Iterable[Journey]) -> None:
        """Send the probes of each journey in order, until the target's records are no longer what
        the twins' are.

        The next journey begins with new records then.
        """
        for journey in journeys:
            self._judge.has_strange = False
            if not await self._journey(journey) or self._judge.has_strange:
                self._builder.begin_anew()

    async def _journey(self, journey: Journey) -> bool:
        """Whether it came to its end."""
        seen: Any = None
        try:
            while True:
                asked = journey.send(seen)
                if isinstance(asked, Flaw):
                    self._run.findings.append(self._judge.flaw(asked, *self._last))
                else:
                    seen = await self._step(asked)
        except StopIteration:
            return True
        except (KeyError, _Departed):  # nothing plays a role: what makes it was refused
            return False

    async def _step(self, probe: Probe) -> Seen:
        """Send a probe after those that make the records that it names, and one that deletes the
        record that played its role before; then read what it has made or changed.

        Raises KeyError and _Departed.
        """
        for role in roles_in([probe.path, probe.query, probe.body]):
            make = self._builder.missing(role)
            if make is not None:
                await self._step(make)
        removal = self._builder.removal(probe.makes) if probe.makes else None
        if removal is not None:
            await self._probe(removal)
        seen = await self._probe(probe)
        if probe.keeps and not seen.is_alike:
            raise _Departed
        check = self._check(probe, seen)
        if check is not None:
            read = await self._probe(check)
            if read.has_departed and not read.is_alike:
                raise _Departed
        self._last = probe, Exchange(self._request(probe, 0), seen.target)
        return seen

    def _check(self, probe: Probe, seen: Seen) -> Probe | None:
        """A read of the record that was just made or changed; None where nothing reads it
        by its id.
        """
        operation, resource = probe.operation, self._builder.resource_of(probe.operation)
        if resource is None or resource.read is None or not self._builder.may(resource.read):
            return None
        is_move = probe.aim.suspect == "lifecycle" and operation.method != "DELETE"
        # what a test has sent changes while it is read
        is_create = operation in resource.creates and "{" not in operation.path
        roles = [probe.makes] if is_create else [*roles_in(probe.path)]
        if not seen.both_accept or not any(roles):
            return None
        if not is_create and not is_move and operation != resource.update:
            return None
        return self._builder.probe(
            resource.read,
            probe.aim.group if is_move else "persists",
            f"a read after {operation.id}",
            pointer_of(operation),
            path=resource.at(placeholder(roles[-1])),
            suspect="lifecycle" if is_move else "not-persisted",
            about=operation,
        )

    async def _probe(self, probe: Probe) -> Seen:
        """Send a probe to all three, and judge the answer. Raises _Departed if the target may have
        served it several times, or not at all.
        """
        requests = [self._request(probe, party) for party in range(3)]
        self._judge.comparing.sent([probe.body, probe.query])
        # first: it may have to wait, and the twins' clocks go on
        answer = await self._ask(probe, requests[0])
        began = monotonic()
        first = second = Answer(200)
        if not probe.is_alone:
            first, second = await asyncio.gather(
                *(f.send(r) for f, r in zip(self._forks, requests[1:], strict=True))
            )
        took = answer.seconds + monotonic() - began
        operation = probe.operation
        if first.is_success and isinstance(probe.body, dict):
            if answer.is_success:
                record = str(self._run.catalogue.record(operation, first.json()).get("id"))
                body = self._roles.spelled(probe.body, 1)
                self._judge.comparing.wrote(operation, record, body)
            elif answer.status in _REFUSALS:
                answer = await self._adapted(probe, operation, answer)

        def judged() -> list[Finding]:
            exchange = Exchange(requests[0], answer)
            return self._judge.findings(probe, exchange, (first, second), took)

        if operation.method != "GET" and not answer.is_sure:
            often = self._run.learned.unanswered.count(operation)
            if answer.status == 0 and (often > 1 or not costs(operation)):
                self._run.findings += judged()
            raise _Departed
        findings = judged()
        if probe.method == "GET" and probe.credential == GIVEN:
            until = monotonic() + self._run.options.settle
            for pause in _PAUSES:
                if not findings or monotonic() + pause > until or findings[0].kind not in _SETTLING:
                    break
                await asyncio.sleep(pause)
                answer = await self._ask(probe, requests[0])
                findings = judged()
        if not probe.is_quiet or answer.is_success:
            self._run.findings += findings
        seen = Seen(answer, first, any(finding.kind == probe.aim.suspect for finding in findings))
        about = (probe.aim.about or operation).id
        self._run.answered(operation.id, answer.status, probe.aim.group, about)
        self._run.suspected[probe.aim.suspect].add(about)
        self._learn(probe, operation, seen, second)
        return seen

    async def _adapted(self, probe: Probe, operation: Operation, answer: Answer) -> Answer:
        """Learn what the contract says otherwise: entries of lists that the target does not know,
        and members that it asks for. With these, the request is sent again.
        """
        known, request = self._run.learned.asked_for[operation.id], self._request(probe, 0)
        for name in _fields(answer):
            if found := _ENTRY(name):
                entries, number = probe.body.get(found[1]), int(found[2])
                if isinstance(entries, list) and number < len(entries):
                    self._builder.unknown.add(str(entries[number]))
            if not name.isidentifier() or name in self._builder.properties(operation):
                continue
            for guess in _GUESSES:
                known[name] = guess
                again = await self._ask(probe, self._request(probe, 0))
                if name not in _fields(again):
                    flaw = Flaw("stricter", f"{name} is required", f"no {name}")
                    refused = self._judge.flaw(flaw, probe, Exchange(request, answer))
                    self._run.findings.append(refused)
                    answer = again
                    break
            else:
                del known[name]
        return answer

    async def _ask(self, probe: Probe, request: Request) -> Answer:
        operation = probe.operation
        if operation.method == "GET":
            return await self._run.target.send(request, TRIES)
        changing = asyncio.ensure_future(self._changed(operation, request))
        try:
            return await asyncio.shield(changing)
        finally:  # of an interrupted run: what is made without an answer can hardly be found
            await asyncio.wait([changing], timeout=_LAST)
            if not changing.cancel():
                changing.exception()  # its answer, or why there is none, was waited for

    async def _changed(self, operation: Operation, request: Request) -> Answer:
        """Send a request that may change something, and note what it has made."""
        unanswered = self._run.learned.unanswered
        unanswered.append(operation)
        answer = await self._run.target.send(request, 1 if costs(operation) else TRIES)
        self._run.cleanup.note(self._made, operation, answer)
        if answer.is_sure:
            unanswered.remove(operation)
        return answer

    def _request(self, probe: Probe, party: int) -> Request:
        """The request to one party: 0 is the target."""
        parts = [probe.path, probe.query, probe.headers, probe.body, placeholder(probe.credential)]
        path, query, named, body, token = self._roles.spelled(parts, party)
        headers = (*named.items(),)
        if token:
            headers += bearer(token)
        if body is not None:
            headers += (("Content-Type", probe.media),)
            if party == 0 and isinstance(body, dict):
                body = {**self._run.learned.asked_for.get(probe.operation.id, {}), **body}
            body = body if isinstance(body, bytes) else orjson.dumps(body)
        return Request(probe.method, path, urlencode(query, quote_via=quote), headers, body or b"")

    def _learn(self, probe: Probe, operation: Operation, seen: Seen, second: Answer) -> None:
        """Note the record that an answer is about, and what plays its roles from now on."""
        present, roles = self._builder.present, [*roles_in(probe.path)]
        if operation.method != "GET" and not seen.is_alike:
            # only one side has made or changed them: they are compared no more
            self._judge.has_strange = True
            for role in roles:
                self._roles.forget(role)
                present.pop(role, None)
        if not seen.target.is_success:
            return
        if operation.method == "DELETE":
            gone = self._roles.spelled(placeholder(roles[-1]), 0)
            self._made.pop(gone, None)
            self._judge.comparing.deleted[gone] = operation
        record = self._run.catalogue.record
        records = [record(operation, each.json()) for each in (seen.target, seen.twin, second)]
        idents = [record.get("id") for record in records]
        own, known = idents[0], self._roles.role(str(idents[1]), str(idents[2]))
        if not isinstance(own, str):
            return
        if known not in (None, own):
            self._judge.has_strange = True
        is_update = self._builder.changed_by(operation) is not None
        if is_update and seen.both_accept and roles[-1] in present:
            present[roles[-1]] |= probe.body
        if not probe.makes:
            return
        present[probe.makes] = probe.body
        for member, role in _ROLES.items():
            names: list[Any] = [record.get(member) for record in records]
            if all(isinstance(name, str) for name in names):
                self._roles.play(role.format(probe.makes), Names(*names))


def _fields(answer: Answer) -> list[str]:
    """The fields that a refusal names in its details."""
    return [str(each.get("field")) for each in records_at(answer.json(), ("details",))]
