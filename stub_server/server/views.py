"""What the control surface shows of sandboxes, steps and versions of records; and checks
of new sandboxes.
"""

from itertools import chain
from json import dumps, loads

import orjson

from ..core.clock import (
    EARLIEST_START,
    LATEST_START,
    Clock,
    ClockState,
    iso,
    iso_or_none,
    parse_iso,
)
from ..core.problem import Conflict, NotFound
from ..core.record import Body, Record
from ..core.slices import Sliced
from ..data.keys import own_pair
from ..data.scenario import known_scenarios
from ..engine.kept import Log
from ..engine.sandbox import DEFAULT, Sandbox
from ..engine.step import Change, Step
from ..engine.tables.store import Store
from ..storage.database import Kept
from .sandboxes.entry import Entry
from .sandboxes.making import Beginning
from .work import Work

MOST_SHOWN = 200  # changes of a step, and events


def credentials_of(work: Work, sandbox: Sandbox, prefix: str) -> Body:
    """The credentials and sample ids of a sandbox; `prefix` is the path prefix of its base URL."""
    merchant, (public_key, private_key) = sandbox.store.merchant, own_pair(sandbox)
    return {
        "sandbox": sandbox.name,
        "base_url": work.server.settings.url + prefix,
        "merchant": {"id": merchant.id, "name": merchant.name},
        "jwt": work.server.ready_token(sandbox),
        "public_key": public_key,
        "private_key": private_key,
        "control_key": work.sandboxes.control_key(sandbox.name),
        "sample": {
            name: sandbox.origin.sample.get(name)
            for name in ("projectId", "planId", "customerId", "orderId")
        },
    }


def pay_url(url: str, sandbox: str, order: str, key: str | None = None) -> str:
    """The address of the page on which a payer pays an order; `url` is that of the server.

    On a public server it contains a `key`.
    """
    if sandbox != DEFAULT:
        url += f"/s/{sandbox}"
    url += f"/pay/{order}"
    if key is not None:
        url += f"?k={key}"
    return url


def shown_key(store: Store, record: Record) -> Body:
    """An API key of a merchant."""
    return {"merchant_id": store.merchant.id, "api_key": loads(store.shown("api_keys", record))}


def checked_beginning(work: Work, asked: Body) -> Beginning:
    """How a request has a sandbox begin, whose clock it freezes at the instant that it names.

    Raises NotFound for a scenario that is no name, Conflict outside the years 1970 to 8999. Paths
    of files are for the command line only: a request must not open files of this machine.
    """
    scenario, known = asked.get("scenario"), known_scenarios()
    if scenario not in (None, work.server.settings.scenario, *known):
        raise NotFound.at(
            "scenario",
            f"There is no scenario {dumps(scenario, ensure_ascii=False)}. Known ones are"
            f" {', '.join(known)}.",
            "scenario_not_found",
        )
    clock = None
    if "now" in asked:
        clock = parse_iso(asked["now"]), True
        if not EARLIEST_START <= clock[0] < LATEST_START:
            raise Conflict.at(
                "now",
                "A sandbox begins between 1970 and 8999. Send a time in these years.",
                "clock_too_far",
            )
    return Beginning(scenario, asked.get("seed"), clock, asked.get("settings"))


def summary_of(work: Work, found: Entry | Kept) -> Body:
    """A sandbox without its credentials; one that is not in memory, as it was last stored."""
    used = found.last_used_at
    if isinstance(found, Kept):
        row = found
    else:
        row = found.row()
        newest = next(reversed(found.sandbox.journal), None)
        if newest is not None:  # requests that name no sandbox are not noted elsewhere
            used = max(newest.received, used)
    about = loads(row.about)
    clock = Clock()
    clock.set(ClockState(*about["clock"]))
    return {
        "name": row.name,
        "scenario": about["scenario"],
        "seed": about["seed"],
        "parent": about["parent"],
        "step": row.newest,
        "now": iso(clock.read()),
        "frozen": clock.recorded.frozen,
        "records": about["records"],
        "base_url": f"{work.server.settings.url}/s/{row.name}",
        "created_at": iso(row.created_at),
        "last_used_at": iso(used),
        "expires_at": iso_or_none(row.expires_at),
    }


def shown(work: Work, entry: Entry) -> Body:
    """A sandbox with its credentials, as the answer to its creation shows it."""
    return {
        **summary_of(work, entry),
        "credentials": credentials_of(work, entry.sandbox, f"/s/{entry.sandbox.name}"),
    }


def shown_step(step: Step) -> Body:
    """A step with its changes and events, of each at most `MOST_SHOWN`; `omitted` counts the
    others.
    """
    made = _changes(step)
    changes = [
        {"resource": change.table, "id": change.id, "change": _kind(change.before, change.after)}
        for change in made[:MOST_SHOWN]
    ]
    return {
        "step": step.number,
        "at": iso(step.at),
        "cause": step.cause._asdict(),
        "changes": changes,
        "events": [{"id": event.id, "type": event.type} for event in step.events[:MOST_SHOWN]],
        "omitted": len(made) - len(changes) + max(0, len(step.events) - MOST_SHOWN),
    }


def versions(log: Log, table: str, ident: str, present: Record | None) -> Sliced[list[Body]]:
    """The versions of a record with the steps that wrote them, newest first, with pauses; `present`
    is the one that the sandbox has now.
    """
    found, oldest = list[Body](), present
    for step in list(reversed(log)):
        yield
        for change in _changes(step):
            if change.id == ident and change.table == table:
                found.append(_version(change.after, _kind(change.before, change.after), step))
                oldest = change.before
    if oldest is not None:  # the version before the oldest step that is stored
        found.append(_version(oldest, "earlier", None))
    return found


def _version(record: Record | None, change: str, step: Step | None) -> Body:
    shown: Body = {"step": None, "at": None, "cause": None, "change": change, "body": None}
    if step is not None:
        shown |= {"step": step.number, "at": iso(step.at), "cause": step.cause._asdict()}
    if record is not None:
        shown["body"] = orjson.Fragment(record.public)
    return shown


def _changes(step: Step) -> list[Change]:
    return list(chain.from_iterable(part.changes for part in step.parts))


def _kind(before: Record | None, after: Record | None) -> str:
    if after is None:
        return "deleted"
    if before is None:
        return "created"
    return "updated"
