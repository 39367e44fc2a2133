"""The verbs for what tests do most: pay, expire, fail, refund and dispute orders, move the clock, reset, list, wait."""

from __future__ import annotations

import asyncio
import re
from time import monotonic
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import click

from ..kernel.text import counted
from .options import Unusable, answer_of, ask_and_tell, of_a_server, of_a_whole_server, printable, tell

_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
_UNITS = MappingProxyType({"mo": "months", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"})
_PART = re.compile(r"([0-9]{1,9})(mo|[dhms])")
_PAUSE = 0.2  # seconds between two questions of `wait`
_SHOWN = 20


def _change_order(
    verb: str, order: str, body: dict[str, Any], server: str, sandbox: str, admin_key: str | None, as_json: bool
) -> None:
    path = f"/orders/{quote(order, safe='')}/{verb}"

    def told(answer: Any) -> str:
        return f"{answer['order']['code']} is {answer['order']['status']}."

    ask_and_tell(
        server, sandbox, admin_key, lambda running: running.control("POST", path, json=body), told, as_json=as_json
    )


@click.command(context_settings=_SETTINGS)
@click.argument("order")
@of_a_server
@_as_json
def pay(order: str, **options: Any) -> None:
    """Pay the order with the id ORDER in full."""
    _change_order("pay", order, {}, **options)


@click.command(context_settings=_SETTINGS)
@click.argument("order")
@of_a_server
@_as_json
def expire(order: str, **options: Any) -> None:
    """Expire the unpaid order with the id ORDER."""
    _change_order("expire", order, {}, **options)


@click.command(context_settings=_SETTINGS)
@click.argument("order")
@click.option("--code", metavar="CODE", help="The reason, such as insufficient_funds.")
@of_a_server
@_as_json
def fail(order: str, code: str | None, **options: Any) -> None:
    """Fail the payment of the order with the id ORDER."""
    _change_order("fail", order, {} if code is None else {"code": code}, **options)


@click.command(context_settings=_SETTINGS)
@click.argument("order")
@click.option("--amount", type=float, metavar="REAIS", help="Refund this part.")
@of_a_server
@_as_json
def refund(order: str, amount: float | None, **options: Any) -> None:
    """Refund the order with the id ORDER: what is left of it, or a part."""
    _change_order("refund", order, {} if amount is None else {"amount": amount}, **options)


@click.command(context_settings=_SETTINGS)
@click.argument("order")
@click.option("--amount", type=float, metavar="REAIS", help="A part of what was paid.")
@click.option("--reason", metavar="TEXT", help="Why, such as fraud.")
@click.option("--outcome", type=click.Choice(["won", "lost"]), help="Resolve the dispute that is open.")
@of_a_server
@_as_json
def dispute(order: str, amount: float | None, reason: str | None, outcome: str | None, **options: Any) -> None:
    """Dispute the payment of the order with the id ORDER, or resolve its dispute."""
    given = {name: value for name, value in (("amount", amount), ("reason", reason)) if value is not None}
    if outcome is None:
        _change_order("dispute", order, given, **options)
    elif given:
        raise click.UsageError("Give --outcome without --amount and --reason, which are those of the open dispute.")
    else:
        _change_order("dispute/resolve", order, {"outcome": outcome}, **options)


@click.command(context_settings=_SETTINGS)
@click.argument("what", nargs=-1, metavar="[advance 30d]")
@of_a_server
@_as_json
def clock(what: tuple[str, ...], server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """Show the clock of a sandbox, or advance it by 30d, 4mo, 12h, 15m, 10s or 1d12h, or to a date-time."""
    if not what:
        ask_and_tell(server, sandbox, admin_key, lambda running: running.control("GET", "/clock"), _shown, as_json)
        return
    if len(what) != 2 or what[0] != "advance":
        raise click.UsageError("Write clock, or clock advance 30d.")
    body = _span(what[1])

    def told(answer: Any) -> str:
        text = f"The clock shows {answer['now']}. {counted(len(answer['fired']), 'job')} ran on the way."
        return text if answer["complete"] else f"{text} Deliveries are still on their way."

    ask_and_tell(
        server,
        sandbox,
        admin_key,
        lambda running: running.control("POST", "/clock/advance", json=body),
        told,
        as_json,
    )


def _shown(answer: Any) -> str:
    return f"The clock shows {answer['now']} and {'stands still' if answer['frozen'] else 'runs'}."


def _span(text: str) -> dict[str, Any]:
    """How far the clock is to go, as the control surface takes it; what is no span is taken for an instant."""
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return {_UNITS[unit]: int(number) for number, unit in parts}
    if not text[:4].isdigit():
        raise click.UsageError(f"{text} is no span, such as 30d, 4mo, 12h, 15m, 10s or 1d12h, and no date-time.")
    return {"to": text}


@click.command(context_settings=_SETTINGS)
# Not from the environment: STUB_SEED and its like are for starting a server.
@click.option("--scenario", metavar="NAME", allow_from_autoenv=False, help="Use another scenario.")
@click.option("--seed", type=int, allow_from_autoenv=False, help="Use another seed.")
@click.option("--now", metavar="ISO8601", allow_from_autoenv=False, help="Freeze the clock at this instant.")
@of_a_server
@_as_json
def reset(
    scenario: str | None,
    seed: int | None,
    now: str | None,
    server: str,
    sandbox: str,
    admin_key: str | None,
    as_json: bool,
) -> None:
    """Restore the seeded state of a sandbox. Everything else in it is deleted."""
    given = {"scenario": scenario, "seed": seed, "now": now}
    body = {name: value for name, value in given.items() if value is not None}

    def told(answer: Any) -> str:
        return f"Reset to the scenario {answer['scenario']}, seed {answer['seed']}, at {answer['now']}."

    ask_and_tell(
        server, sandbox, admin_key, lambda running: running.control("POST", "/reset", json=body), told, as_json
    )


@click.command(context_settings=_SETTINGS)
@click.option("--status", metavar="STATUS", help="Only orders in this state, such as pending.")
@of_a_server
@_as_json
def orders(status: str | None, server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """List the newest orders of a sandbox."""
    query = {"limit": str(_SHOWN), **({} if status is None else {"status": status})}

    async def listed(running: Any) -> Any:
        token = (await running.control("GET", "/credentials"))["jwt"]
        return await running.api(token, "/v2/orders", params=query)

    def told(answer: Any) -> str:
        lines = [
            f"{order['id']}  {order['code']}  {order['status']:<18}  {order['totalAmount']:>10.2f}  "
            f"{order['paymentMethod']:<11}  {printable(order['customer']['name'])}"
            for order in answer["orders"]
        ]
        return "\n".join(lines) or "No matching orders."

    ask_and_tell(server, sandbox, admin_key, listed, told, as_json)


@click.command(context_settings=_SETTINGS)
@click.argument("what", nargs=-1, metavar="[trigger TYPE]")
@of_a_server
@_as_json
def events(what: tuple[str, ...], server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """List the newest events of a sandbox, or send an event of TYPE to its webhooks."""
    if what and (len(what) != 2 or what[0] != "trigger"):
        raise click.UsageError("Write events, or events trigger order.paid.")

    async def asked(running: Any) -> Any:
        if what:
            return await running.control("POST", "/events", json={"type": what[1]})
        return await running.control("GET", "/events", params={"limit": _SHOWN})

    def told(answer: Any) -> str:
        found = [answer["event"]] if what else answer["events"]
        return "\n".join(f"{event['timestamp']}  {event['id']}  {event['type']}" for event in found) or "No events."

    ask_and_tell(server, sandbox, admin_key, asked, told, as_json)


@click.command(context_settings=_SETTINGS)
@of_a_server
@_as_json
def health(server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """Show whether a sandbox is up, its version, data and time."""

    def told(answer: Any) -> str:
        return f"{answer['sandbox']} is {answer['status']}: {answer['version']}, {answer['scenario']}, {answer['now']}."

    ask_and_tell(server, sandbox, admin_key, lambda running: running.control("GET", "/health"), told, as_json)


@click.command(context_settings=_SETTINGS)
@click.option(
    "--timeout", type=float, default=30.0, metavar="SECONDS", help="Give up after this time, with exit code 2."
)
@of_a_whole_server
@_as_json
def wait(timeout: float, server: str, admin_key: str | None, as_json: bool) -> None:
    """Wait until a server is ready."""
    from ..engine.sandbox import DEFAULT
    from .server import Away

    async def ready(running: Any) -> Any:
        until = monotonic() + timeout
        while True:
            try:
                return await running.control("GET", "/ready")
            except Away as error:
                if monotonic() >= until:
                    raise Unusable(str(error)) from None
            await asyncio.sleep(_PAUSE)

    answer = answer_of(server, DEFAULT, admin_key, ready, may_be_new=True)
    tell(answer, f"{server} is ready.", as_json=as_json)


VERBS = (pay, expire, fail, refund, dispute, clock, reset, orders, events, health, wait)
