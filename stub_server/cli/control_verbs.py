"""The verbs about orders, the clock and faults that are more than one request.

Exit codes: 0 done, 1 refused, 2 usage or no server.
"""

from ..core.members import given
from ..core.record import Body
from ..core.text import counted
from .asking import show_list
from .options import json_argument
from .running_server import Target

# -- orders


def list_orders(target: Target, limit: int, status: str | None) -> None:
    """List the newest orders of a sandbox."""
    found = target.orders(**given(limit=limit, status=status))
    show_list(target, found, "id code status totalAmount paymentMethod customer.name")


# -- the clock


def advance(target: Target, span: Body) -> None:
    """Advance the clock by 30d, 4mo, 12h, 15m, 10s or 1d12h, or to a date-time."""
    answer = target.control("POST", "/clock/advance", json=span)
    text = (
        f"The clock shows {answer['now']}. {counted(sum(answer['counts'].values()), 'job')} ran on"
        " the way."
    )
    if not answer["complete"]:
        text += " Deliveries are still on their way."
    target.show(answer, text)


def set_clock(target: Target, state: str) -> None:
    """Set the clock to a later date-time, or set it to frozen or running."""
    change: Body = {"to": state}
    if state in ("frozen", "running"):
        change = {"frozen": state == "frozen"}
    answer = target.control("PATCH", "/clock", json=change)
    runs = "frozen" if answer["frozen"] else "running"
    target.show(answer, f"The clock shows {answer['now']} and is {runs}.")


# -- faults


def add_fault(target: Target, rule: str) -> None:
    """Add a rule from RULE."""
    target.may_be_new = True
    if rule.isidentifier():
        body = {"preset": rule}
    else:
        body = json_argument(rule, "RULE is neither the name of a preset nor a JSON object")
    made = target.control("POST", "/faults", json=body)
    target.show(made, f"{made['fault']['id']} is added.")
