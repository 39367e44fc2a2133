"""One run: the journeys, four at a time, within a budget; and the cleaning up after them."""

import asyncio
import signal
from collections import defaultdict
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
from .exchange import Exchange, Request
from .journeys.accepting import accepts
from .journeys.listing import finds, finds_logs, reads
from .journeys.records import depends, moves, remembers, unique
from .journeys.refusing import limited, refuses_all, strangers
from .judging import Run
from .options import Options
from .probes import Builder, Journey
from .target import AT_ONCE, KEY, PERSON, Away, rights_of, together
from .twin import Twin
from .variants import Variants
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
        self._twins = [Twin(options.seed + number, options.overlays) for number in (1, 2)]
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
            self.end.is_late = True
            self.end.away = "" if target.answers else "does not answer"
        except asyncio.CancelledError:
            self.end.is_interrupted = True
        except Away as error:
            self.end.away = str(error)
        target.until = monotonic() + TIDYING
        with suppress(asyncio.CancelledError):  # a second signal ends the cleaning up
            await self.cleanup.finish(may_have_made=bool(self.learned.unanswered))
        await target.close()
        self.end.seconds = monotonic() - began
        silent = [finding for finding in self.findings if finding.kind == "transport"]
        # connections that break anywhere say nothing about an operation
        if target.repeated >= len(silent):
            self.findings = [finding for finding in self.findings if finding not in silent]
        return self

    async def _send_all(self) -> None:
        asked = []
        for each in self.document.operations.values():  # what a credential is shows only in all
            if self.options.write or each.method == "GET":
                asked.append(each)
        self.rights = await rights_of(self.target, asked, self.unknown_id)
        nowhere = Request("GET", "/v2/verify-unknown")
        answer = await self.target.ask(nowhere.method, nowhere.path)
        self.conformity.learn_nowhere(Exchange(nowhere, answer))
        if self.options.write and self.rights.kind == KEY:
            await self._learn_limits()
        waiting = [*self._chains()]
        total, done = len(waiting), 0
        waiting.reverse()

        async def worker() -> None:
            nonlocal done
            while waiting:
                await self._walk(*waiting.pop())
                done += 1
                self._progress(done, total)

        await together(*(worker() for _ in range(AT_ONCE)))

    async def _learn_limits(self) -> None:
        """Learn whether an API key is limited to some projects: then it cannot create one."""
        project = self.catalogue.resources.get("projectId")
        if project is None or project.create.id in self.rights.closed:
            return
        create = project.create
        body = orjson.dumps(self.builder("limits").plain(create))
        answer = await self.target.ask(create.method, create.path, body)
        self.cleanup.note(self.cleanup.made(), create, answer)
        if answer.status == 403:
            self.rights.is_limited = True
            self.rights.closed[create.id] = "the credential is limited to some projects"

    async def _walk(self, builder: Builder, journeys: Iterable[Journey]) -> None:
        made, (first, second) = self.cleanup.made(), self._twins
        async with first.fork(self.rights) as one, second.fork(self.rights) as two:
            await Walk(self, builder, (one, two), made).go(journeys)
        await self.cleanup.remove(made)  # some kinds of records are limited in number

    def builder(self, name: str) -> Builder:
        """A builder for some journeys."""
        # by any clock that a target may have
        later = f"{datetime.now(UTC).year + 5}-01-01T00:00:00.000Z"
        variants = Variants(self._mender, later, self.tag, f"{self.options.seed}/{name}")
        closed = self.rights.closed
        return Builder(self.catalogue, variants, charges=self.options.charges, closed=closed)

    def _chains(self) -> Iterator[tuple[Builder, Iterable[Journey]]]:
        """The journeys over the operations that the credential opens: in a chain
        those of one tag.
        """
        tags: dict[str, list[Operation]] = defaultdict(list)
        operations = [self.document.operations[name] for name in self.chosen]
        for each in operations:
            tags[each.tag].append(each)
            if not self.options.write and each.method == "GET":
                own = self.builder(f"reads {each.id}")
                yield own, [reads(own, each)]
        if not self.options.write:
            return
        for tag in sorted(tags, key=lambda tag: -sum(each.method != "GET" for each in tags[tag])):
            own = self.builder(tag)
            yield own, self._of_tag(own, tag, tags[tag])
        own, is_person = self.builder("refuses"), self.rights.kind == PERSON
        yield own, [refuses_all(own, operations, makes_keys=is_person), strangers(own)]
        if is_person:
            own = self.builder("limited")
            yield own, [limited(own, operations)]

    def _of_tag(self, builder: Builder, tag: str, operations: list[Operation]) -> Iterator[Journey]:
        """The journeys of a tag: over its kinds of records, then over its other operations."""
        left = [*operations]
        for resource in self.catalogue.resources.values():
            create, writers = resource.create, [*resource.creates, resource.update]
            own = [each for each in operations if builder.resource_of(each) == resource]
            if create.tag != tag or not (own or resource.list in operations):
                continue
            left = [each for each in left if each not in writers]
            for each in filter(builder.may, filter(None, writers)):
                yield accepts(builder, each)
            if not builder.may(create):
                continue
            for journey in (finds, unique, remembers):
                yield journey(builder, resource)
            yield from moves(builder, resource)
            for parent in builder.needs(create):
                yield depends(builder, parent, resource)
        test = self.document.operations.get("sendTestWebhook")
        for each in filter(builder.may, left):
            yield accepts(builder, each)
            is_log = "Log" in str(self.catalogue.entries_at(each)).title()
            if test is not None and builder.may(test) and is_log and each.method == "GET":
                yield finds_logs(builder, each, test)


def _cancel_on_signals() -> None:
    """Have Ctrl-C and SIGTERM cancel the current task, as long as its loop runs."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):  # Windows: `asyncio.run` does it for Ctrl-C
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
