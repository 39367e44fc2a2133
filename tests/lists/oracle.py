"""What a list must answer to a query, computed from all its records."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from .filters import FILTERS, Json, folded

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
    # What is billed no more stands before everything that is.
    "next_billing_at": lambda value: "" if value is None else value,
}
RANGES = {"created": None, "next_billing": "next_billing_at"}
"""The member that a range is about; None for the one that says when a record was made."""


def is_range(name: str) -> bool:
    """Whether a parameter is one end of a range."""
    return name.endswith(ENDS)


def ranged(operation: str, name: str) -> str:
    """The member that a range is about."""
    return RANGES[name[: -len("_since")]] or created(operation)


def created(operation: str) -> str:
    """The member that says when a record was made."""
    return CREATED.get(operation, "createdAt")


def keeps(operation: str, record: Json, name: str, asked: str) -> bool:
    """Whether one parameter lets a record through."""
    if not is_range(name):
        return FILTERS[operation][name].keeps(record, asked)
    held = record[ranged(operation, name)]
    if held is None:
        return False
    at, end = datetime.fromisoformat(held), datetime.fromisoformat(asked)
    return at >= end if name.endswith("_since") else at < end


def matching(operation: str, records: list[Json], query: Query) -> list[Json]:
    """The records that all filters and ranges let through, in the asked order."""
    asked = [(name, value) for name, value in query.items() if name not in SHAPING]
    found = [record for record in records if all(keeps(operation, record, name, value) for name, value in asked)]
    made = created(operation)
    sort = query.get("sort", f"-{made}")
    member = sort.removeprefix("-")
    # Ties are broken by the time of creation, then by id, in the direction of the sort.
    found.sort(
        key=lambda record: (SORTS[member](record[member]), datetime.fromisoformat(record[made]), record["id"]),
        reverse=sort.startswith("-"),
    )
    return found


def answer(operation: str, records: list[Json], query: Query) -> Json:
    """The ids on the asked page, and where it stands in its list."""
    page, limit = int(query.get("page", "1")), int(query.get("limit", "20"))
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
