"""Rules of plans: the rhythm of billing cannot change while subscriptions run."""

from ..kernel.problem import Conflict, detail
from ..kernel.record import Body

_RHYTHM = ("billing_type", "interval", "interval_count")


def new_plan(body: Body, defaults: Body, now: str) -> Body:
    """A new plan without its id. `defaults` holds the contract's defaults of a plan."""
    public = _settled(defaults | body)
    public["projectId"] = public["projectId"].lower()
    public["subscribers_count"] = 0  # a live counter, calculated whenever the plan is shown
    public["createdAt"] = public["updatedAt"] = now
    return public


def changed_plan(old: Body, body: Body, running: int, now: str) -> Body:
    """A plan after an update.

    Raises Conflict if the rhythm of billing would change while there are `running` subscriptions.
    """
    public = _settled(old | body)
    changed = [name for name in _RHYTHM if public[name] != old[name]]
    if changed and running:
        message = (
            f"The plan has {_counted(running, 'running subscription')}: its {' and '.join(changed)} cannot change."
        )
        raise Conflict(message, code="plan_in_use", details=[detail(name, "plan_in_use", message) for name in changed])
    public["updatedAt"] = now
    return public


def _settled(public: Body) -> Body:
    """A one-time plan has no trial and no interval; the interval of a recurring one is a month by default."""
    if public["billing_type"] == "one_time":
        public["interval"] = public["interval_count"] = None
        public["trial_period_days"] = 0
    else:
        public["interval"] = public["interval"] or "month"
        public["interval_count"] = public["interval_count"] or 1
    return public


def warnings(wanted: Body) -> tuple[str, ...]:
    """`trial_ignored` for a one-time plan with trial days."""
    ignored = wanted.get("billing_type") == "one_time" and wanted.get("trial_period_days")
    return ("trial_ignored",) if ignored else ()


def check_unused(running: int, pending: int) -> None:
    """Raises Conflict if a plan that has running subscriptions or pending orders is to be deleted."""
    holders = []
    if running:
        holders.append(_counted(running, "running subscription"))
    if pending:
        holders.append(_counted(pending, "pending order"))
    if holders:
        raise Conflict(f"The plan has {' and '.join(holders)}.", code="plan_in_use")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
