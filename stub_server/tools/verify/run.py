"""One run: the journeys, four at a time, within a budget; and the cleaning up after them."""

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from uuid import UUID

import orjson

from ...contract.document import JSON, Operation
from ...contract.formats import formats
from ...contract.schema import Schemas
from ...domain.documents import is_document_here, is_document_unchecked
from ...server.explain.mending import Mender
from .catalogue import Catalogue, at
from .cleanup import Cleanup
from .exchange import Exchange, Request, base_of, bearer
from .findings import CLASSES
from .journeys.accepting import accepts
from .journeys.listing import finds, finds_logs, reads
from .journeys.records import depends, moves, remembers, unique
from .journeys.refusing import limited, refuses_all, strangers
from .judging import Run
from .probes import Builder, Chain, Journey
from .showing import Showing
from .target import AT_ONCE, KEY, PERSON, TRIES, Away, Rights, Target, rights_of, together
from .twin import Twin
from .variants import Variants
from .walking import Walk

TIDYING = 15.0  # seconds for cleaning up


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run, as the command has them.

    `only` and `skip` are operationIds, tags or classes.
    """

    url: str
    token: str
    write: bool = False
    charges: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    budget: float = 120.0
    settle: float = 2.0
    seed: int = 42
    overlays: tuple[Path, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    trusted: str | None = None
    proxy: str | None = None

    @property
    def classes(self) -> set[str]:
        """The classes that `only` names."""
        return CLASSES.keys() & set(self.only)

    def includes(self, operation: Operation) -> bool:
        """Whether the run is about an operation."""
        names, wanted = {operation.id, operation.tag}, set(self.only) - self.classes
        return not names & set(self.skip) and (not wanted or bool(names & wanted))


class Runner:
    """One run against one target."""

    def __init__(self, options: Options, progress: Callable[[int, int], None]) -> None:
        """`progress` is called with the number of chains of journeys that are done, and of all."""
        self.options, self._progress = options, progress
        self.twins = (
            Twin(options.seed + 1, options.overlays),
            Twin(options.seed + 2, options.overlays),
        )
        self.document = self.twins[0].document
        self._catalogue = Catalogue(self.document)
        known = formats(is_document_here, is_document_unchecked)
        self._mender = Mender(self.document, Schemas(self.document.raw, known))
        self._run_id = secrets.token_hex(3)

    async def run(self, on_exchange: Callable[[Exchange], None] = lambda _: None) -> Run:
        """Send everything, until the budget is used up or a signal ends it; `on_exchange` gets each
        exchange.

        Raises nothing for what the target does.
        """
        began, options = monotonic(), self.options
        target = Target(options.url, options.headers, options.trusted, on_exchange, options.proxy)
        run = Run(
            self._catalogue,
            target,
            Cleanup(self._catalogue, options.token, f"verify-{self._run_id}"),
            Showing(self.document, base_of(options.url), values=options.write),
            str(UUID(bytes=self._run_id.encode().ljust(16, b"v"), version=4)),
            options.settle,
            options.overlays,
        )
        target.until = began + options.budget
        with _cancelling_on_signals():
            try:
                async with asyncio.timeout(options.budget):
                    await self._send_all(run)
            except TimeoutError:
                run.is_late = True
            except asyncio.CancelledError:
                run.is_interrupted = True
            except Away as error:
                run.away = str(error)
            if run.is_late and not target.answers:
                run.away = "does not answer"
            target.until = monotonic() + TIDYING
            with suppress(asyncio.CancelledError):  # a second signal ends the cleaning up
                await run.cleanup.finish(target, may_have_made=bool(run.unanswered))
        await target.close()
        run.seconds = monotonic() - began
        silent = [finding for finding in run.findings if finding.kind == "transport"]
        # connections that break anywhere say nothing about an operation
        if target.repeated >= len(silent):
            run.findings = [finding for finding in run.findings if finding not in silent]
        return run

    async def _send_all(self, run: Run) -> None:
        operations = [
            operation
            for operation in self.document.operations.values()
            if self.options.includes(operation)
        ]
        run.chosen = tuple(operation.id for operation in operations)
        every = self.document.operations.values()  # what a credential is shows only in all of them
        asked = [
            operation for operation in every if self.options.write or operation.method == "GET"
        ]
        run.rights = await rights_of(run.target, self.options.token, asked, run.unknown_id)
        nowhere = Request("GET", "/v2/verify-unknown", "", bearer(self.options.token))
        run.conformity.learn_nowhere(Exchange(nowhere, await run.target.send(nowhere, TRIES)))
        if self.options.write and run.rights.kind == KEY:
            await self._learn_limits(run)
        builder = self._builder("needs", run.rights)
        run.needs = {
            each.id: [needed.creates[0].id for needed in builder.needs(each)] for each in operations
        }
        waiting = [*self._chains(operations, run.rights)]
        total, done = len(waiting), 0
        waiting.reverse()

        async def worker() -> None:
            nonlocal done
            while waiting:
                await self._walk(run, waiting.pop())
                done += 1
                self._progress(done, total)

        await together(*(worker() for _ in range(AT_ONCE)))

    async def _learn_limits(self, run: Run) -> None:
        """Learn whether an API key is limited to some projects: then it cannot create one."""
        project = self._catalogue.resources.get("projectId")
        if project is None or project.creates[0].id in run.rights.closed:
            return
        create = project.creates[0]
        body = orjson.dumps(self._builder("limits", run.rights).plain(create))
        headers = (*bearer(self.options.token), ("Content-Type", JSON))
        answer = await run.target.send(
            Request(create.method, create.path, "", headers, body), TRIES
        )
        if answer.status == 403:
            run.rights.is_limited = True
            run.rights.closed[create.id] = "the credential is limited to some projects"
        place = self._catalogue.record_at(create)
        record = at(answer.json(), place[0]) if place is not None and answer.is_success else None
        if isinstance(record, dict):
            run.cleanup.note(run.cleanup.made(), create, str(record.get("id")))

    async def _walk(self, run: Run, chain: Chain) -> None:
        made = run.cleanup.made()
        async with (
            self.twins[0].fork(run.rights) as first,
            self.twins[1].fork(run.rights) as second,
        ):
            await Walk(run, self.options.token, (first, second), made).go(chain)
        await run.cleanup.remove(run.target, made)  # some kinds of records are limited in number

    def _builder(self, name: str, rights: Rights) -> Builder:
        # by any clock that a target may have
        later = f"{datetime.now(UTC).year + 5}-01-01T00:00:00.000Z"
        seed = f"{self.options.seed}/{name}"
        return Builder(
            self._catalogue,
            Variants(self._mender, later, self._run_id, seed),
            charges=self.options.charges,
            closed=rights.closed,
        )

    def _chains(self, operations: list[Operation], rights: Rights) -> Iterator[Chain]:
        """The journeys over the operations that the credential opens: in a chain
        those of one tag.
        """
        if not self.options.write:
            resources = {
                each.list.id: each
                for each in self._catalogue.resources.values()
                if each.list is not None
            }
            for operation in operations:
                if operation.method == "GET":
                    own = self._builder(f"reads {operation.id}", rights)
                    yield Chain(own, [reads(own, resources.get(operation.id), operation)])
            return
        tags: dict[str, list[Operation]] = {}
        for operation in operations:
            tags.setdefault(operation.tag, []).append(operation)
        for tag in sorted(tags, key=lambda tag: -sum(each.method != "GET" for each in tags[tag])):
            own = self._builder(tag, rights)
            yield Chain(own, self._of_tag(own, tag, tags[tag]))
        own = self._builder("refuses", rights)
        yield Chain(
            own, [refuses_all(own, operations, makes_keys=rights.kind == PERSON), strangers(own)]
        )
        if rights.kind == PERSON:
            own = self._builder("limited", rights)
            yield Chain(own, [limited(own, operations)])

    def _of_tag(self, builder: Builder, tag: str, operations: list[Operation]) -> Iterator[Journey]:
        """The journeys of a tag: over its kinds of records, then over its other operations."""
        left = [*operations]
        for resource in self._catalogue.resources.values():
            create, writers = resource.creates[0], [*resource.creates, resource.update]
            own = [each for each in operations if builder.resource_of(each) == resource]
            if create.tag != tag or not (own or resource.list in operations):
                continue
            for each in filter(None, writers):
                yield builder.prepared(each, accepts(builder, each))
            for journey in (finds, unique, remembers, moves):
                yield builder.prepared(create, journey(builder, resource))
            for parent in builder.needs(create):
                yield builder.prepared(create, depends(builder, parent, resource))
            left = [each for each in left if each not in writers]
        test = self.document.operations.get("sendTestWebhook")
        for each in left:
            yield builder.prepared(each, accepts(builder, each))
            is_log = "Log" in str(self._catalogue.entries_at(each)).title()
            if test is not None and is_log and each.method == "GET":
                yield builder.prepared(test, finds_logs(builder, each, test))


@contextmanager
def _cancelling_on_signals() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM cancel the current task while the block runs."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):  # Windows: `asyncio.run` does it for Ctrl-C
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
