"""One run: the journeys, four at a time, within a budget; and the cleaning up after them."""

import asyncio
import signal
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic

import orjson

from ...contract.document import Operation
from ...contract.formats import formats
from ...contract.schema import Schemas
from ...domain.documents import is_document_here, is_document_unchecked
from ...server.explain.mending import Mender
from .catalogue import Resource
from .conformity import said
from .exchange import Exchange, Request, bearer
from .journeys.accepting import accepts
from .journeys.records import (
    expires,
    isolated,
    limited,
    loses,
    remembers,
    stays,
    transitions,
    unique,
)
from .journeys.refusing import refuses
from .learned import Run
from .options import Options
from .probes import Builder, Journey
from .target import AT_ONCE, TRIES, Away, rights_of, together
from .twin import Twin
from .variants import UNKNOWN_ID, Variants
from .walking import Walk

TIDYING = 15.0  # seconds for cleaning up


class Runner(Run):
    """One run against one target."""

    def __init__(
        self,
        options: Options,
        progress: Callable[[int, int], None],
        on_exchange: Callable[[Exchange], None] = lambda _: None,
    ) -> None:
        """`progress` is called with the number of chains of journeys that are done, and of all;
        `on_exchange` with each exchange.
        """
        self._progress = progress
        self._twin = Twin(options.seed + 1, options.overlays)
        super().__init__(options, on_exchange)
        known = formats(is_document_here, is_document_unchecked)
        self._mender = Mender(self.document, Schemas(self.document.raw, known))

    async def run(self) -> Run:
        """Send everything, until the budget is used up or a signal ends it.

        Raises nothing for what the target does.
        """
        began, target = monotonic(), self.target
        target.until = began + self.options.budget
        _cancel_on_signals()
        try:
            async with asyncio.timeout(self.options.budget):
                await self._send_all()
        except TimeoutError:
            self.is_late = True
            self.away = "" if target.answers else "does not answer"
        except asyncio.CancelledError:
            self.is_interrupted = True
        except Away as error:
            self.away = str(error)
        target.until = monotonic() + TIDYING
        if self.unanswered or self.cleanup.noted:
            with suppress(asyncio.CancelledError):  # a second signal ends the cleaning up
                await self.cleanup.finish()
        await target.close()
        self.seconds = monotonic() - began
        # connections that break now and then say nothing about an operation
        answered = {operation for operation, status in self.pairs if status}
        lost = Counter(each.operation for each in self.findings if each.kind == "transport")
        for each in [*self.findings]:
            is_chance = each.operation in answered or lost[each.operation] < TRIES
            if each.kind == "transport" and (self.away or is_chance):
                self.findings.remove(each)
        return self

    async def _send_all(self) -> None:
        # what a credential is shows only in all
        asked = [*filter(self.options.sends, self.document.operations.values())]
        self.closed = await rights_of(self.target, asked)
        await self._learn_unknown("GET", "/v2/verify-unknown")
        if self.options.write:
            for resource in self.catalogue.resources.values():
                path = resource.at(UNKNOWN_ID)
                if "PATCH" not in self.document.routed(path)[0]:
                    await self._learn_unknown("PATCH", path)
            await self._learn_limits()
        waiting = deque(self._chains())
        total, done = len(waiting), 0

        async def worker() -> None:
            nonlocal done
            while waiting:
                await self._walk(*waiting.popleft())
                done += 1
                self._progress(done, total)

        await together(*(worker() for _ in range(AT_ONCE)))

    async def _learn_unknown(self, method: str, path: str) -> None:
        """Learn how a path or a method is refused that the contract does not have."""
        request = Request(method, path, "", bearer(self.options.token))
        seen = Exchange(request, await self.target.send(request, TRIES))
        if method == "GET" and seen.answer.status == 404:
            self.conformity.nowhere = said(seen)
        for found in self.conformity.findings(seen, None):
            self.findings.append(self.showing.finding(found, seen, None, "rejects"))

    async def _learn_limits(self) -> None:
        """Learn whether the credential is limited to some projects: then it cannot create one."""
        project = self.catalogue.resources.get("projectId")
        if project is None or project.create.id in self.closed:
            return
        create = project.create
        body = orjson.dumps(self.builder("limits").plain(create))
        answer = await self.target.ask(create.method, create.path, body)
        self.cleanup.note(self.cleanup.made(), create, answer)
        if answer.status == 403:
            self.closed[create.id] = "the credential is limited to some projects"

    async def _walk(self, builder: Builder, journeys: Iterable[Journey]) -> None:
        made, left = self.cleanup.made(), iter(journeys)
        is_done = False
        while not is_done:  # with a new fork once the target's records have departed from its own
            async with self._twin.fork() as fork:
                is_done = await Walk(self, builder, fork, made).go(left)
            await self.cleanup.remove(made)  # some kinds are limited in number
            builder.begin_anew()

    def builder(self, name: str) -> Builder:
        """A builder for some journeys."""
        # by any clock that a target may have
        later = f"{datetime.now(UTC).year + 5}-01-01T00:00:00.000Z"
        variants = Variants(self._mender, later, self.tag, f"{self.options.seed}/{name}")
        return Builder(self.catalogue, variants, self.options, self.closed)

    def _chains(self) -> Iterator[tuple[Builder, Iterable[Journey]]]:
        """The journeys over the operations that the run is about: in a chain those of one kind of
        record.
        """
        chosen = [self.document.operations[name] for name in self.chosen]
        operations = [*filter(self.options.sends, chosen)]
        own, keys = self.builder("refuses"), self.catalogue.resources.get("apiKeyId")
        yield own, [refuses(own, each, keys) for each in operations]
        kinds: dict[Resource | None, list[Operation]] = defaultdict(list)
        for each in operations:
            kinds[own.resource_of(each) or self.catalogue.listed_by(each)].append(each)
        for kind, about in kinds.items():
            own = self.builder("" if kind is None else kind.key)
            own.is_lasting = kind is not None and kind.is_lasting
            yield own, self._of_kind(own, kind, about)

    def _of_kind(
        self, builder: Builder, kind: Resource | None, operations: list[Operation]
    ) -> Iterator[Journey]:
        """The journeys over some operations on records of a kind, and over those that make and
        change such records.
        """
        writers = [] if kind is None else [*kind.creates, *filter(None, (kind.update,))]
        every = [*writers, *operations]
        if builder.is_lasting:  # lists first, as long as both sides have the same records
            every.sort(key=lambda each: each.method != "GET")
        for each in {each.id: each for each in every}.values():
            if builder.may(each):
                yield accepts(builder, each)
        if kind is not None and builder.may(kind.create):
            yield unique(builder, kind)
            if not builder.is_lasting:  # the list was compared when they were made
                yield remembers(builder, kind)
            yield stays(builder, kind)
            yield isolated(builder, kind)
            yield from transitions(builder, kind)
            if kind.key == "apiKeyId":  # last: the backend alone counts this use of a key
                yield expires(builder, kind)
                yield loses(builder, kind)
                yield limited(builder, kind)


def _cancel_on_signals() -> None:
    """Have Ctrl-C and SIGTERM cancel the current task, as long as its loop runs."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):  # Windows: `asyncio.run` does it for Ctrl-C
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
