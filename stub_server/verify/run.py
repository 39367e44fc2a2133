"""One run: the journeys, at most four at once, within a budget; what they found, and what was left behind."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from urllib.parse import urlencode
from uuid import UUID

from ..contract.document import Document, Operation
from ..contract.formats import formats
from ..domain.documents import is_document_here, is_document_unchecked
from .building import Builder
from .comparing import TargetClock
from .conformity import Conformity
from .credential import Rights, rights_of
from .exchange import Exchange, Request, bearer
from .findings import GROUPS, Finding
from .fresh import Fresh
from .journeys.accepting import accepts, refuses_all, strangers
from .journeys.finding import finds
from .journeys.moving import depends, moves
from .journeys.reading import lists, others
from .journeys.remembering import remembers, repeats, unique
from .probe import Journey, Probe
from .resources import Catalogue, Resource, at
from .showing import Showing
from .target import AT_ONCE, TRIES, Away, Over, Target, together
from .twin import Twin
from .variants import Variants
from .walking import Run, Walk, defaults_of

TIDYING = 20.0  # seconds beside the budget for cleaning up
_LAST_ANSWERS = 5.0  # seconds of these for the answers to what was sent
_SEARCHED = 20  # pages of a list in which a record is looked for

Made = tuple[Resource, str]
"""A record that the target has made: its kind and its id."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is to do. `only` and `skip` are operationIds, tags or classes."""

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


@dataclass(slots=True)
class Learned:
    """What a run has learned. `statuses` and `groups` are by operationId, `suspected` are operationIds by class.

    `chosen` are the operationIds that the run was about. `away` is a clause that says why the target could not be asked
    any more. `repeated` requests were answered only when they were sent again, `limited` ones were told to come later.
    `unknown` counts records that the target may have made without an answer, and that no list shows. Names of the run
    begin with `tag`; where cleaning up `is_cut_short`, there may be more of them than `left_behind` tells.
    """

    findings: list[Finding] = field(default_factory=list)
    statuses: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    groups: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    suspected: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    rights: Rights = field(default_factory=Rights)
    requests: int = 0
    seconds: float = 0.0
    chosen: tuple[str, ...] = ()
    repeated: int = 0
    limited: int = 0
    unknown: int = 0
    tag: str = ""
    is_cut_short: bool = False
    away: str = ""
    is_late: bool = False
    is_interrupted: bool = False
    has_standing_clock: bool = False
    left_behind: list[str] = field(default_factory=list)


