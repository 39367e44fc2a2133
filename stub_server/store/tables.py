"""The nine tables of a merchant: what is unique, indexed, summed and searched in each."""

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from ..kernel.money import cents
from ..kernel.record import Body, UniqueKey

Extract = Callable[[Body, Body], Any]
"""(public, hidden) -> a value; None stands for "not in this index"."""
Check = Callable[[Body], None]
"""Raises when a public part does not keep the contract."""

LOG_ROWS, LOG_BYTES = 10_000, 64 * 1024 * 1024
MOST_LOG_ROWS, MOST_LOG_BYTES = 5 * LOG_ROWS, 2 * LOG_BYTES  # where that many deliveries are still open
NUMBERS_END = "\0\0"  # no text that is searched for may contain NUL


class UniqueViolation(Exception):
    """A value of a unique key has a holder already.

    `schema` and `key` are those of the record that was to be stored, `key` None for a digest; `value` is the value.
    """

    def __init__(self, spec: "TableSpec", name: str, value: Any, holder: str) -> None:
        place = f"#/components/schemas/{spec.schema}/x-unique"
        super().__init__(f"{holder} and another {spec.schema} have the same {name} {place}")
        self.schema, self.key, self.value = spec.schema, spec.keys.get(name), value


NONE: Mapping[str, Any] = MappingProxyType({})


class Counted(NamedTuple):
    """What is counted by the values of an index: the sum of a whole number, or the different members but for None."""

    group: str
    member: Extract


class Mirror(NamedTuple):
    """A member that shows part of another table's record as that is now; `reference` is the member with its id."""

    table: str
    reference: str


class Ring(NamedTuple):
    """A table keeps so many records of so many bytes; the oldest go for new ones. Those whose value in the index `by`
    is one of `kept` stay, until there are more than `most`, or more than `most_size` bytes, in all.
    """

    rows: int
    size: int
    most: int
    most_size: int
    by: str
    kept: tuple[str, ...]


class TableSpec(NamedTuple):
    """One kind of record.

    `schema` names the contract's component that the public part must satisfy. `unique` keys refuse a second holder;
    `keys` says which of them the contract has.
    `indexes` answer equality in the cost of the page alone; of `pairs`, each `a+b` of two of them, both at once.
    `defaults` are what members of the hidden part have that a record does not name.
    `sorts` are further orders besides the time of creation. `search` gives the folded text that `contains` looks in.
    `ring` says how many records are kept.
    `mirrors` are the members that show part of another record as it is now.
    """

    schema: str
    created: str = "createdAt"
    unique: Mapping[str, Extract] = NONE
    keys: Mapping[str, UniqueKey] = NONE
    indexes: Mapping[str, Extract] = NONE
    pairs: tuple[str, ...] = ()
    sorts: Mapping[str, Extract] = NONE
    search: Mapping[str, Extract] = NONE
    sums: Mapping[str, Counted] = NONE
    distinct: Mapping[str, Counted] = NONE
    defaults: Mapping[str, str | int | None] = NONE
    mirrors: Mapping[str, Mirror] = NONE
    live: bool = False
    ring: Ring | None = None


def public(name: str) -> Extract:
    """A member of the public part."""
    return lambda public, hidden: public.get(name)


def hidden(name: str) -> Extract:
    """A member of the hidden part."""
    return lambda public, hidden: hidden.get(name)


def both(first: Extract, second: Extract) -> Extract:
    """Two values as one; None where one of them is."""

    def extract(public: Body, hidden: Body) -> Any:
        one = first(public, hidden)
        other = None if one is None else second(public, hidden)
        return None if other is None else (one, other)

    return extract


class Layout(NamedTuple):
    """How every store of a server is laid out.

    `tables` by name, `checks` by schema name; `running` are the states in which a subscription counts as a subscriber.
    """

    tables: Mapping[str, TableSpec]
    checks: Mapping[str, Check]
    running: tuple[str, ...]


# -- text that is searched


