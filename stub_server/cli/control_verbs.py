"""The verbs about what happens in a sandbox: orders, personas, the clock, events and faults.

Exit codes: 0 done, 1 refused, 2 usage or no server.
"""

import re
from typing import Any

import click

from ..core.members import given
from ..core.text import counted
from .asking import asking, group, listing, show_list
from .options import SETTINGS, Number, json_argument, verb
from .running_server import Target, asks_sandbox

_UNITS = {"mo": "months", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"([0-9]{1,9})(mo|[dhms])")
_SPAN = re.compile(f"({_PART.pattern})+")

_ORDER = click.argument("order", metavar="ID|CODE|last")
_NEWEST = click.option(
    "--limit", type=Number(1), default=20, help="Maximum number of entries, the newest first."
)
_DELETED = "{deleted} is deleted."
_PAID = "{order[code]} is {order[status]}."


# -- orders


@verb("list")
@click.option("--status", metavar="STATUS", help="Only orders in this state, such as pending.")
@_NEWEST
@asks_sandbox
def list_orders(target: Target, limit: int, status: str | None) -> None:
    """List the newest orders of a sandbox."""
    found = target.api("/v2/orders", params=given(limit=limit, status=status))
    show_list(
        target,
        {"orders": found["orders"]},
        "id code status totalAmount paymentMethod customer.name",
    )


# -- the clock


def _span(text: str) -> dict[str, Any]:
    """How far the clock is to go, as the control surface takes it: a span, or else an instant."""
    if text.startswith("--"):
        raise click.NoSuchOption(text)
    if text.startswith("-"):
        back = "`stub-server rewind --to ISO8601` restores an earlier state, with its time"
        raise click.BadParameter(f"The clock only goes forward. {back}.")
    if _SPAN.fullmatch(text):
        return {_UNITS[unit]: int(number) for number, unit in _PART.findall(text)}
    if not text[:4].isdigit():
        raise click.BadParameter(
            f"{text} is not a span, such as 30d, 4mo, 12h, 15m, 10s or 1d12h, nor a date-time."
        )
    return {"to": text}


# -3d is refused as a span
@click.command("advance", context_settings=SETTINGS | {"ignore_unknown_options": True})
@click.argument("span", type=_span, metavar="SPAN|ISO8601")
@asks_sandbox
def advance(target: Target, span: dict[str, Any]) -> None:
    """Advance the clock by 30d, 4mo, 12h, 15m, 10s or 1d12h, or to a date-time."""
    answer = target.control("POST", "/clock/advance", json=span)
    text = (
        f"The clock shows {answer['now']}. {counted(sum(answer['counts'].values()), 'job')} ran on"
        " the way."
    )
    if not answer["complete"]:
        text += " Deliveries are still on their way."
    target.show(answer, text)


@verb("set")
@click.argument("state", metavar="ISO8601|frozen|running")
@asks_sandbox
def set_clock(target: Target, state: str) -> None:
    """Set the clock to a later date-time, or set it to frozen or running."""
    change: dict[str, Any] = {"to": state}
    if state in ("frozen", "running"):
        change = {"frozen": state == "frozen"}
    answer = target.control("PATCH", "/clock", json=change)
    runs = "frozen" if answer["frozen"] else "running"
    target.show(answer, f"The clock shows {answer['now']} and is {runs}.")


# -- faults


@verb("add")
@click.argument("rule")
@asks_sandbox
def add_fault(target: Target, rule: str) -> None:
    """Add a rule from RULE.

    RULE is the name of a preset, such as outage, a rule as JSON, @FILE for JSON in a file, or - for
    standard input.
    """
    target.may_be_new = True
    if rule.isidentifier():
        body = {"preset": rule}
    else:
        body = json_argument(rule, "RULE is neither the name of a preset nor a JSON object")
    made = target.control("POST", "/faults", json=body)
    target.show(made, f"{made['fault']['id']} is added.")


VERBS = (
    asking("pay", "POST /orders/{order}/pay", "Pay an order in full.", _ORDER, said=_PAID),
    asking("expire", "POST /orders/{order}/expire", "Expire an unpaid order.", _ORDER, said=_PAID),
    asking(
        "fail",
        "POST /orders/{order}/fail",
        "Fail the payment of an order.",
        _ORDER,
        click.option("--code", metavar="CODE", help="The reason, such as insufficient_funds."),
        said=_PAID,
    ),
    asking(
        "refund",
        "POST /orders/{order}/refund",
        "Refund an order, in full or in part.",
        _ORDER,
        click.option(
            "--amount",
            type=float,
            metavar="REAIS",
            help="Amount to refund. Default: all that is left.",
        ),
        said=_PAID,
    ),
    asking(
        "dispute",
        "POST /orders/{order}/dispute",
        "Dispute the payment of an order.",
        _ORDER,
        click.option(
            "--amount",
            type=float,
            metavar="REAIS",
            help="Amount to dispute. Default: the whole payment.",
        ),
        click.option("--reason", metavar="TEXT", help="The reason, such as fraud."),
        said=_PAID,
    ),
    asking(
        "resolve",
        "POST /orders/{order}/dispute/resolve",
        "Resolve the dispute of an order.",
        _ORDER,
        click.argument("outcome", type=click.Choice(["won", "lost"])),
        said=_PAID,
    ),
    group(
        "personas",
        "Add customers with a history.",
        asking(
            "add",
            "POST /personas",
            "Add a customer with the history of PERSONA, such as past_due_br.",
            click.argument("persona"),
            click.option("--plan", "planId", metavar="ID", help="Plan that the customer bought."),
            said="{customer[name]} is {customer[id]}.",
        ),
    ),
    group(
        "orders",
        "List and show orders.",
        list_orders,
        asking(
            "show",
            "GET /orders/{order}",
            "Show an order, and where a payer pays it.",
            _ORDER,
            said=_PAID + "\n  pay page  {pay_url}",
        ),
    ),
    group(
        "clock",
        "Show, advance and set the clock of a sandbox.",
        advance,
        set_clock,
        asking("show", "GET /clock", "Show the clock of a sandbox."),
    ),
    group(
        "events",
        "List and raise events.",
        listing(
            "list", "events", "timestamp id type", "List the newest events of a sandbox.", _NEWEST
        ),
        asking(
            "raise",
            "POST /events",
            "Send an event of TYPE to the webhooks of a sandbox.",
            click.argument("type", metavar="TYPE"),
            said="{event[timestamp]}  {event[id]}  {event[type]}",
        ),
    ),
    group(
        "faults",
        "List, add and delete fault rules of a sandbox.",
        add_fault,
        listing(
            "list", "faults", "id name preset enabled hits seen", "List the rules, newest first."
        ),
        asking(
            "delete",
            "DELETE /faults/{id}",
            "Delete the rule ID.",
            click.argument("id"),
            said=_DELETED,
        ),
        asking("clear", "DELETE /faults", "Delete every rule.", said="Every rule is deleted."),
    ),
)
"""All of them, for the command."""
