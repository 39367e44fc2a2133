"""Repairs of requests that a rule refuses for a value: one that is free, or that agrees with the others."""

from __future__ import annotations

from collections.abc import Iterator

from ..domain.documents import infer
from ..domain.orders import items_cents
from ..kernel.clock import DAY, iso
from . import free
from .attempt import Attempt
from .situation import Situation

_TRIED = 4
_YEAR = 365 * DAY
_MOST_KEYS = 12_000  # more than are kept


def free_document(s: Situation) -> Iterator[Attempt]:
    """A valid document of the same kind that no customer has."""
    made = free.document(s.store, str(s.attempt.member("document")))
    if made is not None:
        yield s.attempt.with_member(["document"], made, "No customer has this document yet.")


def free_name(s: Situation) -> Iterator[Attempt]:
    """The name with a number behind it."""
    project_id = None
    if s.operation.id in ("createPlan", "updatePlan"):
        project_id = str(s.target.public["projectId"] if s.target else s.attempt.member("projectId")).lower()
    made = free.name(s.store, str(s.attempt.member("name")), project_id)
    if made is not None:
        yield s.attempt.with_member(["name"], made, "The name is free.")


def free_sku(s: Situation) -> Iterator[Attempt]:
    """The SKU with a number behind it."""
    sku = str(s.attempt.member("sku"))
    for number in range(2, 2 + _TRIED):
        yield s.attempt.with_member(["sku"], f"{sku[:58]}-{number}", "The SKU is free.")


def free_address(s: Situation) -> Iterator[Attempt]:
    """The address with a query behind it."""
    known = s.target.public if s.target else {"url": "", "projectId": None}
    project_id = s.attempt.member("projectId") or known["projectId"]
    url = str(s.attempt.member("url") or known["url"])
    made = free.address(s.store, url, project_id and str(project_id).lower())
    if made is not None:
        yield s.attempt.with_member(["url"], made, "No webhook has this address yet.")


def total_of_items(s: Situation) -> Iterator[Attempt]:
    """The total that the items add up to."""
    total = items_cents(s.attempt.member("items")) / 100
    yield s.attempt.with_member(["totalAmount"], total, "The items add up to this.")


def another_key(s: Situation) -> Iterator[Attempt]:
    """An Idempotency-Key that was not used for this path."""
    asked = s.attempt.question
    used = asked.headers.get("idempotency-key", "").strip('"')
    made = (f"{used[:240]}-{number}" for number in range(2, _MOST_KEYS))
    taken = s.stage.replies
    free = next((key for key in made if taken.get((s.merchant_id, asked.method, asked.path, key)) is None), None)
    if free is not None:
        yield s.attempt.with_header("idempotency-key", free, "The key is new.")


def agreeing_type(s: Situation) -> Iterator[Attempt]:
    """Types that agree with the document."""
    base = ["customer"] if "customer" in (s.attempt.body or {}) else []
    target = s.target
    document = s.attempt.member(*base, "document") or (target.public["document"] if target else "")
    kind, holder = infer(str(document))
    made = s.attempt
    for name, value in (("document_type", kind), ("type", holder)):
        if target is not None or made.member(*base, name) is not None:
            made = made.with_member([*base, name], value, "It follows from the document.")
    yield made


def later_expiry(s: Situation) -> Iterator[Attempt]:
    """An API key is switched on with an end that is still to come."""
    until = iso(s.stage.clock.now + _YEAR)
    yield s.attempt.with_member(["expires_at"], until, "The key has expired: it needs a later end to be active.")
