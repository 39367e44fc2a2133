"""What a list must answer to a query, computed from all its records."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from .filters import Json, filter_of, folded

Query = Mapping[str, str]
SHAPING = frozenset(("page", "limit", "sort"))
ENDS = ("_since", "_until")

CREATED: dict[str, str] = {"listApiKeys": "created_at"}
"""The member that says when a record was made, where it is not createdAt."""

SORTS: dict[str, Callable[[Any], Any]] = {
    "created_at": datetime.fromisoformat,
    "createdAt": datetime.fromisoformat,
    "name": folded,
    "amount": float,
    "totalAmount": float,
    "next_billing_at": str,
}
RANGES = {"created": None, "next_billing": "next_billing_at", "paid": "paid_at"}
"""The member that a range is about; None for the one that says when a record was made."""


def is_range(name: str) -> bool:
    """Whether a parameter is one end of a range."""
    return name.endswith(ENDS)


def is_empty(query: Query) -> bool:
    """Whether one of the ranges ends before it begins."""
    names = [name.removesuffix("since") for name in query if name.endswith("_since")]
    ends = [(query[f"{name}since"], query.get(f"{name}until")) for name in names]
    return any(
        until is not None and datetime.fromisoformat(since) >= datetime.fromisoformat(until)
        for since, until in ends
    )


def ranged(operation: str, name: str) -> str:
    """The member that a range is about."""
    return RANGES[name[: -len("_since")]] or created(operation)


def created(operation: str) -> str:
    """The member that says when a record was made."""
    return CREATED.get(operation, "createdAt")


def keeps(operation: str, record: Json, name: str, asked: str) -> bool:
    """Whether one parameter lets a record through."""
    if not is_range(name):
        return filter_of(operation, name).keeps(record, asked)
    held = record[ranged(operation, name)]
    if held is None:
        return False
    at = datetime.fromisoformat(held)
    end = datetime.fromisoformat(asked)
    return at >= end if name.endswith("_since") else at < end


def matching(operation: str, records: list[Json], query: Query) -> list[Json]:
    """The records that all filters and ranges let through, in the asked order."""
    asked = [(name, value) for name, value in query.items() if name not in SHAPING]
    found = [
        record
        for record in records
        if all(keeps(operation, record, name, value) for name, value in asked)
    ]
    made = created(operation)
    sort = query.get("sort", f"-{made}")
    member = sort.removeprefix("-")
    # Ties are broken by the time of creation, then by id, in the direction of the sort.
    downwards = sort.startswith("-")

    def age(record: Json) -> tuple[datetime, str]:
        return datetime.fromisoformat(record[made]), record["id"]

    with_it = [record for record in found if record[member] is not None]
    with_it.sort(
        key=lambda record: (SORTS[member](record[member]), *age(record)), reverse=downwards
    )
    # Records without the member are last in both directions.
    return with_it + sorted(
        (record for record in found if record[member] is None), key=age, reverse=downwards
    )


def answer(operation: str, records: list[Json], query: Query) -> Json:
    """The ids on the asked page, and where it stands in its list."""
    page = int(query.get("page", "1"))
    limit = int(query.get("limit", "20"))
    found = [record["id"] for record in matching(operation, records, query)]
    pages = -(-len(found) // limit)
    return {
        "asked": dict(query),
        "ids": found[(page - 1) * limit : page * limit],
        "pagination": {
            "page": page,
            "limit": limit,
            "total": len(found),
            "total_pages": pages,
            "has_next": page < pages,
            "has_prev": page > 1,
        },
    }