class Runner:
    """One run against one target."""

    def __init__(
        self,
        options: Options,
        progress: Callable[[int, int], None],
        *,
        asks: Callable[[Callable[[str], Builder]], Iterator[Journey]] | None = None,
    ) -> None:
        """`progress` is told how many journeys of how many are done.

        `asks` makes other journeys than those of the contract, from what makes a builder for one by its name.
        """
        self.options, self._progress, self._asks = options, progress, asks
        self.twins = Twin(options.seed + 1, options.overlays), Twin(options.seed + 2, options.overlays)
        self.document = self.twins[0].document
        self.catalogue, self.learned = Catalogue(self.document), Learned()
        later = f"{datetime.now(UTC).year + 5}-01-01T00:00:00.000Z"  # by any clock that a target may have
        self._variants = Variants(self.document, formats(is_document_here, is_document_unchecked), later)
        self._run_id = secrets.token_hex(3)
        self.learned.tag = f"verify-{self._run_id}"
        self._made: list[list[Made]] = []
        self._noted: set[str] = set()  # ids of all that was ever made
        self._kept: set[str] = set()  # ids of what cannot be deleted

    async def run(self, on_exchange: Callable[[Exchange], None] = lambda _: None) -> Learned:
        """Send everything, until the budget is used up or a signal ends it; `on_exchange` is given each exchange.

        Raises nothing for what the target does.
        """
        began, options = monotonic(), self.options
        target = Target(options.url, options.headers, options.trusted, on_exchange)
        showing = Showing(self.document, options.url.rstrip("/").removesuffix("/v2"), values=options.write)
        clock = TargetClock()
        run = Run(
            self.document,
            self.catalogue,
            Conformity(self.document, showing),
            showing,
            target,
            {},
            clock,
            defaults_of(self.document),
            _unique(self.document),
            _unknown_id(self._run_id),
            options.settle,
            self.learned.findings.append,
            self._answered,
            [],
            set(),
        )
        loop = asyncio.get_running_loop()
        target.until = began + options.budget
        tasks = [loop.create_task(self._send_all(run))]
        ended = 0.0

        def end() -> None:
            nonlocal ended
            ended = ended or monotonic()
            target.is_over = True  # what was sent may still be answered: it may tell of a record that is to be deleted
            loop.call_later(_LAST_ANSWERS, tasks[0].cancel)

        def late() -> None:
            self.learned.is_late = True
            end()

        def interrupted() -> None:
            if self.learned.is_interrupted:
                tasks[-1].cancel()
            self.learned.is_interrupted = True
            if not tasks[0].done():
                end()

        budget = loop.call_later(options.budget, late)
        _on_signals(interrupted)
        try:
            await tasks[0]
        except Away as error:
            self.learned.away = str(error)
        except Over:
            pass
        except asyncio.CancelledError:  # also where the loop has no handlers of signals
            self.learned.is_interrupted = self.learned.is_interrupted or not self.learned.is_late
        budget.cancel()
        if self.learned.is_late and not target.answers:
            self.learned.away = self.learned.away or "it does not answer"
        target.is_over, target.until = False, (ended or monotonic()) + TIDYING
        self.learned.is_cut_short = bool(self._noted or run.unanswered)
        tasks.append(loop.create_task(self._tidy_all(target, run.unanswered)))
        with suppress(asyncio.CancelledError):
            await tasks[-1]
        _on_signals(None)
        self.learned.left_behind += [_path(*made) for each in self._made for made in each]
        await target.close()
        self.learned.requests, self.learned.seconds = target.requests, monotonic() - began
        self.learned.has_standing_clock = clock.stands
        self.learned.repeated, self.learned.limited = target.repeated, target.limited
        silent = [finding for finding in self.learned.findings if finding.kind == "transport"]
        if target.repeated >= len(silent):  # what breaks off anywhere says nothing of an operation
            self.learned.findings = [finding for finding in self.learned.findings if finding not in silent]
        return self.learned

    # -- the journeys

    async def _send_all(self, run: Run) -> None:
        operations = [operation for operation in self.document.operations.values() if self.includes(operation)]
        self.learned.chosen = tuple(operation.id for operation in operations)
        asked = [operation for operation in operations if self.options.write or operation.method == "GET"]
        self.learned.rights = await rights_of(run.target, self.options.token, asked, run.unknown_id)
        waiting = [*self._journeys()]
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
        made: list[Made] = []
        self._made.append(made)

        def note(operation: Operation, ident: str) -> None:
            resource = next((r for r in self.catalogue.resources.values() if operation in r.creates), None)
            if resource is not None and (resource, ident) not in made:
                made.append((resource, ident))
                self._noted.add(ident)

        def gone(ident: str) -> None:
            made[:] = [each for each in made if each[1] != ident]

        is_key = self.learned.rights.is_key
        async with self.twins[0].fork(as_key=is_key) as first, self.twins[1].fork(as_key=is_key) as second:
            await Walk(run, self.options.token, (first, second), note, gone).go(journey)
        await self._tidy(run.target, made)  # some kinds of records are limited in number

    def _journeys(self) -> Iterator[Journey]:
        closed = self.learned.rights.closed
        operations = [o for o in self.document.operations.values() if self.includes(o) and o.id not in closed]
        names = frozenset(o.id for o in operations)

        def builder(name: str) -> Builder:
            fresh = Fresh(self._run_id, self.options.seed, name)
            return Builder(self.catalogue, self._variants, fresh, charges=self.options.charges, closed=closed)

        if self._asks is not None:
            yield from self._asks(builder)
            return
        if not self.options.write:
            for operation in operations:
                if operation.method == "GET":
                    own = builder(f"reads {operation.id}")
                    resource = next((r for r in self.catalogue.resources.values() if r.list == operation), None)
                    yield Journey(f"reads {operation.id}", others(own, operation), names)
                    yield Journey(f"lists {operation.id}", lists(own, resource, operation), names)
            return
        for operation in sorted(operations, key=lambda o: -len(str(o.body))):
            yield Journey(f"accepts {operation.id}", accepts(builder(operation.id), operation), names)
        for operation in operations:
            if operation.takes_key:
                own = builder(f"repeats {operation.id}")
                yield Journey(f"repeats {operation.id}", repeats(own, operation), names)
        for resource in self.catalogue.resources.values():
            if resource.creates[0].id in closed:
                continue
            about = [
                o for o in (*resource.creates, resource.read, resource.list, resource.update, resource.delete) if o
            ]
            for steps in (moves, depends, finds, remembers, unique):
                if any(o.id in names for o in about):
                    own = builder(f"{steps.__name__} {resource.key}")
                    yield Journey(steps.__name__, steps(own, resource), names)
        for part in range(AT_ONCE):
            own = builder(f"refuses {part}")
            yield Journey(
                "refuses", refuses_all(own, operations[part::AT_ONCE], makes_keys=not self.learned.rights.is_key), names
            )
        yield Journey("strangers", strangers(builder("strangers")), names)

    def includes(self, operation: Operation) -> bool:
        """Whether a run is to probe an operation."""
        named = {operation.id, operation.tag}
        classes = (
            set(self.options.only)
            - {o.id for o in self.document.operations.values()}
            - {o.tag for o in self.document.operations.values()}
        )
        return (not set(self.options.only) - classes or bool(named & set(self.options.only))) and not (
            named & set(self.options.skip)
        )

    # -- what is told

    def _answered(self, probe: Probe, status: int) -> None:
        assert probe.operation is not None
        about = probe.about or probe.operation
        self.learned.statuses[probe.operation.id].add(status)
        if probe.group in GROUPS:
            self.learned.groups[probe.operation.id].add(probe.group)
            self.learned.groups[about.id].add(probe.group)
        if probe.suspect:
            self.learned.suspected[probe.suspect].add(about.id)

    # -- afterwards

    async def _tidy_all(self, target: Target, unanswered: Sequence[Operation]) -> None:
        """Tidy what all journeys have left, and what they have made without being told."""
        if not self.learned.is_cut_short:
            return
        kinds = [*self.catalogue.resources.values()]
        urgent = [kind for kind in kinds if any(operation in kind.creates for operation in unanswered)]
        with suppress(TimeoutError, Away):
            async with asyncio.timeout(target.until - monotonic()):
                await together(*(self._search(target, kind) for kind in urgent))
                for kind in urgent:
                    missing = sum(operation in kind.creates for operation in unanswered)
                    found = sum(each is kind for made in self._made[-len(urgent) :] for each, _ in made)
                    self.learned.unknown += max(0, missing - found)
                await together(*(self._tidy(target, made) for made in self._made if made))
                # A record may have made another: an order makes its customer.
                await together(*(self._search(target, kind) for kind in kinds if kind not in urgent))
                await together(*(self._tidy(target, made) for made in self._made if made))
                self.learned.is_cut_short = False

    async def _search(self, target: Target, resource: Resource) -> None:
        """Note the records in a list that have this run's tag in them and are not known yet.

        A list that cannot be searched is read, newest first, for as long as it shows any of this run.
        """
        found: list[Made] = []
        self._made.append(found)
        steps = resource.list and self.catalogue.entries_at(resource.list)
        if resource.list is None or steps is None:
            return
        headers = bearer(self.options.token)
        query = [("search", self.learned.tag) for each in resource.list.parameters if each.name == "search"]
        for page in range(1, _SEARCHED + 1):
            sent = urlencode([*query, ("page", page), ("limit", 100)])
            answer = await target.send(Request("GET", resource.list.path, sent, headers), TRIES)
            entries = at(answer.json(), steps)
            entries = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
            own = [entry.get("id") for entry in entries if self.learned.tag in str(entry)]
            new = {ident for ident in own if isinstance(ident, str)} - self._noted
            self._noted |= new
            found += [(resource, ident) for ident in own if ident in new]
            if len(entries) < 100 or not own:
                return

    async def _tidy(self, target: Target, made: list[Made]) -> None:
        """Delete records, else archive them, those last that others are below of; what cannot be stays in the list."""
        keys = [*self.catalogue.resources]
        for resource, ident in sorted(made, key=lambda each: (each[0].key == "projectId", -keys.index(each[0].key))):
            if ident in self._kept:
                continue
            if await self._removed(target, resource, ident):
                made.remove((resource, ident))
            else:
                self._kept.add(ident)

    async def _removed(self, target: Target, resource: Resource, ident: str) -> bool:
        headers = bearer(self.options.token)
        if resource.delete is None and resource.lifecycle is None:
            return False
        if resource.delete is not None:
            path = resource.delete.path.replace(f"{{{resource.key}}}", ident)
            answer = await target.send(Request("DELETE", path, "", headers), TRIES)
            if 200 <= answer.status < 300 or answer.status == 404:
                return True
        archive = next(
            (o for o in self.document.operations.values() if o.path.endswith(f"{{{resource.key}}}/archive")), None
        )
        if archive is None:
            return False
        path = archive.path.replace(f"{{{resource.key}}}", ident)
        sent = Request("POST", path, "", (*headers, ("Content-Type", "application/json")), b"{}")
        return 200 <= (await target.send(sent, TRIES)).status < 300


def _unknown_id(text: str) -> str:
    """An id that no record has, made of a text."""
    return str(UUID(bytes=text.encode().ljust(16, b"v")[:16], version=4))


def _path(resource: Resource, ident: str) -> str:
    """Where a record is."""
    shown = resource.read or resource.update
    base = resource.creates[0].path + f"/{{{resource.key}}}" if shown is None else shown.path
    return base.replace(f"{{{resource.key}}}", ident)


def _on_signals(ends: Callable[[], None] | None) -> None:
    """Have Ctrl-C and SIGTERM call a function, or what they did before."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows interrupts in another way
            if ends is None:
                loop.remove_signal_handler(number)
            else:
                loop.add_signal_handler(number, ends)


def _unique(document: Document) -> frozenset[str]:
    """The codes that refuse a second record of a unique key."""
    return frozenset(key.code for keys in document.unique.values() for key in keys if key.code is not None)