def folded(text: str) -> str:
    """Text without case and accents, for `contains` filters and unique names."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join([c for c in decomposed if not unicodedata.combining(c)])


def unmasked(text: str) -> str:
    """Documents and telephones without case and the punctuation in which they are written."""
    return _without_punctuation(folded(text))


def _without_punctuation(text: str) -> str:
    return text.encode().translate(None, b" ()+-./").decode()  # many times as fast as str.translate


_folded = lru_cache(maxsize=8192)(folded)  # for names and e-mail addresses: they are short, and recur with each order


def finder(wanted: str) -> Callable[[str], bool]:
    """Whether a record's folded text contains what is wanted; what stands before `NUMBERS_END` contains it unmasked."""
    words, numbers = folded(wanted), unmasked(wanted)
    if not numbers or numbers == words:
        return lambda text: words in text
    return lambda text: words in text or text.find(numbers, 0, max(text.rfind(NUMBERS_END), 0)) >= 0


# -- the tables


def _search_key(member: str) -> Extract:
    return lambda public, hidden: _folded(public[member])


def _cents(member: str) -> Extract:
    return lambda public, hidden: cents(public[member])


def _name_and_description(public: Body, hidden: Body) -> str:
    # No text that is searched for contains the sign between them, so none runs from the one into the other.
    return folded(f"{public['name'] or ''}\0{public.get('description') or ''}")


def _active_terms(public: Body, hidden: Body) -> tuple[int, str, int] | None:
    """What an active subscription brings in, and how often: few different ones, so their number by kind is counted."""
    if public["status"] != "active":
        return None
    return cents(public["amount"]), public["interval"], public["interval_count"]


def _buyer_and_code(public: Body, hidden: Body) -> str:
    customer = public["customer"]
    numbers = unmasked("\0".join((customer["document"], *customer["phones"].values())))
    return f"{numbers}{NUMBERS_END}{public['code'].lower()}\0{_folded(customer['email'])}\0{_folded(customer['name'])}"


_project, _plan = public("projectId"), public("planId")
_order_project, _order_plan = hidden("projectId"), hidden("planId")


def _renewal_status(public: Body, hidden: Body) -> str | None:
    return public["status"] if hidden.get("renewal") else None


def _shown_customer(public: Body, hidden: Body) -> str | None:
    return None if hidden.get("copy_only") else hidden["customerId"]


# -- unique keys


_IGNORING: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"case": str.casefold, "punctuation": _without_punctuation}
)


def extract_of(key: UniqueKey) -> Extract:
    """What a record has of a unique key; None where it has null."""
    members, scope = key.members, key.scope
    folds = [_IGNORING[difference] for difference in key.ignores]
    if scope is None and not folds and len(members) == 1:
        return lambda public, hidden: public.get(members[0])

    def extract(public: Body, hidden: Body) -> Any:
        values: list[Any] = []
        for member in members:
            value = public.get(member)
            if value is None:
                return None
            for fold in folds:
                value = fold(value)
            values.append(value)
        if scope is not None:
            values.append(public.get(scope))
        return values[0] if len(values) == 1 else tuple(values)

    return extract


