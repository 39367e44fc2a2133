"""Rules of products: what a member gets access to, and by which plans."""

from collections.abc import Callable, Iterable

from ..kernel.problem import reference_not_found
from ..kernel.record import Body


def new_product(body: Body, defaults: Body, now: str) -> Body:
    """A new product without its id; its planIds have been checked. `defaults` holds the contract's defaults."""
    public = defaults | body
    public["projectId"] = public["projectId"].lower()
    public["createdAt"] = public["updatedAt"] = now
    return public


def changed_product(old: Body, body: Body, now: str) -> Body:
    """A product after an update: absent members stay, lists and maps are replaced whole."""
    return old | body | {"updatedAt": now}


def without_plan(old: Body, plan_id: str, now: str) -> Body | None:
    """A product that a plan no longer unlocks; None when it never did."""
    if plan_id not in old["planIds"]:
        return None
    return old | {"planIds": [ident for ident in old["planIds"] if ident != plan_id], "updatedAt": now}


def known_plans(asked: Iterable[str], project_id: str, project_of: Callable[[str], str | None]) -> list[str]:
    """The plans that unlock a product, each once, in the order of the request.

    Raises `reference_missing` for one that does not exist or belongs to another project than the product.
    """
    plans: dict[str, None] = {}
    for index, ident in enumerate(asked):
        plan_id = ident.lower()
        if project_of(plan_id) != project_id:
            raise reference_not_found(f"planIds[{index}]", "plan")
        plans[plan_id] = None
    return list(plans)
