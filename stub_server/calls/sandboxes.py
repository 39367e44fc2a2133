"""A sandbox as the control surface shows it, and checks of what one may begin with."""

from json import dumps, loads

from ..contract.formats import date_time_ms
from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.clock import EARLIEST_START, LATEST_START, ClockState, iso, wall_ms
from ..kernel.problem import Conflict, NotFound, detail
from ..kernel.record import Body
from ..persistence.commits import records_of
from ..persistence.rows import Kept
from ..worlds.entry import Entry
from .call import Call


def credentials_of(call: Call, sandbox: Sandbox, prefix: str) -> Body:
    """The credentials and sample ids of a sandbox; `prefix` is the path prefix of its base URL."""
    merchant = sandbox.store.merchant
    return {
        "sandbox": sandbox.name,
        "base_url": call.server.url + prefix,
        "merchant": {"id": merchant.id, "name": merchant.name},
        "jwt": call.server.ready_token(sandbox),
        "public_key": sandbox.credentials["public_key"],
        "private_key": sandbox.credentials["private_key"],
        "control_key": call.server.sandboxes.control_key(sandbox.name),
        "sample": {name: sandbox.sample.get(name) for name in ("projectId", "planId", "customerId", "orderId")},
    }


def pay_url(url: str, sandbox: str, order: str) -> str:
    """The address of the page on which a payer pays an order; `url` is that of the server."""
    return f"{url}{'' if sandbox == DEFAULT else f'/s/{sandbox}'}/pay/{order}"


def checked_scenario(call: Call, scenario: str | None) -> str | None:
    """The scenario of a request. Raises Missing for anything but a name.

    Paths of files are for the command line only: a request must not open files of this machine.
    """
    sandboxes = call.server.sandboxes
    if scenario is not None and scenario != sandboxes.scenario and scenario not in sandboxes.scenarios:
        message = f"There is no scenario {dumps(scenario, ensure_ascii=False)}. "
        message += f"Known ones are {', '.join(sandboxes.scenarios)}."
        details = [detail("scenario", "scenario_not_found", message)]
        raise NotFound(message, code="scenario_not_found", details=details)
    return scenario


def checked_start(text: str) -> int:
    """The instant (ms) at which a world is to begin. Raises Conflict outside the years 1970 to 8999."""
    now = date_time_ms(text)
    if not EARLIEST_START <= now < LATEST_START:
        message = "A world begins between 1970 and 8999."
        raise Conflict(message, code="clock_too_far", details=[detail("now", "clock_too_far", message)])
    return now


def summary_of(call: Call, found: Entry | Kept) -> Body:
    """A sandbox without its credentials. One that is not in memory is as it was when it was stored last."""
    if isinstance(found, Kept):
        name, step, told = found.name, found.newest, loads(found.summary)
        clock = ClockState(*told["clock"])
        state = told["scenario"], told["seed"], told["records"]
        now = clock.now if clock.frozen else wall_ms() + clock.offset
    else:
        world = found.world
        name, step, clock, now = world.name, world.log.number, world.clock.state, world.clock.read()
        state = world.scenario, world.seed, records_of(world)
    scenario, seed, records = state
    return {
        "name": name,
        "scenario": scenario,
        "seed": seed,
        "parent": found.parent,
        "step": step,
        "now": iso(now),
        "frozen": clock.frozen,
        "records": records,
        "base_url": f"{call.server.url}/s/{name}",
        "created_at": iso(found.created_at),
        "last_used_at": iso(found.last_used_at),
        "expires_at": None if found.expires_at is None else iso(found.expires_at),
    }


def shown(call: Call, entry: Entry) -> Body:
    """A sandbox with its credentials."""
    return {**summary_of(call, entry), "credentials": credentials_of(call, entry.world, f"/s/{entry.world.name}")}
