"""One run: the journeys, four at a time, within a budget; and the cleaning up after them."""

import asyncio
import signal
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
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
from .journeys.keys import expires, limited, loses
from .journeys.moving import transitions
from .journeys.records import isolated, remembers, unique
from .journeys.refusing import refuses
from .learned import Run
from .options import Options
from .target import AT_ONCE, TRIES, Away, rights_of, together
from .twin import Twin
from .variants import UNKNOWN_ID, Variants
from .walking import Journey, Walk

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
        began = monotonic()
        target = self.target
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
        finally:
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
        total = len(waiting)
        done = 0

        async def worker() -> None:
            nonlocal done
            while waiting:
                walk, journeys = waiting.popleft()
                await walk.through(journeys, self._twin)
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
        body = orjson.dumps(self.walk("limits").plain(create))
        answer = await self.target.ask(create.method, create.path, body)
        self.cleanup.note(self.cleanup.made(), create, answer)
        if answer.status == 403:
            self.closed[create.id] = "the credential is limited to some projects"

    def walk(self, name: str, *, is_lasting: bool = False) -> Walk:
        """A chain of journeys that is yet to be walked."""
        variants = Variants(self._mender, self.tag, f"{self.options.seed}/{name}")
        return Walk(self, variants, is_lasting=is_lasting)

    def _chains(self) -> Iterator[tuple[Walk, list[Journey]]]:
        """The journeys over the operations that the run is about: in a chain those of one kind of
        record.
        """
        chosen = [self.document.operations[name] for name in self.chosen]
        operations = [*filter(self.options.sends, chosen)]
        walk = self.walk("refuses")
        yield walk, [partial(refuses, walk, each) for each in operations]
        kinds: dict[Resource | None, list[Operation]] = defaultdict(list)
        for each in operations:
            kinds[walk.resource_of(each) or self.catalogue.listed_by(each)].append(each)
        for kind, about in kinds.items():
            walk = self.walk(kind.key if kind else "", is_lasting=bool(kind and kind.is_lasting))
            if kind is not None:  # what makes and changes its records too
                about = [*kind.creates, *filter(None, [kind.update]), *about]
            if walk.is_lasting:  # lists first, as long as both sides have the same records
                about.sort(key=lambda each: each.method != "GET")
            journeys: list[Journey] = []
            for each in {each.id: each for each in about}.values():
                if walk.may(each):
                    journeys.append(partial(accepts, walk, each))
            if kind is not None and walk.may(kind.create):
                journeys += _of_kind(walk, kind)
            yield walk, journeys


def _of_kind(walk: Walk, kind: Resource) -> Iterator[Journey]:
    """The journeys over records of a kind."""
    for journey in (unique, remembers, isolated):
        yield partial(journey, walk, kind)
    yield from transitions(walk, kind)
    # last: the backend alone counts this use of a key
    for of_keys in (expires, loses, limited) if kind.key == "apiKeyId" else ():
        yield partial(of_keys, walk, kind)


def _cancel_on_signals() -> None:
    """Have Ctrl-C and SIGTERM cancel the current task, as long as its loop runs."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):  # Windows: `asyncio.run` does it for Ctrl-C
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
