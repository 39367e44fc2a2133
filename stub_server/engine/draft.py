"""A draft: the step of one cause while it is being decided. Nothing of it is visible until it is
recorded.

Records are validated and unique keys checked as they are added. New ids are computed from the
sandbox's position, which moves only with the step: an abandoned draft uses none. Reading a record
by id through the draft shows the draft's version; indexes, counts and sums show the sandbox before
it. A draft never spans an `await`: an operation that waits records its step first. It is void once
another step was recorded.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from ..contract.lifecycles import Lifecycle, Move
from ..core.clock import ClockState, iso
from ..core.ids import NextIds
from ..core.record import NO_EXTRAS, Body, Extras, Row, moved_from
from ..core.timers import Timer
from ..domain.deliveries import new_log
from ..domain.lifecycle import move
from ..domain.webhooks import subscribers
from .deliveries import job_for, outgoing
from .lists import Ends, Event, Saved
from .sandbox import Opened, Sandbox
from .step import Cause, Change, Part, SandboxSettings, Standing, Step, Used
from .tables.store import Store

TEST = "webhook.test"
OF_ORDERS = ("projectId", "planId", "customerId", "subscriptionId", "metadata")
"""Hidden members of an order that its events have."""


class Draft:
    """What one cause is going to change."""

    clock: ClockState | None = None
    settings: SandboxSettings | None = None
    _opens_store = False

    def __init__(
        self, sandbox: Sandbox, store: Store, cause: Cause, now: int | None = None
    ) -> None:
        """`now` is the instant of the step in ms, the clock's own unless a job was due earlier."""
        self.sandbox = sandbox
        self.store = store
        self.cause = cause
        self.now = sandbox.clock.now if now is None else now
        self.ids = NextIds(sandbox.ids)
        self._base = sandbox.log.number
        self._versions: dict[str, Opened] = {}
        self._events: list[Event] = []
        self._later: dict[tuple[str, str], Timer] = {}
        self._fired: list[Timer] = []
        self._opened: list[Row] = []  # deliveries

    # -- what the contract says of states

    def lifecycle(self, resource: str) -> Lifecycle:
        """The states and moves of a resource."""
        return self.sandbox.rules.lifecycles[resource]

    def lifecycle_of(self, row: Row) -> Lifecycle:
        """The states and moves of a record."""
        return self.lifecycle(self.store.tables[row.table].spec.schema)

    def states(self, resource: str, name: str) -> Collection[str]:
        """A named set of states, such as the `payable` ones of Order."""
        return self.lifecycle(resource).sets[name]

    def is_in(self, row: Row, name: str) -> bool:
        """Whether a record is in one of the states of a named set."""
        return row.status in self.lifecycle_of(row).sets[name]

    # -- reading

    def open(self, table: str, ident: str | None) -> Row | None:
        """A record as the draft leaves it, parsed; None where there is none."""
        version = self._versions.get(ident or "")
        if version is None:
            return self.store.tables[table].open(ident)
        return version[2]

    def get(self, table: str, ident: str) -> Row:
        """A record that is there, as the draft leaves it, parsed."""
        row = self.open(table, ident)
        assert row is not None
        return row

    def new(self, table: str, ident: str | None = None) -> Row:
        """What a new record of a table has before any rule: an id, and the contract's defaults."""
        return self.sandbox.rules.new(table, ident or self.ids.uuid(), self.now)

    def code_for(self, table: str) -> str:
        """A code that no record of a table has."""
        code = self.ids.code()
        while code in self.store.tables[table].unique["code"]:
            code = self.ids.code()
        return code

    # -- writing

    def put(self, row: Row, *, is_noted: bool = True) -> Row:
        """Store a new or changed record, which is returned as its next version.

        Unless it is not to be noted, a change of what callers see is the record's newest update.
        """
        before = None if row.is_new else row.before or row
        is_update = before is not None and row.public != before.public
        if is_noted and is_update and "updatedAt" in row.public:
            row = row.changed({"updatedAt": iso(self.now)})
        made = self.store.tables[row.table].prepare(row)
        if row.id in self._versions:
            _, before, _ = self._versions[row.id]
        self._versions[row.id] = row.table, before, made
        return made

    def drop(self, row: Row) -> None:
        """Delete a record.

        The step drops the stored version; one that only the draft has leaves no trace.
        """
        stored: Row | None = row
        version = self._versions.pop(row.id, None)
        if version is not None:
            stored = version[1]
        if stored is not None:
            self._versions[row.id] = row.table, stored, None

    def at(self, due: int, job: str, subject: str) -> None:
        """Set the timer of a job for a record to an instant (ms)."""
        known = self._later.get((job, subject))
        number = known.seq if known else self.sandbox.timers.last + len(self._later) + 1
        self._later[job, subject] = Timer(due, number, job, self.store.merchant.id, subject)

    def some(self, rows: Iterable[Row], job: str, subject: str, most: int) -> Iterator[Row]:
        """The first records of several, as many as one step changes; where there are more, the job
        is due again, at once.
        """
        for number, row in enumerate(rows):
            if number == most:
                self.at(self.now, job, subject)
                return
            yield row

    def fired(self, timer: Timer) -> None:
        """The job of this timer is done."""
        self._fired.append(timer)

    def open_store(self) -> None:
        """Add the merchant's store to the sandbox, though nothing is written."""
        self._opens_store = self.store.merchant.id not in self.sandbox.stores

    # -- events

    def emit_change(
        self, row: Row, change: str, extras: Extras = NO_EXTRAS, project: str | None = None
    ) -> None:
        """Raise the events of a change that moves no state, such as `updated` (`x-change`
        of the contract). `project` is that of a record that belongs to none.
        """
        schema = self.store.tables[row.table].spec.schema
        self.emit(self.sandbox.rules.changes.get((schema, change), ()), row, extras, project)

    def emit_move(self, row: Row, move: Move | None, *names: str) -> None:
        """Raise the events of a move, if there is one, with these hidden members and the
        previous status.
        """
        if move is not None:
            self.emit(
                move.events, row, moved_from(None if move.from_ == "new" else move.from_, *names)
            )

    def move(self, row: Row, name: str | None = None) -> Row:
        """Store a record that is new or changed, perhaps in another state, and raise the events of
        its move: of several between two states, that of a name.

        Raises Conflict for a move that the contract does not have.
        """
        was = "new" if row.is_new else (row.before or row).status
        moved = self.put(row)
        found = move(self.lifecycle_of(row), was, row.status, name)
        self.emit_move(moved, found, *(OF_ORDERS if row.table == "orders" else ()))
        return moved

    def emit(
        self, types: tuple[str, ...], row: Row, extras: Extras, project: str | None = None
    ) -> None:
        """Raise events of these types about a record, of its project unless told otherwise."""
        if types and self.sandbox.origin.raises_events:
            record = row.record
            of = project or row.project
            resource = self.store.shown(row.table, record)
            hidden = record.hidden if extras.names else b""
            for type_ in types:
                self.raise_event(
                    self.event(type_, row.id, of, resource, hidden=hidden, extras=extras)
                )

    def event(
        self,
        type_: str,
        subject: str,
        project: str | None,
        resource: bytes,
        *,
        hidden: bytes = b"",
        extras: Extras = NO_EXTRAS,
    ) -> Event:
        """An event, which is not raised yet."""
        merchant_id = self.store.merchant.id
        key = self.sandbox.rules.payload_keys[type_]
        return Event(
            self.ids.event(),
            type_,
            self.now,
            merchant_id,
            key,
            subject,
            project,
            resource,
            hidden,
            extras,
        )

    def raise_event(self, event: Event) -> None:
        """Raise an event and open its deliveries, but for a test: the caller opens that one, to a
        single webhook.
        """
        self._events.append(event)
        if event.type != TEST:
            webhooks = subscribers(self.store.webhooks.peek_active(), event.type, event.project_id)
            if webhooks:
                self.open_deliveries(webhooks, event, test=False)

    def open_deliveries(self, webhooks: Sequence[Body], event: Event, *, test: bool) -> list[Row]:
        """Add the deliveries of an event, which share its payload.

        They are due at once, but for a test.
        """
        serial = self.sandbox.events.raised + len(self._events)
        payload = event.payload()
        most = None if test else len(self.sandbox.settings.schedule)
        opened = []
        for webhook in webhooks:
            row = new_log(
                self.new("webhook_logs"),
                webhook,
                event_id=event.id,
                event_type=event.type,
                body=payload,
                serial=serial,
                most=most,
            )
            if not test:
                self.at(self.now, job_for(self.sandbox, webhook["url"]), row.id)
            opened.append(self.put(row))
        self._opened += opened
        return opened

    # -- recording

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        changes = self._versions or self._events or self._later or self._fired
        return not (changes or self.clock or self.settings or self._opens_store)

    def record(self, saved: Saved | None = None) -> Step | None:
        """Record the step and return it; None where nothing changes.

        `saved` is the reply to save for its key.
        """
        sandbox = self.sandbox
        if self._base != sandbox.log.number:
            raise RuntimeError(
                f"the draft of {self.cause.operation} is void: another step was recorded meanwhile"
            )
        if saved is None and self.is_empty:
            return None
        self._drop_old_deliveries()
        step = self._step(saved)
        sandbox.take(step, self._versions.values())
        return step

    def _drop_old_deliveries(self) -> None:
        """Drop the oldest deliveries, which make room for new ones."""
        table = self.store.webhook_logs
        if self._opened:
            for record in outgoing(
                table, [row.record for row in self._opened], self.lifecycle("WebhookLogEntry")
            ):
                self.drop(table.parse(record))

    def _step(self, saved: Saved | None) -> Step:
        """The step, with what it replaces in the sandbox as it is."""
        sandbox = self.sandbox
        merchant = self.store.merchant
        changes = [
            Change(name, old and old.record, new and new.record)
            for name, old, new in self._versions.values()
        ]
        opens = merchant.id not in sandbox.stores
        before = sandbox.standing
        clock = self.clock
        if clock is None and before.clock.now == self.now:
            clock = before.clock
        after = Standing(
            clock or sandbox.clock.at(self.now),
            self.ids.position,
            before.events + len(self._events),
            before.timers + len(self._later),
            self.settings or before.settings,
        )
        timers = sandbox.timers
        later = tuple(self._later.values())
        gone = (*self._fired, *timers.skipped.values())
        for timer in later:
            replaced = timers.replaced(timer)
            if replaced is None or replaced.seq in timers.skipped or replaced in self._fired:
                continue
            gone += (replaced,)
        reply_ends = Ends()
        # a state with a reply to the key may have been restored while the request waited
        if saved is not None and sandbox.replies.get(saved.key, self.now) is None:
            reply_ends = Ends(after=(saved,))
        return Step(
            number=self._base + 1,
            at=self.now,
            cause=self.cause,
            before=before,
            after=after,
            parts=(Part.of(merchant, changes, self._used(), opens=opens, closes=False),),
            event_ends=Ends(after=tuple(self._events)),
            reply_ends=reply_ends,
            timers_set=later,
            timers_fired=gone,
        )

    def _used(self) -> list[Used]:
        """The keys that were used since the last step, and those that the draft deletes."""
        usage = self.store.usage
        used = dict(self.store.unrecorded)
        deleted = set()
        for ident, (table, _, version) in self._versions.items():
            if table == "api_keys" and version is None and ident in usage:
                used.setdefault(ident, usage[ident])
                deleted.add(ident)
        found = []
        for ident, before in used.items():
            found.append(Used(ident, None if ident in deleted else usage.get(ident), before))
        return found
