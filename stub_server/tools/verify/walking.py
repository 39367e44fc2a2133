"""Walks a chain of journeys: sends each probe to the target and to the twin, has the answers
judged, and learns from them.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from time import monotonic
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from ...contract.document import JSON, Operation
from ...contract.source import fixture
from ...core.record import Body
from .building import Builder
from .catalogue import (
    Resource,
    body_of,
    entries_of,
    is_list,
    leave_out,
    leaves,
    pointer_of,
    record_of,
)
from .exchange import Answer, Exchange, Request, bearer, code_of
from .findings import Finding, cut
from .judging import INVALID, Judge, Write
from .learned import Run
from .probes import (
    GIVEN,
    QUIET,
    SETUP,
    Departed,
    Flaw,
    Names,
    Probe,
    Roles,
    Seen,
    placeholder,
    roles_in,
)
from .target import TRIES
from .twin import Fork, Twin
from .variants import Variants

Journey = Callable[[], Coroutine[Any, Any, None]]
"""Sends probes in order."""
_PAUSE = 0.4  # seconds before a read is repeated
_SETTLING = ("not-persisted", "not-deleted", "figures", "filter", "value", "default", "stricter")
"""Classes that a read may find only because a change does not show yet."""
_FULL = {*fixture("verify.yaml")["full"]}
_PUBLIC = " public"
_ROLES = {"id": "", "private_key": " secret", "public_key": _PUBLIC}
"""What follows the role of a new record in those that members of it play."""
_WORD = re.compile(r"\w+")


class Walk(Builder):
    """A chain of journeys over records that they share. A journey ends with a KeyError where
    nothing plays a role that it needs, and with Departed, which is one, where the next one needs
    other records.
    """

    _fork: Fork
    _roles: Roles
    _judge: Judge
    _last: tuple[Probe, Exchange]

    def __init__(self, run: Run, variants: Variants, *, is_lasting: bool) -> None:
        """`is_lasting` says whether they are about records of which a run makes few."""
        super().__init__(run, variants)
        self.is_lasting = is_lasting
        self.present: Body = {}
        """The roles that are played, with the bodies that made the records."""
        self._departed: set[str] = set()
        """Those of records that one side alone has changed."""
        self._made = run.cleanup.made()

    async def through(self, journeys: Iterable[Journey], twin: Twin) -> None:
        """Make journeys in order: with new records, and a new fork, once the target's records are
        no longer what the twin's are.
        """
        left = [*journeys][::-1]
        while left:
            async with twin.fork() as self._fork:
                self._roles = Roles()
                self._judge = Judge(self.run, self._roles)
                self._roles.play(GIVEN.strip("{}"), Names(self.run.options.token, self._fork.token))
                is_alike = True
                while left and (is_alike or self.is_lasting):
                    is_alike = await self._journey(left.pop())
            await self.run.cleanup.remove(self._made)  # some kinds are limited in number
            self.present.clear()
            self._departed.clear()
            self.variants.begin_anew()

    async def _journey(self, journey: Journey) -> bool:
        """Whether both sides have the same records after it."""
        try:
            await journey()
        except KeyError:
            return False
        return not self._judge.has_strange

    # -- what journeys do

    async def ask(
        self, operation: Operation, group: str, learns: str, *at: str, **more: Any
    ) -> Seen:
        """Build a probe, and send it."""
        return await self.send(self.probe(operation, group, learns, *at, **more))

    async def write(
        self, operation: Operation, body: Any, learns: str, pointer: str = "", **more: Any
    ) -> Seen:
        """Send a body; a record that it creates is another one of its kind."""
        kind = self.catalogue.made_by(operation)
        more = {"group": "accepts", "makes": f"{kind.role} more" if kind else "", **more}
        return await self.ask(
            operation, learns=learns, pointer=pointer or body_of(operation), body=body, **more
        )

    def tell(self, kind: str, title: str, expected: str) -> None:
        """Report a flaw of the answer to the last probe."""
        self.run.findings.append(self._judge.flaw(Flaw(kind, title, expected), *self._last))

    async def make(self, resource: Resource, role: str = "", **changes: Any) -> Seen:
        """Create a record that plays a role from then on: that of its kind, or another one. Of
        those of which a run makes few, one that has departed is written anew.

        Raises KeyError where the credential or the options do not allow it.
        """
        operation = resource.create
        makes = role or resource.role
        if not self.may(operation):
            raise KeyError(makes)
        if self.is_lasting and resource.update is not None and makes in self._departed:
            self._departed.discard(makes)
            self.present[makes] = self.known(resource.update, self.body(operation) | changes)
            return await self.ask(
                resource.update,
                SETUP,
                f"write {makes}",
                path=resource.at(placeholder(makes)),
                body=self.present[makes],
            )
        body = self.plain(operation) | changes
        return await self.ask(operation, SETUP, f"make {makes}", body=body, makes=makes)

    def secret(self, role: str) -> str:
        """The credential of the API key that plays a role."""
        return placeholder(f"{role} secret")

    async def ready(self, resource: Resource, role: str = "", **changes: Any) -> None:
        """Create a record of a kind that plays a role, if there is none."""
        if (role or resource.role) not in self.present:
            await self.make(resource, role, **changes)

    async def _remove(self, role: str) -> None:
        """Delete the record that plays a role, if that is possible: some kinds are limited in
        number.
        """
        kind = self.kind_of(role)
        if kind and kind.delete and self.present.pop(role, None):
            path = kind.at(placeholder(role))
            await self._checked(
                self.probe(kind.delete, QUIET, f"delete {role}", path=path, suspect="lifecycle")
            )

    async def send(self, probe: Probe) -> Seen:
        """Send a probe after those that make the records that it names, and one that deletes the
        record that played its role before.
        """
        for role in roles_in([probe.path, probe.query, probe.body]):
            await self._need(role.removesuffix(_PUBLIC), probe.operation)
        if probe.makes:
            await self._remove(probe.makes)
        return await self._checked(probe)

    async def _need(self, role: str, operation: Operation) -> None:
        """Make the record that a request to an operation names, if it is not there: in a state
        from which the operation moves it, where a creation can set that.
        """
        kind = self.kind_of(role)
        if kind is None or role in self.present:
            return
        changes = Body()
        if operation != kind.update:
            sent = (self.body(operation) or {}).get(kind.field)
            begins = self.options(kind.create, kind.field)
            for move in kind.moves_by(operation):
                if move.from_ in begins and sent in (None, move.to):
                    changes.setdefault(kind.field, move.from_)
        await self.make(kind, role, **changes)

    # -- one probe

    async def _checked(self, probe: Probe) -> Seen:
        """Send a probe, and read what it has made, changed or deleted."""
        seen = await self._probe(probe)
        if probe.group == SETUP and not seen.is_alike:
            raise Departed
        check = self._check(probe) if seen.both_accept else None
        if check is not None:
            read = await self._probe(check)
            if read.has_departed and not read.is_alike:
                raise Departed
        return seen

    def _check(self, probe: Probe) -> Probe | None:
        """A read of the record that was just made, changed or deleted; None where nothing
        reads it by its id.
        """
        operation = probe.operation
        resource = self.resource_of(operation)
        if resource is None or not self.may(resource.read):
            return None
        # what a test has sent changes while it is read
        is_create = operation in resource.creates and "{" not in operation.path
        is_move = probe.suspect == "lifecycle"
        role = probe.makes if is_create else [*roles_in(probe.path), ""][-1]
        suspect = "lifecycle" if is_move else "not-persisted"
        if operation == resource.delete:
            suspect = "not-deleted"
        elif not (is_create or is_move or operation == resource.update):
            return None
        return (
            self.probe(
                resource.read,
                probe.group if suspect == "lifecycle" else "persists",
                f"a read after {operation.id}",
                path=resource.at(placeholder(role)),
                pointer=pointer_of(operation),
                suspect=suspect,
                about=operation,
            )
            if role
            else None
        )

    async def _probe(self, probe: Probe) -> Seen:
        """Send a probe to both, and judge the answer. Raises Departed if nobody knows
        whether the target has served it.
        """
        # first: it may have to wait, and the twin's clock goes on
        answer = await self._ask(probe)
        probe, answer = await self._mended(probe, answer)
        self._judge.sent([probe.body, probe.query])
        operation = probe.operation
        began = monotonic()
        twin = Answer(probe.expects)
        if not probe.expects:
            twin = await self._fork.send(self._request(probe, 1))
        took = answer.seconds + monotonic() - began
        if {code_of(answer.json()), code_of(twin.json())} & _FULL:  # one has made more
            raise Departed
        if twin.is_success and answer.is_success and isinstance(probe.body, dict):
            record = record_of(twin.json()).get("id")
            body = self._roles.spelled(probe.body, 1)
            self._judge.wrote(str(record), Write(operation, body, record_of(answer.json())))
        until = monotonic() + self.run.options.settle
        findings = self._judge.findings(*self._last, twin, took)
        while self._may_settle(probe, findings) and monotonic() < until:
            await asyncio.sleep(_PAUSE)
            answer = await self._ask(probe)
            findings = self._judge.findings(*self._last, twin, took)
        if probe.group != QUIET or answer.is_success:
            self.run.findings += findings
        if operation.method != "GET" and answer.status == 0:
            raise Departed
        seen = Seen(answer, twin, probe.suspect in [finding.kind for finding in findings])
        self.run.answered(operation.id, answer.status, probe.group, probe.about.id)
        self.run.suspected[probe.suspect].add(probe.about.id)
        self._learn(probe, seen)
        return seen

    def _may_settle(self, probe: Probe, findings: list[Finding]) -> bool:
        """Whether a change that does not show yet may be why, and not what was found before."""
        is_read = probe.operation.method == "GET" and probe.credential == GIVEN
        if not is_read or not findings or findings[0].kind not in _SETTLING:
            return False
        first = findings[0].kind, findings[0].pointer
        return first not in [(each.kind, each.pointer) for each in self.run.findings]

    async def _mended(self, probe: Probe, answer: Answer) -> tuple[Probe, Answer]:
        """A probe with its answer. A creation that is in order, and was refused over members, is
        sent again with other values of them; those that are refused no more are sent from then on.
        """
        operation = probe.operation
        made = self.catalogue.made_by(operation)
        is_in_order = probe.group != "rejects" or probe.credential != GIVEN
        is_refused = answer.status in INVALID and isinstance(probe.body, dict)
        if made is None or made.list is None or not is_in_order or not is_refused:
            return probe, answer
        refused = self._last
        learned = self.run.learned[operation.id]
        listed = await self.run.target.ask("GET", made.list.path)
        own = next(iter(entries_of(listed.json())), Body())
        if probe.body.keys() <= self.plain(operation).keys():
            own |= self.body(operation)  # else what is demanded may be so beside a member alone
        tried = Body()
        while named := self._named(operation, answer, learned | probe.body | tried, own):
            tried |= named
            answer = await self._ask(replace(probe, body=probe.body | tried))
        new = {name: tried[name] for name in tried if name not in _words_of(answer)}
        if not new:
            self._last = refused
            return probe, refused[1].answer
        learned |= new
        if lacking := [name for name in new if name not in probe.body]:
            values = [self.run.showing.value(name, new[name]) for name in lacking]
            title = f"demands {', '.join(lacking)}, which the contract does not: verify sent"
            title = f"{title} {cut(', '.join(values), 80)} from then on"
            flaw = Flaw("demanded", title, "a body of the contract is accepted")
            self.run.findings.append(self._judge.flaw(flaw, *refused))
        return replace(probe, body=self.known(operation, probe.body | new)), answer

    def _named(self, operation: Operation, answer: Answer, sent: Body, own: Body) -> Body:
        """The backend's own values of members that a refusal names: of those that were not sent,
        and of required ones in place of others that the contract lists too.
        """
        required = self.smallest(operation)
        found = Body()
        for name in sorted(_words_of(answer) & own.keys() - {"id"}):
            if name not in sent:
                found[name] = own[name]
                continue
            options = self.options(operation, name)
            is_list = isinstance(own[name], list)
            listed = [each for each in (own[name] if is_list else [own[name]]) if each in options]
            value = listed if is_list else own[name]
            is_usual = sent[name] == required.get(name)
            if is_usual and listed and value != sent[name]:
                found[name] = value
        return found

    async def _ask(self, probe: Probe) -> Answer:
        """Send a probe to the target, and note what it has made."""
        run = self.run
        operation = probe.operation
        request = self._request(probe, 0)
        if operation.method == "GET":
            answer = await run.target.send(request, TRIES)
            body = answer.json()
            if body is not None and run.cleanup.spoiled and is_list(operation):
                leave_out(body, run.cleanup.spoiled)
                answer = answer._replace(body=orjson.dumps(body))
        else:
            run.unanswered += 1
            answer = await run.target.send(request)
            run.cleanup.note(self._made, operation, answer)
            run.unanswered -= answer.status > 0
        self._last = probe, Exchange(request, answer)
        return answer

    def _request(self, probe: Probe, party: int) -> Request:
        """The request to one party: 0 is the target."""
        parts = [probe.path, probe.query, probe.headers, probe.body, probe.credential]
        path, query, headers, body, token = self._roles.spelled(parts, party)
        if party == 0 and isinstance(body, dict):
            names = self.properties(probe.operation)
            learned = self.run.learned[probe.operation.id].items()
            body = {name: value for name, value in learned if name not in names} | body
        if body is not None:
            headers = {"Content-Type": JSON, **headers}
            body = body if isinstance(body, bytes) else orjson.dumps(body)
        sent = (*headers.items(), *(bearer(token) if token else ()))
        query = urlencode(query, quote_via=quote)
        return Request(probe.operation.method, path, query, sent, body or b"")

    def _learn(self, probe: Probe, seen: Seen) -> None:
        """Note the record that an answer is about, and what plays its roles from now on."""
        operation = probe.operation
        roles = [*roles_in(probe.path)]
        is_write = operation.method != "GET"
        if is_write and not seen.is_alike:
            # only one side has made or changed them: they are compared no more
            self._judge.has_strange = True
            for role in roles:
                self._roles.forget(role)
                if self.present.pop(role, None) is not None and probe.group != SETUP:
                    self._departed.add(role)
        if not seen.target.is_success:
            return
        for role in roles[-1:] if operation.method == "DELETE" else ():
            self._made.pop(self._roles.spelled(placeholder(role), 0), None)
        record = record_of(seen.target.json())
        twin = record_of(seen.twin.json())
        own = record.get("id")
        known = self._roles.role(str(twin.get("id")))
        if not isinstance(own, str):
            return
        if is_write and not seen.twin.is_success:
            self.run.cleanup.spoiled.add(own)
        if known not in (None, own):
            self._judge.has_strange = True
        if not seen.twin.is_success:
            return
        if self.changed_by(operation) is not None:
            self.present[roles[-1]] = self.present.get(roles[-1], {}) | probe.body
        if probe.makes:
            self.present[probe.makes] = probe.body
            for member, suffix in _ROLES.items():
                names = Names(record.get(member, ""), twin.get(member, ""))
                if all(names):
                    self._roles.play(probe.makes + suffix, names)


def _words_of(answer: Answer) -> set[str]:
    """The words of a refusal of what was sent, among them names of members."""
    if answer.status not in INVALID:
        return set()
    return {*_WORD.findall(" ".join(map(str, leaves(answer.json()))))}
