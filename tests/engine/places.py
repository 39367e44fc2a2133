"""The places of the product that defects are planted in: all that a change goes through."""

from collections.abc import Callable, Mapping

from stub_server.contract.schema import ContractViolation
from stub_server.core.clock import Clock
from stub_server.core.ids import NextIds
from stub_server.core.timers import Timers
from stub_server.engine import draft as draft_module
from stub_server.engine.bounded import Log, Replies
from stub_server.engine.draft import Draft
from stub_server.engine.events import Event, EventLog
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import Step
from stub_server.engine.tables import indexes
from stub_server.engine.tables.indexes import Derived, Groups, Index, Members, SortOrder, Sum, Texts
from stub_server.engine.tables.memory import Store
from stub_server.engine.tables.table import Table
from stub_server.server.layers.endpoint import Endpoint
from stub_server.server.layers.idempotency import Repeatable

from .faults import Place, Planted

# Before the step is in the log nothing has happened yet.
DECIDING: Mapping[Place, Callable[[str], Exception]] = {
    **{
        Place(Draft, name): Planted
        for name in (
            "create", "update", "drop", "at", "open_store", "emit", "emit_change", "emit_move",
            "raise_event", "open_deliveries", "record",
        )
    },
    **{Place(NextIds, name): Planted for name in ("uuid", "code", "event", "alnum", "secret")},
    Place(Clock, "moved"): Planted,
    Place(Table, "outgoing"): Planted,
    Place(Replies, "outgoing"): Planted,
    Place(Table, "prepare"): ContractViolation,
    Place(Table, "prepare", True): Planted,
    Place(Store, "shown"): Planted,
    Place(draft_module, "subscribers_to"): Planted,
    Place(draft_module, "new_log"): Planted,
    Place(Event, "payload"): Planted,
    Place(Event, "__new__"): Planted,
    Place(EventLog, "outgoing"): Planted,
    Place(Endpoint, "check", True): ContractViolation,
    Place(Repeatable, "saved"): Planted,
    Place(Step, "__new__"): Planted,
    Place(Sandbox, "take"): Planted,
    Place(Log, "append"): Planted,
}  # fmt: skip
# From then on the step is taken, whatever fails.
FOLDING = tuple(
    Place(owner, name, late)
    for owner, names in (
        (Sandbox, ("fold",)),
        (Store, ("replace", "set_usage")),
        (Table, ("replace",)),
        *((part, ("add", "remove")) for part in (Index, SortOrder, Sum, Members, Texts)),
        (indexes, ("insert", "insort", "remove")),
        (Timers, ("put", "discard")),
        (EventLog, ("exchange",)),
        (Replies, ("exchange",)),
        (Clock, ("set",)),
    )
    for name in names
    for late in (False, True)
)
# The first writes of a copy, which shares its tables with the world that it comes from.
COPYING = tuple(
    Place(owner, name, late)
    for owner, names in (
        (Sandbox, ("fold",)),
        (Store, ("replace",)),
        (Table, ("copy", "replace")),
        *((part, ("take",)) for part in (Derived, Groups)),
    )
    for name in names
    for late in (False, True)
)
