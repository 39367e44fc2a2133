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

from ..contract.document import Operation
from ..contract.formats import formats
from ..domain.documents import is_document_here, is_document_unchecked
from .catalogue import Catalogue
from .cleanup import Cleanup
from .exchange import Exchange, base_of
from .findings import CLASSES
from .journeys.accepting import accepts, refuses_all, strangers
from .journeys.reading import lists, others
from .journeys.records import depends, finds, moves, remembers, repeats, unique
from .judging import Run
from .probes import Builder, Journey
from .showing import Showing
from .target import AT_ONCE, Away, Over, Rights, Target, rights_of, together
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

    def __init__(
        self,
        options: Options,
        progress: Callable[[int, int], None],
        *,
        asks: Callable[[Callable[[str], Builder]], Iterator[Journey]] | None = None,
    ) -> None:
        """`progress` is called with the number of journeys that are done, and of all.

        `asks` replaces the journeys of the contract: it is called with a function that returns a builder by its name.
        """
        self.options, self._progress, self._asks = options, progress, asks
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
        target = Target(options.url, options.headers, options.trusted, on_exchange)
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
        asked = [operation for operation in operations if self.options.write or operation.method == "GET"]
        run.rights = await rights_of(run.target, self.options.token, asked, run.unknown_id)
        waiting = [*self._journeys([each for each in operations if each.id not in run.rights.closed], run.rights)]
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

    async def _walk(self, run: Run, journey: Journey) -> None:
        made, is_key = run.cleanup.made(), run.rights.is_key
        async with self.twins[0].fork(as_key=is_key) as first, self.twins[1].fork(as_key=is_key) as second:
            await Walk(run, self.options.token, (first, second), made).go(journey)
        await run.cleanup.remove(run.target, made)  # some kinds of records are limited in number

    def _journeys(self, operations: list[Operation], rights: Rights) -> Iterator[Journey]:
        """The journeys over the operations that the credential opens."""
        resources = self._catalogue.resources.values()

        def builder(name: str) -> Builder:
            fresh = Fresh(self._run_id, self.options.seed, name)
            return Builder(self._catalogue, self._variants, fresh, charges=self.options.charges, closed=rights.closed)

        if self._asks is not None:
            yield from self._asks(builder)
            return
        if not self.options.write:
            for operation in operations:
                if operation.method == "GET":
                    own = builder(f"reads {operation.id}")
                    yield others(own, operation)
                    yield lists(own, next((each for each in resources if each.list == operation), None), operation)
            return
        for operation in sorted(operations, key=lambda each: -len(str(each.body))):  # the longest journeys first
            yield accepts(builder(operation.id), operation)
        for operation in operations:
            if operation.takes_key:
                yield repeats(builder(f"repeats {operation.id}"), operation)
        for resource in resources:
            about = (*resource.creates, resource.read, resource.list, resource.update, resource.delete)
            if resource.creates[0].id not in rights.closed and any(operation in about for operation in operations):
                for journey in (moves, depends, finds, remembers, unique):
                    yield journey(builder(f"{journey.__name__} {resource.key}"), resource)
        for part in range(AT_ONCE):
            yield refuses_all(builder(f"refuses {part}"), operations[part::AT_ONCE], makes_keys=not rights.is_key)
        yield strangers(builder("strangers"))


def _on_signals(ends: Callable[[], None] | None) -> None:
    """Have Ctrl-C and SIGTERM call a function; with None, restore what they did before."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows interrupts in another way
            if ends is None:
                loop.remove_signal_handler(number)
            else:
                loop.add_signal_handler(number, ends)
