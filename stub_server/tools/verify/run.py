"""One run: the journeys, four at a time, within a budget; and the cleaning up after them."""

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from uuid import UUID

import orjson

from ...contract.document import JSON, Operation
from ...contract.formats import formats
from ...domain.documents import is_document_here, is_document_unchecked
from .catalogue import Catalogue, Resource, at
from .cleanup import Cleanup
from .exchange import Exchange, Request, base_of, bearer
from .findings import CLASSES
from .journeys.accepting import accepts
from .journeys.listing import finds, finds_logs, reads
from .journeys.records import depends, moves, remembers, unique
from .journeys.refusing import refuses_all, strangers
from .judging import Run
from .probes import Builder, Chain, Journey
from .showing import Showing
from .target import AT_ONCE, KEY, PERSON, TRIES, Away, Over, Rights, Target, rights_of, together
from .twin import Twin
from .variants import Fresh, Variants
from .walking import Walk

TIDYING = 20.0  # seconds after the budget for cleaning up
_LAST_ANSWERS = 5.0  # seconds of these for the answers to what was sent


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run, as the command has them. `only` and `skip` are operationIds, tags or classes."""

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
        self.twins = Twin(options.seed + 1, options.overlays), Twin(options.seed + 2, options.overlays)
        self.document = self.twins[0].document
        self._catalogue = Catalogue(self.document)
        later = f"{datetime.now(UTC).year + 5}-01-01T00:00:00.000Z"  # by any clock that a target may have
        self._variants = Variants(self.document, formats(is_document_here, is_document_unchecked), later)
        self._run_id = secrets.token_hex(3)

    async def run(self, on_exchange: Callable[[Exchange], None] = lambda _: None) -> Run:
        """Send everything, until the budget is used up or a signal ends it; `on_exchange` gets each exchange.

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
        )
        loop = asyncio.get_running_loop()
        target.until = began + options.budget
        tasks = [loop.create_task(self._send_all(run))]
        ended = 0.0

        def end() -> None:
            nonlocal ended
            ended = ended or monotonic()
            target.is_over = True  # answers to what was sent are awaited: they may show a record that is to be deleted
            loop.call_later(_LAST_ANSWERS, tasks[0].cancel)

        def late() -> None:
            run.is_late = True
            end()

        def interrupted() -> None:
            if run.is_interrupted:
                tasks[-1].cancel()
            run.is_interrupted = True
            if not tasks[0].done():
                end()

        budget = loop.call_later(options.budget, late)
        _on_signals(interrupted)
        try:
            await tasks[0]
        except Away as error:
            run.away = str(error)
        except Over:
            pass
        except asyncio.CancelledError:  # also where the loop has no handlers of signals
            run.is_interrupted = run.is_interrupted or not run.is_late
        budget.cancel()
        if run.is_late and not target.answers:
            run.away = run.away or "does not answer"
        target.is_over, target.until = False, (ended or monotonic()) + TIDYING
        tasks.append(loop.create_task(run.cleanup.finish(target, run.unanswered)))
        with suppress(asyncio.CancelledError):
            await tasks[-1]
        _on_signals(None)
        await target.close()
        run.seconds = monotonic() - began
        silent = [finding for finding in run.findings if finding.kind == "transport"]
        if target.repeated >= len(silent):  # connections that break anywhere say nothing about an operation
            run.findings = [finding for finding in run.findings if finding not in silent]
        return run

    async def _send_all(self, run: Run) -> None:
        operations = [operation for operation in self.document.operations.values() if self.options.includes(operation)]
        run.chosen = tuple(operation.id for operation in operations)
        every = self.document.operations.values()  # what a credential is shows only in all of them
        asked = [operation for operation in every if self.options.write or operation.method == "GET"]
        run.rights = await rights_of(run.target, self.options.token, asked, run.unknown_id)
        if self.options.write and run.rights.kind == KEY:
            await self._learn_limits(run)
        builder = self._builder("needs", run.rights)
        run.needs = {each.id: [needed.creates[0].id for needed in builder.needs(each)] for each in operations}
        waiting = [*self._chains(operations, run.rights)]
        total, done = len(waiting), 0
        waiting.reverse()

        async def worker() -> None:
            nonlocal done
            with suppress(Over):  # the others wait for their last answers
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
        answer = await run.target.send(Request(create.method, create.path, "", headers, body), TRIES)
        if answer.status == 403:
            run.rights.is_limited = True
            run.rights.closed[create.id] = "the credential is limited to some projects"
        place = self._catalogue.record_at(create)
        record = at(answer.json(), place[0]) if place is not None and answer.is_success else None
        if isinstance(record, dict):
            run.cleanup.note(run.cleanup.made(), create, str(record.get("id")))

    async def _walk(self, run: Run, chain: Chain) -> None:
        made = run.cleanup.made()
        async with self.twins[0].fork(run.rights) as first, self.twins[1].fork(run.rights) as second:
            await Walk(run, self.options.token, (first, second), made).go(chain)
        await run.cleanup.remove(run.target, made)  # some kinds of records are limited in number

    def _builder(self, name: str, rights: Rights) -> Builder:
        fresh = Fresh(self._run_id, self.options.seed, name)
        return Builder(self._catalogue, self._variants, fresh, charges=self.options.charges, closed=rights.closed)

    def _chains(self, operations: list[Operation], rights: Rights) -> Iterator[Chain]:
        """The journeys over the operations that the credential opens: in a chain those of one tag."""
        if not self.options.write:
            resources = {each.list.id: each for each in self._catalogue.resources.values() if each.list is not None}
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
        yield Chain(own, [refuses_all(own, operations, makes_keys=rights.kind == PERSON), strangers(own)])

    def _of_tag(self, builder: Builder, tag: str, operations: list[Operation]) -> Iterator[Journey]:
        """The journeys of a tag: over its kinds of records, then over its other operations."""
        done: set[str] = set()

        def about(*names: Operation | None) -> bool:
            return any(operation in operations for operation in names)

        for resource in self._catalogue.resources.values():
            creates, update = resource.creates, resource.update
            if creates[0].tag != tag:
                continue
            for operation in filter(about, creates):
                yield accepts(builder, operation)
            if about(*creates, resource.list):
                yield finds(builder, resource)
            if update is not None and about(update):
                yield accepts(builder, update)
            if about(*creates, update):
                yield unique(builder, resource)
            if about(*creates, resource.read, resource.list, resource.delete):
                yield remembers(builder, resource)
            if about(*creates, update, resource.delete, *self._movers(resource)):
                yield moves(builder, resource)
            for parent in builder.needs(creates[0]):
                if about(*creates, update, resource.delete):
                    yield depends(builder, parent, resource)
            done |= {each.id for each in (*creates, update) if each is not None}
        for operation in operations:
            if operation.id not in done:
                yield accepts(builder, operation)
            if "Log" in str(self._catalogue.entries_at(operation)).title() and operation.method == "GET":
                yield finds_logs(builder, operation)

    def _movers(self, resource: Resource) -> list[Operation]:
        """The operations that make moves of a kind of records."""
        moves = () if resource.lifecycle is None else resource.lifecycle.moves
        names = {name for move in moves for name in move.by}
        return [each for each in self.document.operations.values() if each.id in names]


def _on_signals(ends: Callable[[], None] | None) -> None:
    """Have Ctrl-C and SIGTERM call a function; with None, restore what they did before."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows interrupts in another way
            if ends is None:
                loop.remove_signal_handler(number)
            else:
                loop.add_signal_handler(number, ends)
