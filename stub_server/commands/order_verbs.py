"""The verbs that tests need most: change orders, move the clock, reset, list orders and events, wait for a server."""

import re
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

import click

from ..kernel.text import counted
from .options import asks_sandbox, asks_server, given, table, url, verb
from .running_server import Away, Target

_UNITS = {"mo": "months", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"([0-9]{1,9})(mo|[dhms])")
_PAUSE = 0.2  # seconds between two questions of `wait`
_SHOWN = 20


def _change_order(target: Target, order: str, change: str, **body: Any) -> None:
    answer = target.control("POST", f"/orders/{quote(order, safe='')}/{change}", json=given(**body))
    target.show(answer, f"{answer['order']['code']} is {answer['order']['status']}.")


@verb(short_help="Pay an order in full.")
@click.argument("order")
@asks_sandbox
def pay(target: Target, order: str) -> None:
    """Pay the order with the id ORDER in full."""
    _change_order(target, order, "pay")


@verb(short_help="Expire an unpaid order.")
@click.argument("order")
@asks_sandbox
def expire(target: Target, order: str) -> None:
    """Expire the unpaid order with the id ORDER."""
    _change_order(target, order, "expire")


@verb(short_help="Fail the payment of an order.")
@click.argument("order")
@click.option("--code", metavar="CODE", help="The reason, such as insufficient_funds.")
@asks_sandbox
def fail(target: Target, order: str, code: str | None) -> None:
    """Fail the payment of the order with the id ORDER."""
    _change_order(target, order, "fail", code=code)


@verb(short_help="Refund an order, or a part of it.")
@click.argument("order")
@click.option("--amount", type=float, metavar="REAIS", help="Refund this part.")
@asks_sandbox
def refund(target: Target, order: str, amount: float | None) -> None:
    """Refund the order with the id ORDER: what is left of it, or a part."""
    _change_order(target, order, "refund", amount=amount)


@verb(short_help="Dispute a payment, or resolve a dispute.")
@click.argument("order")
@click.option("--amount", type=float, metavar="REAIS", help="Dispute this part of the payment.")
@click.option("--reason", metavar="TEXT", help="Why, such as fraud.")
@click.option("--outcome", type=click.Choice(["won", "lost"]), help="Resolve the dispute that is open.")
@asks_sandbox
def dispute(target: Target, order: str, amount: float | None, reason: str | None, outcome: str | None) -> None:
    """Dispute the payment of the order with the id ORDER, or resolve its dispute."""
    if outcome is None:
        _change_order(target, order, "dispute", amount=amount, reason=reason)
    elif amount is None and reason is None:
        _change_order(target, order, "dispute/resolve", outcome=outcome)
    else:
        raise click.UsageError("Give --outcome without --amount and --reason, which are those of the open dispute.")


@verb(short_help="Show or advance the clock of a sandbox.")
@click.argument("what", nargs=-1, metavar="[advance 30d]")
@asks_sandbox
def clock(target: Target, what: tuple[str, ...]) -> None:
    """Show the clock of a sandbox, or advance it by 30d, 4mo, 12h, 15m, 10s or 1d12h, or to a date-time."""
    if not what:
        answer = target.control("GET", "/clock")
        text = f"The clock shows {answer['now']} and {'stands still' if answer['frozen'] else 'runs'}."
    elif len(what) == 2 and what[0] == "advance":
        answer = target.control("POST", "/clock/advance", json=_span(what[1]))
        text = f"The clock shows {answer['now']}. {counted(len(answer['fired']), 'job')} ran on the way."
        text += "" if answer["complete"] else " Deliveries are still on their way."
    else:
        raise click.UsageError("Write clock, or clock advance 30d.")
    target.show(answer, text)


def _span(text: str) -> dict[str, Any]:
    """How far the clock is to go, as the control surface takes it: a span, or else an instant."""
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return {_UNITS[unit]: int(number) for number, unit in parts}
    if not text[:4].isdigit():
        raise click.UsageError(f"{text} is not a span, such as 30d, 4mo, 12h, 15m, 10s or 1d12h, nor a date-time.")
    return {"to": text}


@verb()
# Not from the environment: STUB_SEED and its like are for starting a server.
@click.option("--scenario", metavar="NAME", allow_from_autoenv=False, help="Use another scenario.")
@click.option("--seed", type=int, allow_from_autoenv=False, help="Use another seed.")
@click.option("--now", metavar="ISO8601", allow_from_autoenv=False, help="Freeze the clock at this instant.")
@asks_sandbox
def reset(target: Target, scenario: str | None, seed: int | None, now: str | None) -> None:
    """Restore the seeded state of a sandbox. Everything else in it is deleted."""
    answer = target.control("POST", "/reset", json=given(scenario=scenario, seed=seed, now=now))
    target.show(answer, f"Reset to the scenario {answer['scenario']}, seed {answer['seed']}, at {answer['now']}.")


@verb(short_help="List the newest orders of a sandbox, or show one.")
@click.argument("order", required=False)
@click.option("--status", metavar="STATUS", help="Only orders in this state, such as pending.")
@asks_sandbox
def orders(target: Target, order: str | None, status: str | None) -> None:
    """List the newest orders of a sandbox, or show the one with the id ORDER, and where a payer pays it."""
    if order is not None:
        if status is not None:
            raise click.UsageError("Give ORDER or --status, not both.")
        answer = target.control("GET", f"/orders/{quote(order, safe='')}")
        target.show(
            answer, f"{answer['order']['code']} is {answer['order']['status']}.\n  pay page  {answer['pay_url']}"
        )
        return
    answer = target.api("/v2/orders", params=given(limit=str(_SHOWN), status=status))
    rows = [
        (o["id"], o["code"], o["status"], f"{o['totalAmount']:>10.2f}", o["paymentMethod"], o["customer"]["name"])
        for o in answer["orders"]
    ]
    target.show(answer, table(rows, empty="No matching orders."))


@verb(short_help="List the newest events of a sandbox, or send one.")
@click.argument("what", nargs=-1, metavar="[trigger TYPE]")
@asks_sandbox
def events(target: Target, what: tuple[str, ...]) -> None:
    """List the newest events of a sandbox, or send an event of TYPE to its webhooks."""
    if not what:
        answer = target.control("GET", "/events", params={"limit": _SHOWN})
        found = answer["events"]
    elif len(what) == 2 and what[0] == "trigger":
        answer = target.control("POST", "/events", json={"type": what[1]})
        found = [answer["event"]]
    else:
        raise click.UsageError("Write events, or events trigger order.paid.")
    rows = [(event["timestamp"], event["id"], event["type"]) for event in found]
    target.show(answer, table(rows, empty="No events."))


@verb()
@asks_sandbox
def health(target: Target) -> None:
    """Show whether a sandbox is up, its version, data and time."""
    up = target.control("GET", "/health")
    target.show(up, f"{up['sandbox']} is {up['status']}: {up['version']}, {up['scenario']}, {up['now']}.")


@verb(short_help="Wait until a server is ready.")
@click.argument("url", type=url, required=False)
@click.option(
    "--timeout", type=float, default=30.0, metavar="SECONDS", help="Give up after this time, with exit code 2."
)
@asks_server
def wait(target: Target, url: str | None, timeout: float) -> None:
    """Wait until the server at URL, or that of --server, is ready."""
    target.server, until = url or target.server, monotonic() + timeout
    while True:
        try:
            answer = target.control("GET", "/ready")
            break
        except Away:
            if monotonic() >= until:
                raise
        sleep(_PAUSE)
    target.show(answer, f"{target.server} is ready.")