def table_specs(
    sets: Mapping[str, Mapping[str, Collection[str]]], unique: Mapping[str, Sequence[UniqueKey]]
) -> Mapping[str, TableSpec]:
    """The tables by name; `sets` are the named sets of states of each schema, `unique` its unique keys."""
    running, open_deliveries = sets["Subscription"]["running"], tuple(sets["WebhookLogEntry"]["open"])
    payable, kept = sets["Order"]["payable"], sets["Order"]["kept"]

    def buyer(public: Body, hidden: Body) -> str | None:
        return hidden["customerId"] if public["status"] in kept else None

    def running_customer(public: Body, hidden: Body) -> str | None:
        return public["customerId"] if public["status"] in running else None

    def waiting_customer(public: Body, hidden: Body) -> str | None:
        return hidden["customerId"] if public["status"] in payable and not hidden.get("renewal") else None

    specs = {
        "api_keys": TableSpec(
            "ApiKey",
            created="created_at",
            unique={"digest": hidden("digest")},
            indexes={"is_active": public("is_active")},
            sorts={"name": _search_key("name")},
            search={"search": _name_and_description},
            live=True,
        ),
        "customers": TableSpec(
            "Customer",
            unique={"document": public("document")},  # stored without what the contract's key ignores
            indexes={
                "email": public("email"),
                "type": public("type"),
                "document_type": public("document_type"),
                "made_by": hidden("made_by"),
            },
            sorts={"name": _search_key("name")},
            search={"name": _search_key("name")},
        ),
        "projects": TableSpec(
            "Project",
            indexes={"status": public("status"), "visibility": public("visibility")},
            sorts={"name": _search_key("name")},
            search={"search": _name_and_description},
            live=True,
        ),
        "plans": TableSpec(
            "Plan",
            indexes={"projectId": _project, "status": public("status"), "billing_type": public("billing_type")},
            sorts={"name": _search_key("name"), "amount": _cents("amount")},
            search={"search": _name_and_description},
            live=True,
        ),
        "products": TableSpec(
            "Product",
            indexes={"projectId": _project, "type": public("type"), "status": public("status")},
            sorts={"name": _search_key("name")},
            search={"search": _name_and_description},
        ),
        "orders": TableSpec(
            "Order",
            indexes={
                "projectId": _order_project,
                "planId": _order_plan,
                "status": public("status"),
                "customerId": hidden("customerId"),
                "subscriptionId": hidden("subscriptionId"),
                "document": hidden("document"),
                "paymentMethod": public("paymentMethod"),
            },
            pairs=("projectId+status", "planId+status"),
            sorts={"totalAmount": _cents("totalAmount")},
            search={"search": _buyer_and_code},
            sums={
                "gross": Counted("projectId", hidden("paid_cents")),
                "refunded": Counted("projectId", hidden("refunded_cents")),
                "plan_gross": Counted("planId", hidden("paid_cents")),
                "plan_refunded": Counted("planId", hidden("refunded_cents")),
            },
            distinct={
                "plans": Counted("projectId", _order_plan),
                "renewals": Counted("projectId", _renewal_status),
                "customers": Counted("projectId", _shown_customer),
                "plan_buyers": Counted("planId", buyer),
                "plan_waiting": Counted("planId", waiting_customer),
            },
            defaults={
                "subscriptionId": None,
                "success_url": None,
                "cancel_url": None,
                "paid_cents": 0,
                "refunded_cents": 0,
                "paid_at": None,
                "renewal": False,
                "copy_only": False,
            },
        ),
        "subscriptions": TableSpec(
            "Subscription",
            indexes={
                "projectId": _project,
                "planId": _plan,
                "status": public("status"),
                "customerId": public("customerId"),
            },
            pairs=("projectId+status", "planId+status", "customerId+planId"),
            sorts={"next_billing_at": lambda public, hidden: public["next_billing_at"] or ""},
            distinct={
                "subscribers": Counted("projectId", public("customerId")),
                "active_subscribers": Counted("projectId", running_customer),
                "plan_subscribers": Counted("planId", running_customer),
                "active_terms": Counted("projectId", _active_terms),
            },
            mirrors={"customer": Mirror("customers", "customerId"), "plan": Mirror("plans", "planId")},
        ),
        "webhooks": TableSpec(
            "Webhook",
            indexes={"is_active": public("is_active"), "projectId": _project},
        ),
        "webhook_logs": TableSpec(
            "WebhookLogEntry",
            indexes={
                "webhookId": public("webhookId"),
                "projectId": hidden("projectId"),
                "status": public("status"),
                "event_type": public("event_type"),
                "event_id": public("event_id"),
            },
            pairs=("webhookId+status",),
            ring=Ring(LOG_ROWS, LOG_BYTES, MOST_LOG_ROWS, MOST_LOG_BYTES, "status", open_deliveries),
        ),
    }
    return {name: _with_keys(spec, unique.get(spec.schema, ())) for name, spec in specs.items()}


def _with_keys(spec: TableSpec, keys: Sequence[UniqueKey]) -> TableSpec:
    public = {key.name: extract_of(key) for key in keys}
    return spec._replace(unique={**public, **spec.unique}, keys={key.name: key for key in keys})
