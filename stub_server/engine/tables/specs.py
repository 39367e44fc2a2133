"""The nine tables of a merchant: what is unique, indexed, summed and searched in each."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

from ...contract.schema import Validator
from ...core.money import cents
from ...core.record import Body, Row, UniqueKey
from ...core.slices import Sliced, filtered
from ...core.text import without_accents
from .indexes import Derive, Derived, Index, Names, Tags, Texts, Totals, nothing

Extract = Callable[[Row], Any]
"""The value of a unique key that a record has; None where it has none."""


# Sorts behind every date-time, and is no text that a record can have: what is sorted by it is last
# in both directions.
LAST = "~\0"
_REMEMBERED = 256  # characters: texts of files may have a million
NUMBERS_END = "\0\0"  # no text that is searched for may contain NUL


class UniqueViolation(Exception):
    """A value of a unique key has a holder already.

    `schema` and `key` are those of the record that was to be stored, `key` None for a digest;
    `value` is the value.
    """

    def __init__(self, spec: "TableSpec", name: str, value: Any, holder: str) -> None:
        super().__init__(
            f"{holder} and another {spec.schema} have the same {name}"
            f" #/components/schemas/{spec.schema}/x-unique"
        )
        self.schema = spec.schema
        self.key = spec.keys.get(name)
        self.value = value


class TableSpec(NamedTuple):
    """One kind of record.

    `schema` names the contract's component that the public part must satisfy. `derived`, `kinds`
    and `sorts` are for its views. `keys` are the unique keys of the contract, `unique` further
    ones, or another way to what a record has of one.
    `mirrors` are the members that show part of another record as it is now: `plan` shows that of
    the table `plans` whose id is `planId`.
    """

    schema: str
    derived: Derive = nothing
    kinds: Mapping[type[Derived], Names] = {}
    sorts: Names = ()
    created: str = "createdAt"
    unique: Mapping[str, Extract] = {}
    keys: Mapping[str, UniqueKey] = {}
    mirrors: Names = ()
    live: bool = False


class Layout(NamedTuple):
    """How every store of a server is laid out.

    `tables` by name, `checks` by schema name; `running` are the states in which a subscription
    counts as a subscriber.
    """

    tables: Mapping[str, TableSpec]
    checks: Mapping[str, Validator]
    running: tuple[str, ...]


# -- text that is searched


def folded(text: str) -> str:
    """Text without case and accents, for `contains` filters and unique names."""
    if text.isascii():
        return text.lower()
    return without_accents(text.casefold())


_short_folded = lru_cache(maxsize=8192)(folded)


def unmasked(text: str) -> str:
    """Documents and telephones without case and the punctuation in which they are written."""
    return without_punctuation(folded(text))


def without_punctuation(text: str) -> str:
    """Text without the punctuation of documents and telephones."""
    return text.encode().translate(None, b" ()+-./").decode()  # many times as fast as str.translate


def _folded(text: str) -> str:
    """A folded name or e-mail address, which recurs with each order."""
    return folded(text) if len(text) > _REMEMBERED else _short_folded(text)


def searched(texts: Mapping[int, str], keys: Iterable[int], wanted: str) -> Sliced[list[int]]:
    """The keys of records whose folded text contains what is wanted; what stands before
    `NUMBERS_END` contains it unmasked.
    """
    words = folded(wanted)
    numbers = unmasked(wanted)
    if not numbers or numbers == words:
        return (yield from filtered(keys, lambda key: words in texts.get(key, "")))
    return (yield from filtered(keys, lambda key: _has(texts.get(key, ""), words, numbers)))


def _has(text: str, words: str, numbers: str) -> bool:
    if words in text:
        return True
    return numbers in text and numbers in text.rpartition(NUMBERS_END)[0]


# -- what is derived from records


def _of_customer(row: Row) -> Body:
    phones = [
        f"{p['country_code']}{p.get('area_code', '')}{p['number']}" for p in row["phones"].values()
    ]
    numbers = unmasked("\0".join((row["document"], *phones)))
    name = _folded(row["name"])
    text = f"{numbers}{NUMBERS_END}{_folded(row['email'])}\0{name}"
    return {"name": name, "search": text, "metadata": tuple(row["metadata"].items()) or None}


def _described(row: Row) -> Body:
    # No text that is searched for contains the sign between them, so none runs from the one into
    # the other.
    return {
        "name": _folded(row["name"]),
        "search": folded(f"{row['name'] or ''}\0{row.public.get('description') or ''}"),
    }


def _of_plan(row: Row) -> Body:
    return _described(row) | {"amount": cents(row["amount"])}


def _buyer_and_code(row: Row) -> str:
    customer = row["customer"]
    numbers = unmasked("\0".join((customer["document"], *customer["phones"].values())))
    texts = (row["code"].lower(), _folded(customer["email"]), _folded(customer["name"]))
    return numbers + NUMBERS_END + "\0".join(texts)


def _of_order(payable: Collection[str], kept: Collection[str], row: Row) -> Body:
    hidden = row.hidden
    status = row.status
    project = hidden["projectId"]
    plan = hidden["planId"]
    customer = hidden["customerId"]
    paid = hidden["paid_cents"]
    refunded = hidden["refunded_cents"]
    is_first = not hidden["renewal"]
    return {
        "totalAmount": cents(row["totalAmount"]),
        "search": _buyer_and_code(row),
        "metadata": tuple(hidden["metadata"].items()) or None,
        "gross": (project, "", paid),
        "refunded": (project, "", refunded),
        "plan_net": (plan, "", paid - refunded),
        "plans": (project, plan, 1),
        "renewals": None if is_first else (project, status, 1),
        "customers": None if hidden["copy_only"] else (project, customer, 1),
        "plan_buyers": (plan, customer, 1) if status in kept else None,
        "plan_waiting": (plan, customer, 1) if is_first and status in payable else None,
    }


def _of_product(row: Row) -> Body:
    return _described(row) | {"plans": frozenset(row["planIds"])}


def _of_subscription(running: Collection[str], row: Row) -> Body:
    project = row["projectId"]
    customer = row["customerId"]
    is_running = row.status in running
    goes_on = is_running and not row["cancel_at_period_end"]
    # What an active subscription brings in, and how often: few different ones, so their number by
    # kind is counted.
    terms = cents(row["amount"]), row["interval"], row["interval_count"]
    return {
        "going_on": project if goes_on else None,
        "next_billing_at": row["next_billing_at"] or LAST,
        "subscribers": (project, customer, 1),
        "active_subscribers": (project, customer, 1) if is_running else None,
        "plan_subscribers": (row["planId"], customer, 1) if is_running else None,
        "active_terms": (project, terms, 1) if row.status == "active" else None,
    }


def table_specs(
    sets: Mapping[str, Mapping[str, Collection[str]]], unique: Mapping[str, Sequence[UniqueKey]]
) -> Mapping[str, TableSpec]:
    """The tables by name; `sets` are the named sets of states of each schema, `unique`
    its unique keys.
    """
    orders = sets["Order"]
    specs = {
        "api_keys": TableSpec(
            "ApiKey",
            _described,
            kinds={Index: ("is_active",), Texts: ("search",)},
            sorts=("name",),
            created="created_at",
            unique={"digest": itemgetter("digest")},
            live=True,
        ),
        "customers": TableSpec(
            "Customer",
            _of_customer,
            kinds={
                Index: ("email", "type", "document_type", "made_by"),
                Tags: ("metadata",),
                Texts: ("name", "search"),
            },
            sorts=("name",),
            # stored without what the key ignores
            unique={"document": itemgetter("document")},
        ),
        "projects": TableSpec(
            "Project",
            _described,
            kinds={Index: ("status", "visibility"), Texts: ("search",)},
            sorts=("name",),
            live=True,
        ),
        "plans": TableSpec(
            "Plan",
            _of_plan,
            kinds={Index: ("projectId", "status", "billing_type"), Texts: ("search",)},
            sorts=("name", "amount"),
            live=True,
        ),
        "products": TableSpec(
            "Product",
            _of_product,
            kinds={Index: ("projectId", "type", "status"), Tags: ("plans",), Texts: ("search",)},
            sorts=("name",),
        ),
        "orders": TableSpec(
            "Order",
            partial(_of_order, orders["payable"], orders["kept"]),
            kinds={
                Index: (
                    "projectId",
                    "planId",
                    "status",
                    "customerId",
                    "subscriptionId",
                    "document",
                    "paymentMethod",
                    "projectId+status",
                    "planId+status",
                ),
                Tags: ("metadata",),
                Texts: ("search",),
                Totals: (
                    "gross",
                    "refunded",
                    "plan_net",
                    "plans",
                    "renewals",
                    "customers",
                    "plan_buyers",
                    "plan_waiting",
                ),
            },
            sorts=("totalAmount", "paid_at"),
        ),
        "subscriptions": TableSpec(
            "Subscription",
            partial(_of_subscription, sets["Subscription"]["running"]),
            kinds={
                Index: (
                    "projectId",
                    "planId",
                    "status",
                    "customerId",
                    "cancel_at_period_end",
                    "going_on",
                    "customerId+planId",
                    "projectId+status",
                    "planId+status",
                ),
                Totals: ("subscribers", "active_subscribers", "plan_subscribers", "active_terms"),
            },
            sorts=("next_billing_at",),
            mirrors=("customer", "plan"),
        ),
        "webhooks": TableSpec(
            "Webhook",
            kinds={Index: ("is_active", "projectId")},
        ),
        "webhook_logs": TableSpec(
            "WebhookLogEntry",
            kinds={
                Index: (
                    "webhookId",
                    "projectId",
                    "status",
                    "event_type",
                    "event_id",
                    "webhookId+status",
                ),
            },
        ),
    }
    for name, spec in specs.items():
        specs[name] = spec._replace(keys={key.name: key for key in unique.get(spec.schema, ())})
    return specs
