"""Rules of plans: a price and a rhythm that stand still while somebody pays by them."""

from ..kernel.problem import Conflict, detail, duplicate
from ..kernel.record import Body

_PRICE_AND_RHYTHM = ("amount", "billing_type", "interval", "interval_count")


def new_plan(body: Body, defaults: Body, now: str) -> Body:
    """A new plan without its id. `defaults` holds the contract's defaults of a plan."""
    public = _settled(defaults | body)
    public["projectId"] = public["projectId"].lower()
    public["subscribers_count"] = 0  # a live counter: counted anew whenever the plan is shown
    public["createdAt"] = public["updatedAt"] = now
    return public


def changed_plan(old: Body, body: Body, running: int, now: str) -> Body:
    """A plan after an update.

    Raises Conflict when price or rhythm would change under `running` subscriptions: renewals charge what was agreed.
    """
    public = _settled(old | body)
    changed = [name for name in _PRICE_AND_RHYTHM if public[name] != old[name]]
    if changed and running:
        message = (
            f"The plan has {_counted(running, 'running subscription')}: its {' and '.join(changed)} cannot change."
        )
        raise Conflict(message, code="plan_in_use", details=[detail(name, "plan_in_use", message) for name in changed])
    public["updatedAt"] = now
    return public


def _settled(public: Body) -> Body:
    """Only a recurring plan has a trial and an interval, which is a month, once, unless told otherwise."""
    if public["billing_type"] == "one_time":
        public["interval"] = public["interval_count"] = None
        public["trial_period_days"] = 0
    else:
        public["interval"] = public["interval"] or "month"
        public["interval_count"] = public["interval_count"] or 1
    return public


def warnings(wanted: Body) -> tuple[str, ...]:
    """`trial_ignored` when a plan that is paid once was to have trial days."""
    ignored = wanted.get("billing_type") == "one_time" and wanted.get("trial_period_days")
    return ("trial_ignored",) if ignored else ()


def check_unused(running: int, pending: int) -> None:
    """A plan goes only when nobody pays by it or is about to. Raises Conflict."""
    holders = []
    if running:
        holders.append(_counted(running, "running subscription"))
    if pending:
        holders.append(_counted(pending, "pending order"))
    if holders:
        raise Conflict(f"The plan has {' and '.join(holders)}.", code="plan_in_use")


def check_name(holder: str | None, own: str | None) -> None:
    """A name belongs to one live plan of a project. Raises Conflict."""
    if holder is not None and holder != own:
        raise duplicate("name", "duplicate_name", "Another plan of this project has this name.")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
