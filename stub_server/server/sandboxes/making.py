"""Makes sandboxes of scenarios, files and stores, empty ones, and what each has beside it."""

from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random
from typing import Any, NamedTuple

import orjson

from ...core.clock import Clock
from ...core.ids import Ids
from ...core.log import log
from ...core.problem import NotFound, UnusableInput
from ...core.record import Body
from ...core.slices import BackgroundWorker
from ...data.filling import Seeding
from ...data.keys import derive_keys, derive_signing_keys
from ...data.scenario import known_scenarios
from ...engine.fault_rules import Faults
from ...engine.kept import Budget, Journal, Log
from ...engine.sandbox import SILENT, Origin, Rules, Sandbox
from ...settings import Settings
from ...storage import sql
from ...storage.admitting import Admitted, admitted
from ...storage.database import Kept, KeptState, Session
from ...storage.exports import adopted, traces_of
from ...storage.fitting import Fitting, check_line
from ...storage.package import unpack
from ...storage.reading import Empty, Reader
from ...storage.state import Snapshot
from ...webhooks.inbox import Inbox
from .entry import MOST_SNAPSHOT_BYTES_IN_ALL, Entry, Snapshots, Stored


class Beginning(NamedTuple):
    """How a sandbox begins, where that is not as at the server's start: at an instant (ms) at which
    its clock is frozen or not, and with other `settings`.
    """

    scenario: str | None = None
    seed: int | None = None
    clock: tuple[int, bool] | None = None
    settings: Body | None = None


AS_AT_THE_START = Beginning()


