"""Walks one journey: sends each probe to the target and to the twin, has the answers judged, and
learns from them.
"""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import replace
from time import monotonic
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from ...contract.document import JSON
from ...contract.source import fixture
from ...core.record import Body
from .catalogue import Resource, entries_of, is_list, leave_out, leaves, pointer_of, record_of
from .cleanup import Made
from .exchange import Answer, Exchange, Request, bearer, code_of
from .findings import Finding, cut
from .judging import INVALID, Judge
from .learned import Run
from .probes import (
    GIVEN,
    QUIET,
    SETUP,
    Asked,
    Builder,
    Departed,
    Flaw,
    Journey,
    Names,
    Probe,
    Roles,
    Seen,
    placeholder,
    roles_in,
)
from .target import TRIES
from .twin import Fork

_PAUSES = (0.1, 0.3, 0.6, 1.0)  # seconds before a read is repeated
_SETTLING = ("not-persisted", "not-deleted", "figures", "filter", "value", "default", "stricter")
"""Classes that a read may find only because a change does not show yet."""
_FULL = {*fixture("verify.yaml")["full"]}
_ROLES = {"id": "{}", "private_key": "{} secret", "public_key": "the public key"}
"""The roles that members of a new record play."""


_WORD = re.compile(r"\w+")


class Walk:
    """A chain of journeys over records that they share."""

    _last: tuple[Probe, Exchange]

    def __init__(self, run: Run, builder: Builder, fork: Fork, made: Made) -> None:
        """`made` collects the records of the target."""
        self._run, self._builder, self._fork, self._made = run, builder, fork, made
        self._roles = Roles()
        self._judge = Judge(run, self._roles)
        self._roles.play(GIVEN.strip("{}"), Names(run.options.token, fork.token))

    async def go(self, journeys: Iterable[Journey]) -> bool:
        """Send the probes of each journey in order, until the target's records are no longer what
        the twin's are: then it is False.
        """
        for journey in journeys:
            is_alike = await self._journey(journey) and not self._judge.has_strange
            if not is_alike and not self._builder.is_lasting:
                return False
        return True

    async def _journey(self, journey: Journey) -> bool:
        """Whether it came to its end."""
        is_whole = True
        try:
            asked = next(journey)
            while True:
                try:
                    seen = await self._answered(asked)
                except (KeyError, Departed) as error:
                    is_whole, asked = False, journey.throw(error)
                else:
                    asked = journey.send(seen)
        except StopIteration:
            return is_whole
        except (KeyError, Departed):  # nothing plays a role: what makes it was refused
            return False

    async def _answered(self, asked: Asked) -> Any:
        """What was seen of a probe; None for what is none. Raises KeyError and Departed."""
        if isinstance(asked, Probe):
            return await self._step(asked)
        if isinstance(asked, Flaw):
            self._run.findings.append(self._judge.flaw(asked, *self._last))
        else:
            await asyncio.sleep(asked)
        return None

    async def _step(self, probe: Probe) -> Seen:
        """Send a probe after those that make the records that it names, and one that deletes the
        record that played its role before.

        Raises KeyError and Departed.
        """
        for role in roles_in([probe.path, probe.query, probe.body]):
            make = self._builder.missing(role, probe.operation)
            if make is not None:
                await self._step(make)
        removal = self._builder.removal(probe.makes) if probe.makes else None
        if removal is not None:
            await self._checked(removal)
        seen = await self._checked(probe)
        self._last = probe, Exchange(self._request(probe, 0), seen.target)
        return seen

    async def _checked(self, probe: Probe) -> Seen:
        """Send a probe, and read what it has made, changed or deleted. Raises Departed."""
        seen = await self._probe(probe)
        if probe.group == SETUP and not seen.is_alike:
            raise Departed
        check = self._check(probe, seen)
        if check is not None:
            read = await self._probe(check)
            if read.has_departed and not read.is_alike:
                raise Departed
        return seen

    def _check(self, probe: Probe, seen: Seen) -> Probe | None:
        """A read of the record that was just made, changed or deleted; None where nothing
        reads it by its id.
        """
        operation, resource = probe.operation, self._builder.resource_of(probe.operation)
        if resource is None or resource.read is None or not self._builder.may(resource.read):
            return None
        # what a test has sent changes while it is read
        is_create = operation in resource.creates and "{" not in operation.path
        roles = [probe.makes] if is_create else [*roles_in(probe.path)]
        if not seen.both_accept or not any(roles):
            return None
        group, suspect = "persists", "not-persisted"
        if operation == resource.delete:
            suspect = "not-deleted"
        elif probe.suspect == "lifecycle":
            group, suspect = probe.group, "lifecycle"
        elif not is_create and operation != resource.update:
            return None
        return self._builder.probe(
            resource.read,
            group,
            f"a read after {operation.id}",
            pointer_of(operation),
            path=resource.at(placeholder(roles[-1])),
            suspect=suspect,
            about=operation,
        )

    async def _probe(self, probe: Probe) -> Seen:
        """Send a probe to both, and judge the answer. Raises Departed if nobody knows
        whether the target has served it.
        """
        probe = self._accepted(probe)
        # first: it may have to wait, and the twin's clock goes on
        answer = await self._ask(probe, self._request(probe, 0))
        if await self._finds_instead(probe, answer):
            probe = self._accepted(probe)
            answer = await self._ask(probe, self._request(probe, 0))
        requests = [self._request(probe, party) for party in range(2)]
        self._judge.sent([probe.body, probe.query])
        began = monotonic()
        twin = Answer(probe.expects) if probe.expects else await self._fork.send(requests[1])
        is_whole = twin.is_success or twin.status == 403
        while is_whole and await self._demands(probe, requests[0], answer):
            requests[0] = self._request(probe, 0)
            answer = await self._ask(probe, requests[0])
        if {code_of(answer.json()), code_of(twin.json())} & _FULL:  # one has made more
            raise Departed
        took = answer.seconds + monotonic() - began
        operation = probe.operation
        if twin.is_success and answer.is_success and isinstance(probe.body, dict):
            record = str(record_of(twin.json()).get("id"))
            body = self._roles.spelled(probe.body, 1)
            self._judge.wrote(operation, record, body)

        def judged() -> list[Finding]:
            exchange = Exchange(requests[0], answer)
            return self._judge.findings(probe, exchange, twin, took)

        findings = judged()
        if operation.method != "GET" and answer.status == 0:
            self._run.findings += findings
            raise Departed
        if operation.method == "GET" and probe.credential == GIVEN:
            until = monotonic() + self._run.options.settle
            for pause in _PAUSES:
                if monotonic() + pause > until or not self._may_settle(findings):
                    break
                await asyncio.sleep(pause)
                answer = await self._ask(probe, requests[0])
                findings = judged()
        if probe.group != QUIET or answer.is_success:
            self._run.findings += findings
        seen = Seen(answer, twin, any(finding.kind == probe.suspect for finding in findings))
        self._run.answered(operation.id, answer.status, probe.group, probe.about.id)
        self._run.suspected[probe.suspect].add(probe.about.id)
        self._learn(probe, seen)
        return seen

    async def _demands(self, probe: Probe, request: Request, answer: Answer) -> bool:
        """Whether a creation is refused without members that the contract lacks: those of the
        backend's own records that the refusal names. From now on they are sent to the target.
        """
        operation, made = probe.operation, self._run.catalogue.made_by(probe.operation)
        entry, says = await self._entry(made, answer)
        if made is None:
            return False
        sent, shown = self._run.demanded[operation.id], self._run.document.schema(made.schema)
        known = sent | shown["properties"] | self._builder.properties(operation)
        names = sorted({*entry}.intersection(says) - known.keys())
        if names:
            sent |= {name: entry[name] for name in names}
            values = ", ".join(self._run.showing.value(name, entry[name]) for name in names)
            values = cut(values, 80)
            title = f"demands {', '.join(names)}, which the contract lacks: verify sent {values}"
            flaw = Flaw("demanded", f"{title} from then on", "a body of the contract is accepted")
            self._run.findings.append(self._judge.flaw(flaw, probe, Exchange(request, answer)))
        return self._request(probe, 0) != request

    async def _finds_instead(self, probe: Probe, answer: Answer) -> bool:
        """Whether a creation is refused for a listed value of a required member, of which the
        backend's own records have another value of the contract. From now on that is sent to both.
        """
        operation, found = probe.operation, self._run.instead[probe.operation.id]
        if probe.group == "rejects" or not isinstance(probe.body, dict):
            return False
        entry, says = await self._entry(self._run.catalogue.made_by(operation), answer)
        for name, refused in probe.body.items():
            own, listed = entry.get(name), self._builder.options(operation, name)
            values = [each for each in (own if isinstance(own, list) else [own]) if each in listed]
            is_asked = name in says and name not in found
            if is_asked and values and name in self._builder.smallest(operation):
                found[name] = refused, values if isinstance(refused, list) else values[0]
                return True
        return False

    def _accepted(self, probe: Probe) -> Probe:
        """A probe with values that the backend accepts in place of those that it refuses."""
        body = probe.body
        for name, (refused, instead) in self._run.instead[probe.operation.id].items():
            if isinstance(body, dict) and body.get(name) == refused:
                body = body | {name: instead}
        return replace(probe, body=body)

    async def _entry(self, made: Resource | None, answer: Answer) -> tuple[Body, list[str]]:
        """One of the backend's own records of a kind, and the words of the refusal of another; an
        empty one where nothing is refused as invalid.
        """
        if answer.status not in INVALID or made is None or made.list is None:
            return Body(), []
        listed = await self._run.target.ask("GET", made.list.path)
        says = _WORD.findall(" ".join(map(str, leaves(answer.json()))))
        return next(iter(entries_of(listed.json())), Body()), says

    def _may_settle(self, findings: list[Finding]) -> bool:
        """Whether a change that does not show yet may be why, and not what was found before."""
        if not findings or findings[0].kind not in _SETTLING:
            return False
        known = {(each.kind, each.pointer) for each in self._run.findings}
        return (findings[0].kind, findings[0].pointer) not in known

    async def _ask(self, probe: Probe, request: Request) -> Answer:
        """Send a request to the target, and note what it has made."""
        operation, spoiled = probe.operation, self._run.cleanup.spoiled
        if operation.method == "GET":
            answer = await self._run.target.send(request, TRIES)
            body = answer.json()
            if body is None or not spoiled or not is_list(operation):
                return answer
            leave_out(body, spoiled)
            return answer._replace(body=orjson.dumps(body))
        self._run.unanswered += 1
        answer = await self._run.target.send(request)
        self._run.cleanup.note(self._made, operation, answer)
        self._run.unanswered -= answer.status > 0
        return answer

    def _request(self, probe: Probe, party: int) -> Request:
        """The request to one party: 0 is the target."""
        parts = [probe.path, probe.query, probe.headers, probe.body, probe.credential]
        path, query, named, body, token = self._roles.spelled(parts, party)
        if party == 0 and isinstance(body, dict):
            body = self._run.demanded[probe.operation.id] | body
        if body is not None:
            named = {"Content-Type": JSON, **named}
            body = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = (*named.items(),)
        if token:
            headers += bearer(token)
        return Request(
            probe.operation.method, path, urlencode(query, quote_via=quote), headers, body or b""
        )

    def _learn(self, probe: Probe, seen: Seen) -> None:
        """Note the record that an answer is about, and what plays its roles from now on."""
        operation = probe.operation
        present, roles = self._builder.present, [*roles_in(probe.path)]
        if operation.method != "GET" and not seen.is_alike:
            # only one side has made or changed them: they are compared no more
            self._judge.has_strange = True
            for role in roles:
                self._roles.forget(role)
                if present.pop(role, None) is not None and probe.group != SETUP:
                    self._builder.departed.add(role)
        if not seen.target.is_success:
            return
        if operation.method == "DELETE":
            self._made.pop(self._roles.spelled(placeholder(roles[-1]), 0), None)
        record, twin = record_of(seen.target.json()), record_of(seen.twin.json())
        own, known = record.get("id"), self._roles.role(str(twin.get("id")))
        if not isinstance(own, str):
            return
        if operation.method != "GET" and not seen.twin.is_success:
            self._run.cleanup.spoiled.add(own)
        if known not in (None, own):
            self._judge.has_strange = True
        is_update = self._builder.changed_by(operation) is not None
        if is_update and seen.both_accept:
            present[roles[-1]] = present.get(roles[-1], {}) | probe.body
        if not probe.makes:
            return
        present[probe.makes] = probe.body
        for member, role in _ROLES.items():
            names = Names(record.get(member, ""), twin.get(member, ""))
            if all(names):
                self._roles.play(role.format(probe.makes), names)
