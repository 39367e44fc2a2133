"""The verbs that tests need most: change orders, move the clock, reset, list orders and events, wait for a server."""

from __future__ import annotations

import asyncio
import re
from time import monotonic
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import click

from ..kernel.text import counted
from .options import BaseUrl, Target, Unusable, asks_sandbox, asks_server, given, table, verb

_UNITS = MappingProxyType({"mo": "months", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"})
_PART = re.compile(r"([0-9]{1,9})(mo|[dhms])")
_PAUSE = 0.2  # seconds between two questions of `wait`
_SHOWN = 20


def _change_order(target: Target, order: str, change: str, body: dict[str, Any]) -> None:
    def text(answer: Any) -> str:
        return f"{answer['order']['code']} is {answer['order']['status']}."

    target.control(text, "POST", f"/orders/{quote(order, safe='')}/{change}", json=body)


@verb(short_help="Pay an order in full.")
@click.argument("order")
@asks_sandbox
def pay(target: Target, order: str) -> None:
    """Pay the order with the id ORDER in full."""
    _change_order(target, order, "pay", {})


@verb(short_help="Expire an unpaid order.")
@click.argument("order")
@asks_sandbox
def expire(target: Target, order: str) -> None:
    """Expire the unpaid order with the id ORDER."""
    _change_order(target, order, "expire", {})


@verb(short_help="Fail the payment of an order.")
@click.argument("order")
@click.option("--code", metavar="CODE", help="The reason, such as insufficient_funds.")
@asks_sandbox
def fail(target: Target, order: str, code: str | None) -> None:
    """Fail the payment of the order with the id ORDER."""
    _change_order(target, order, "fail", given(code=code))


@verb(short_help="Refund an order, or a part of it.")
@click.argument("order")
@click.option("--amount", type=float, metavar="REAIS", help="Refund this part.")
@asks_sandbox
def refund(target: Target, order: str, amount: float | None) -> None:
    """Refund the order with the id ORDER: what is left of it, or a part."""
    _change_order(target, order, "refund", given(amount=amount))


@verb(short_help="Dispute a payment, or resolve a dispute.")
@click.argument("order")
@click.option("--amount", type=float, metavar="REAIS", help="Dispute this part of the payment.")
@click.option("--reason", metavar="TEXT", help="Why, such as fraud.")
@click.option("--outcome", type=click.Choice(["won", "lost"]), help="Resolve the dispute that is open.")
@asks_sandbox
def dispute(target: Target, order: str, amount: float | None, reason: str | None, outcome: str | None) -> None:
    """Dispute the payment of the order with the id ORDER, or resolve its dispute."""
    opening = given(amount=amount, reason=reason)
    if outcome is None:
        _change_order(target, order, "dispute", opening)
    elif opening:
        raise click.UsageError("Give --outcome without --amount and --reason, which are those of the open dispute.")
    else:
        _change_order(target, order, "dispute/resolve", {"outcome": outcome})


@verb(short_help="Show or advance the clock of a sandbox.")
@click.argument("what", nargs=-1, metavar="[advance 30d]")
@asks_sandbox
def clock(target: Target, what: tuple[str, ...]) -> None:
    """Show the clock of a sandbox, or advance it by 30d, 4mo, 12h, 15m, 10s or 1d12h, or to a date-time."""

    def shown(answer: Any) -> str:
        return f"The clock shows {answer['now']} and {'stands still' if answer['frozen'] else 'runs'}."

    def advanced(answer: Any) -> str:
        text = f"The clock shows {answer['now']}. {counted(len(answer['fired']), 'job')} ran on the way."
        return text if answer["complete"] else f"{text} Deliveries are still on their way."

    if not what:
        target.control(shown, "GET", "/clock")
    elif len(what) == 2 and what[0] == "advance":
        target.control(advanced, "POST", "/clock/advance", json=_span(what[1]))
    else:
        raise click.UsageError("Write clock, or clock advance 30d.")


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

    def text(answer: Any) -> str:
        return f"Reset to the scenario {answer['scenario']}, seed {answer['seed']}, at {answer['now']}."

    target.control(text, "POST", "/reset", json=given(scenario=scenario, seed=seed, now=now))


@verb()
@click.option("--status", metavar="STATUS", help="Only orders in this state, such as pending.")
@asks_sandbox
def orders(target: Target, status: str | None) -> None:
    """List the newest orders of a sandbox."""

    async def listed(running: Any) -> Any:
        token = (await running.control("GET", "/credentials"))["jwt"]
        return await running.api(token, "/v2/orders", params=given(limit=str(_SHOWN), status=status))

    answer = target.ask(listed)
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

    def text(answer: Any) -> str:
        found = [answer["event"]] if what else answer["events"]
        return table([(event["timestamp"], event["id"], event["type"]) for event in found], empty="No events.")

    if not what:
        target.control(text, "GET", "/events", params={"limit": _SHOWN})
    elif len(what) == 2 and what[0] == "trigger":
        target.control(text, "POST", "/events", json={"type": what[1]})
    else:
        raise click.UsageError("Write events, or events trigger order.paid.")


@verb()
@asks_sandbox
def health(target: Target) -> None:
    """Show whether a sandbox is up, its version, data and time."""

    def text(answer: Any) -> str:
        return f"{answer['sandbox']} is {answer['status']}: {answer['version']}, {answer['scenario']}, {answer['now']}."

    target.control(text, "GET", "/health")


@verb(short_help="Wait until a server is ready.")
@click.argument("url", type=BaseUrl(), required=False)
@click.option(
    "--timeout", type=float, default=30.0, metavar="SECONDS", help="Give up after this time, with exit code 2."
)
@asks_server
def wait(target: Target, url: str | None, timeout: float) -> None:
    """Wait until the server at URL, or that of --server, is ready."""
    from .running_server import Away

    if url is not None:
        target = target._replace(server=url)

    async def ready(running: Any) -> Any:
        until = monotonic() + timeout
        while True:
            try:
                return await running.control("GET", "/ready")
            except Away as error:
                if monotonic() >= until:
                    raise Unusable(str(error)) from None
            await asyncio.sleep(_PAUSE)

    target.show(target.ask(ready, may_be_new=True), f"{target.server} is ready.")