class SandboxFactory:
    """One per server.

    All sandboxes share one budget for logs, journals and inboxes, and one for snapshots.
    """

    def __init__(
        self,
        rules: Rules,
        seeding: Seeding,
        settings: Settings,
        worker: BackgroundWorker,
        *,
        control_secret: bytes,
    ) -> None:
        """`control_secret` is random, whatever the seed, and makes the control keys."""
        self.rules, self.seeding, self.settings, self.worker = rules, seeding, settings, worker
        self.control_secret = control_secret
        self.contract: str = rules.document.identity["digest"]
        # Apart: a snapshot is refused where there is no room, and never dropped for what others do.
        self._budget, self._for_snapshots = Budget(), Budget(MOST_SNAPSHOT_BYTES_IN_ALL)
        # of its own: files and snapshots do not wait for a large sandbox
        self._filler = BackgroundWorker()
        # with the instants (ms) at which they are filled
        self._filling: dict[str, tuple[Sandbox, int]] = {}

    def belongings(self) -> tuple[Inbox, Snapshots]:
        """An empty inbox and no snapshots, for a new sandbox."""
        return Inbox(self._budget), Snapshots(self._for_snapshots)

    def empty(
        self,
        name: str,
        generation: str,
        beginning: Beginning = AS_AT_THE_START,
    ) -> Sandbox:
        """A sandbox without records."""
        settings, rules = self.settings, self.rules
        seed = settings.seed if beginning.seed is None else beginning.seed
        now = settings.now if beginning.clock is None else beginning.clock[0]
        sandbox = Sandbox(
            name=name,
            origin=Origin(seed, beginning.scenario or settings.scenario, rules.settings),
            rules=rules,
            clock=Clock(now),
            ids=Ids(seed, rules.secret, name, repeats=not settings.is_public),
            log=Log(settings.history, self._budget),
            settings=rules.settings,
            faults=Faults(seed),
            journal=Journal(settings.journal, self._budget),
        )
        sandbox.renew(generation)
        return sandbox

    def carried(self, generation: str, name: str | None = None) -> Empty:
        """What makes sandboxes without records for states that are read, under their own name or
        another one.

        Their scenario is one that a request may name, or else the server's own: a file must not say
        which files are read.
        """

        def empty(named: Body) -> Sandbox:
            return self.empty(name or named["name"], generation, self.beginning(named))

        return empty

    def beginning(self, named: Body) -> Beginning:
        """That of a scenario if a request may name it, else of the server's own."""
        scenario = named["scenario"]
        if scenario not in known_scenarios():
            scenario = self.settings.scenario
        return Beginning(scenario, named["seed"])

    def read(
        self, name: str, generation: str, file: bytes | bytearray, *, abroad: bool
    ) -> Admitted:
        """The sandbox of a file, under a name and of a generation, which delivers nothing; for any
        thread.

        Raises BadFile. `abroad` is as for `adopted`: a file does not say who chose its addresses.
        """
        lines = unpack(file, check_line)
        _, header = next(lines)  # a file without one is refused
        rewrite = adopted(anew=not header["secrets"], abroad=abroad)
        fitting = Fitting(self.rules, header["contract"]["digest"])
        found = admitted(lines, Reader(self.carried(generation, name), rewrite, fitting))
        sandbox = found.sandbox
        for trace in traces_of(
            found.requests, sandbox.log, sandbox.name, keeps_bodies=sandbox.journal.keeps_bodies
        ):
            sandbox.journal.append(trace)
        sandbox.status.held_before = SILENT
        return found

    def open(self, session: Session, kept: Kept, holder: int) -> tuple[Entry, Sequence[Snapshot]]:
        """A sandbox of a store, and its snapshots.

        Raises Damage and ValueError where they are not as they were written, and BadFile where they
        do not fit.
        """
        about = orjson.loads(kept.about)
        fitting = Fitting(self.rules, about["contract"], trusted=True)
        reader = Reader(self.carried(about["generation"]), adopted(anew=False), fitting)
        states = sql.states(session, kept.id)
        sql.check(len(states) == about["states"], "a snapshot")
        sandbox, snapshots, _ = admitted(_lines(session, kept, states), reader)
        if kept.newest or holder:  # no ids of requests that an earlier process has given
            sandbox.ids.requests = Random(
                f"{sandbox.origin.seed}/requests/{kept.name}/{kept.newest}/{holder}"
            )
        sandbox.status.held_before = about["held"]
        entry = Entry(
            sandbox,
            about["parent"],
            about["on_first_use"],
            kept.created_at,
            kept.last_used_at,
            kept.expires_at,
            *self.belongings(),
            set(sql.keys_of(session, kept.id)),
            incarnation=about["incarnation"],
            origin_events=about["origin_events"],
            stored=Stored(
                kept.id,
                # what follows is for the served contract: lines of several have no name
                "" if fitting.is_other else self.contract,
                kept.newest,
                states[0].step,
                states[0].size,
                about["size"],
                len(states),
            ),
        )
        return entry, snapshots

    def make(self, name: str, generation: str, beginning: Beginning = AS_AT_THE_START) -> Sandbox:
        """A freshly seeded sandbox. Raises ContractError, ScenarioError."""
        sandbox = self.empty(name, generation, beginning)
        self.seeding.fill(sandbox)
        return self._own(sandbox)

    async def begin(self, sandbox: Sandbox) -> Sandbox:
        """Seed an empty sandbox for a request, in a thread, while others are served; returns it.

        Raises NotFound for a scenario that cannot be used; only the log says why, since the reason
        quotes the file.
        """
        try:
            # else one like it is kept: that takes no time
            if not self.seeding.copy(sandbox):
                self._filling[sandbox.name] = sandbox, sandbox.clock.now
                await self._filler.beside(lambda: self.seeding.fill(sandbox))
            return self._own(sandbox)
        except UnusableInput as error:
            log.warning("sandbox %s was not made: %s", sandbox.name, error)
            raise NotFound(
                "The scenario cannot be used any more. The log of the server says why.",
                code="scenario_not_found",
            ) from None
        finally:
            self._filling.pop(sandbox.name, None)

    def progress(self, name: str) -> float:
        """How much of the past of a sandbox that `begin` makes has been lived, from 0 to 1."""
        if name not in self._filling:
            return 1.0
        sandbox, end = self._filling[name]
        since = sandbox.origin.seeding_since
        if since == 0:  # others are filled before it
            return 0.0
        return min(1.0, (sandbox.clock.now - since) / (end - since))

    def _own(self, sandbox: Sandbox) -> Sandbox:
        """A sandbox that has just been filled, with seeded keys of its own."""
        sandbox.origin.seeded_keys = frozenset(sandbox.store.api_keys.keys)
        derive_keys(sandbox)
        derive_signing_keys(sandbox)
        sandbox.status.held_before = sandbox.events.raised
        return sandbox


def _lines(session: Session, kept: Kept, states: Sequence[KeptState]) -> Iterator[tuple[str, Any]]:
    """The lines of a sandbox, and then of its snapshots, as those of a file. Raises Damage."""
    for state in states:
        lines = sql.lines(session, state)
        if state.name:
            yield "snapshot", orjson.loads(state.about)
        else:
            lines = chain(lines, sql.steps_of(session, kept, state))
        for line in lines:
            yield from orjson.loads(line).items()
