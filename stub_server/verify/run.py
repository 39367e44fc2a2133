"""One run: the journeys, at most four at once, within a budget; what they found, and what was left behind."""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from ..contract.document import Document, Operation
from ..contract.formats import formats
from ..domain.documents import is_document_here, is_document_unchecked
from . import journeys, relations
from .building import Builder
from .conformity import Conformity
from .credential import NotAccepted, Reach, reach_of
from .exchange import Exchange, Request
from .findings import GROUPS, Finding
from .fresh import Fresh
from .probe import Journey, Probe, Steps
from .resources import Catalogue, Resource
from .showing import Showing
from .target import AT_ONCE, Away, Target
from .twin import Twin
from .variants import Variants
from .walking import Run, Walk, defaults_of

TIDYING = 20.0  # seconds beside the budget for cleaning up


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
    """What a run has learned. `statuses` and `groups` are by operationId, `suspected` are operationIds by class."""

    findings: list[Finding] = field(default_factory=list)
    statuses: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    groups: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    suspected: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    reach: Reach = field(default_factory=Reach)
    requests: int = 0
    seconds: float = 0.0
    away: str = ""
    is_late: bool = False
    left_behind: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)


class Runner:
    """One run against one target."""

    def __init__(
        self,
        options: Options,
        progress: Callable[[int, int], None],
        *,
        keeps: bool = False,
        asks: Callable[[Callable[[str], Builder]], Iterator[Journey]] | None = None,
    ) -> None:
        """`progress` is told how many journeys of how many are done. With `keeps` all exchanges are kept.

        `asks` makes other journeys than those of the contract, from what makes a builder for one by its name.
        """
        self._asks = asks
        self.options, self._progress, self._keeps = options, progress, keeps
        self.twins = Twin(options.seed + 1, options.overlays), Twin(options.seed + 2, options.overlays)
        self.document = self.twins[0].document
        self.catalogue, self.learned = Catalogue(self.document), Learned()
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        self._variants = Variants(self.document, formats(is_document_here, is_document_unchecked), now)
        self._run_id = secrets.token_hex(3)
        self._made: list[list[Made]] = []
        self._kept: set[str] = set()  # ids of what cannot be deleted

    async def run(self) -> Learned:
        """Send everything. Raises nothing for what the target does."""
        began, options = monotonic(), self.options
        target = Target(options.url, options.headers, options.trusted, self._told)
        showing = Showing(self.document, options.url.rstrip("/").removesuffix("/v2"), values=options.write)
        run = Run(
            self.document,
            self.catalogue,
            Conformity(self.document, showing),
            showing,
            target,
            {},
            defaults_of(self.document),
            _unique(self.document),
            journeys.nowhere(self._run_id),
            options.settle,
            self.learned.findings.append,
            self._answered,
        )
        meant = [operation for operation in self.document.operations.values() if self.is_meant(operation)]
        meant = [operation for operation in meant if options.write or operation.method == "GET"]
        try:
            async with asyncio.timeout(options.budget):
                self.learned.reach = await reach_of(target, options.token, meant, run.unknown_id)
                await self._walk_all(run)
        except NotAccepted:
            self.learned.away = "it refuses the credential: 401 to every operation"
        except TimeoutError:
            self.learned.is_late = True
        except Away as error:
            self.learned.away = str(error)
        finally:
            try:
                async with asyncio.timeout(TIDYING):
                    for made in self._made:
                        await self._tidy(target, made)
            except (TimeoutError, Away):
                pass
            self.learned.left_behind += [_path(*made) for each in self._made for made in each]
            await target.close()
            self.learned.requests, self.learned.seconds = target.requests, monotonic() - began
        return self.learned

    # -- the journeys

    async def _walk_all(self, run: Run) -> None:
        waiting = [*self._journeys()]
        total, done = len(waiting), 0
        waiting.reverse()

        async def worker() -> None:
            nonlocal done
            while waiting:
                await self._walk(run, waiting.pop())
                done += 1
                self._progress(done, total)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(_quietly(worker(), self.learned))

    async def _walk(self, run: Run, journey: Journey) -> None:
        made: list[Made] = []
        self._made.append(made)

        def note(operation: Operation, ident: str) -> None:
            resource = next((r for r in self.catalogue.resources.values() if operation in r.creates), None)
            if resource is not None and (resource, ident) not in made:
                made.append((resource, ident))

        is_key = self.learned.reach.is_key
        async with self.twins[0].fork(as_key=is_key) as first, self.twins[1].fork(as_key=is_key) as second:
            await Walk(run, self.options.token, (first, second), note).go(journey)
        await self._tidy(run.target, made)  # some kinds of records are limited in number

    def _journeys(self) -> Iterator[Journey]:
        closed = self.learned.reach.closed
        operations = [o for o in self.document.operations.values() if self.is_meant(o) and o.id not in closed]
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
                    yield Journey(f"reads {operation.id}", relations.others(own, operation), names)
                    yield Journey(f"lists {operation.id}", relations.lists(own, resource, operation), names)
            return
        for operation in sorted(operations, key=lambda o: -len(str(o.body))):
            yield Journey(f"accepts {operation.id}", journeys.accepts(builder(operation.id), operation), names)
        for operation in operations:
            if operation.takes_key:
                own = builder(f"repeats {operation.id}")
                yield Journey(f"repeats {operation.id}", journeys.repeats(own, operation), names)
        for resource in self.catalogue.resources.values():
            if resource.creates[0].id in closed:
                continue
            about = [
                o for o in (*resource.creates, resource.read, resource.list, resource.update, resource.delete) if o
            ]
            for name in ("moves", "depends", "finds", "remembers", "unique"):
                if any(o.id in names for o in about):
                    own = builder(f"{name} {resource.key}")
                    yield Journey(name, getattr(journeys, name)(own, resource), names)
        for part in range(AT_ONCE):
            own = builder(f"refuses {part}")
            yield Journey(
                "refuses", _refuses(own, operations[part::AT_ONCE], makes_keys=not self.learned.reach.is_key), names
            )
        yield Journey("strangers", journeys.strangers(builder("strangers")), names)

    def is_meant(self, operation: Operation) -> bool:
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

    def _told(self, exchange: Exchange) -> None:
        if self._keeps:
            self.learned.exchanges.append(exchange)

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
        headers = (("Authorization", f"Bearer {self.options.token}"),)
        if resource.delete is None and resource.lifecycle is None:
            return False
        if resource.delete is not None:
            path = resource.delete.path.replace(f"{{{resource.key}}}", ident)
            answer = await target.send(Request("DELETE", path, "", headers))
            if answer.status < 300 or answer.status == 404:
                return True
        archive = next(
            (o for o in self.document.operations.values() if o.path.endswith(f"{{{resource.key}}}/archive")), None
        )
        if archive is None:
            return False
        path = archive.path.replace(f"{{{resource.key}}}", ident)
        sent = Request("POST", path, "", (*headers, ("Content-Type", "application/json")), b"{}")
        return (await target.send(sent)).status < 300


def _path(resource: Resource, ident: str) -> str:
    """Where a record is."""
    shown = resource.read or resource.update
    base = resource.creates[0].path + f"/{{{resource.key}}}" if shown is None else shown.path
    return base.replace(f"{{{resource.key}}}", ident)


def _refuses(builder: Builder, operations: Sequence[Operation], *, makes_keys: bool) -> Steps:
    keys = (yield from journeys.keyholders(builder)) if makes_keys else {}
    for operation in operations:
        yield from journeys.refuses(builder, operation, keys)


async def _quietly(work: object, learned: Learned) -> None:
    try:
        await work  # type: ignore[misc]
    except Away as error:
        learned.away = str(error)


def _unique(document: Document) -> frozenset[str]:
    """The codes that refuse a second record of a unique key."""
    return frozenset(key.code for keys in document.unique.values() for key in keys if key.code is not None)
