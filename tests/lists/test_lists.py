"""Every filter, range, sort order and page of every list answers what a reading of all
its records gives.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from random import Random

import pytest

from ..support.contract import document
from .filters import Json, filter_of
from .oracle import RANGES, SORTS, created, matching, ranged
from .reading import Listing, Reader

LISTS = [
    operation.id
    for operation in document().operations.values()
    if {"page", "limit"} <= {parameter.name for parameter in operation.parameters}
]
"""The list operations of the contract: what answers a page at a time."""

COMMON = 2
RARE = 2
OTHER = 5
RANDOM_QUERIES = 200
SAO_PAULO = timezone(timedelta(hours=-3))

every_list = pytest.mark.parametrize("operation", LISTS)


# -- what to ask


def occurring(listing: Listing, records: list[Json], name: str) -> list[str]:
    """Values that a filter is asked for: common ones, rare ones, some others, and each that the
    contract names.
    """
    schema = listing.parameters[name]
    if "enum" in schema:
        return [str(value) for value in schema["enum"]]
    finding = filter_of(listing.operation, name).finding
    ranked = [
        value
        for value, _ in Counter(
            value for record in records for value in finding(record)
        ).most_common()
    ]
    others = ranked[COMMON : len(ranked) - RARE]
    others = Random(name).sample(others, min(OTHER, len(others)))
    return list(dict.fromkeys([*ranked[:COMMON], *others, *ranked[-RARE:]]))


def values(listing: Listing, records: list[Json], name: str) -> list[str]:
    """What a filter is asked for, something that no record has included."""
    nothing = filter_of(listing.operation, name).nothing
    return [*occurring(listing, records, name), *([] if nothing is None else [nothing])]


def instants(operation: str, records: list[Json], name: str, chosen: Random) -> list[str]:
    """Ends of a range: instants of records, a millisecond beside them, in another offset, the first
    and the last.
    """
    held = sorted({record[ranged(operation, name)] for record in records} - {None})
    picked = [held[0], held[-1], *chosen.sample(held, min(3, len(held)))]
    at = [datetime.fromisoformat(text) for text in picked]
    step = timedelta(milliseconds=1)
    near = [moment + gap for moment in at[:3] for gap in (-step, step)]
    spelled = [moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") for moment in near]
    elsewhere = [moment.astimezone(SAO_PAULO).isoformat() for moment in at[-2:]]
    return [
        *dict.fromkeys(picked),
        *spelled,
        *elsewhere,
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ]


def combinations(listing: Listing, records: list[Json]) -> Iterator[Json]:
    """Queries of many kinds: some filters, some ends of ranges, a sort order, a limit
    and a page.
    """
    chosen = Random(listing.operation)
    for _ in range(RANDOM_QUERIES):
        # Filters that one record satisfies leave something to sort and to page through.
        record = chosen.choice(records)
        query = {}
        for name in chosen.sample(listing.filters, chosen.randint(0, min(3, len(listing.filters)))):
            found = filter_of(listing.operation, name).finding(record)
            if found and chosen.random() < 0.9:
                query[name] = chosen.choice(found)
            else:
                query[name] = chosen.choice(values(listing, records, name))
        for name in chosen.sample(listing.ranges, chosen.randint(0, 2)):
            query[name] = chosen.choice(instants(listing.operation, records, name, chosen))
        if chosen.random() < 0.8:
            query["sort"] = chosen.choice(listing.sorts)
        limit = int(query.setdefault("limit", chosen.choice(["1", "7", "20", "100"])))
        pages = -(-len(matching(listing.operation, records, query)) // limit)
        query["page"] = str(chosen.randint(1, pages + 1))
        yield query


# -- the contract and the tables of the tests


@pytest.mark.check
def test_the_served_contract_has_these_lists(reader: Reader) -> None:
    """Those that the tests below go through."""
    assert set(LISTS) == set(reader.listings)


@every_list
def test_every_list_parameter_has_an_expectation(reader: Reader, operation: str) -> None:
    """A range or sort order that is new in the contract needs a row in the tables of
    these tests.
    """
    listing = reader.listings[operation]
    unknown = [f"range {name}" for name in listing.ranges if name.rpartition("_")[0] not in RANGES]
    unknown += [f"sort {name}" for name in listing.sorts if name.removeprefix("-") not in SORTS]
    assert [] == unknown, (
        f"{operation}: say in tests/lists/oracle.py what {unknown} keep or order by"
    )
    upwards = {name for name in listing.sorts if not name.startswith("-")}
    assert {f"-{name}" for name in upwards} == set(listing.sorts) - upwards


@every_list
def test_the_world_tells_right_answers_from_wrong_ones(reader: Reader, operation: str) -> None:
    """Every filter keeps some records and leaves others out, and every sort order has ties."""
    listing = reader.listings[operation]
    records = reader.records(operation)
    for name in listing.filters:
        kept = {
            len(matching(operation, records, {name: value}))
            for value in values(listing, records, name)
        }
        assert any(0 < number < len(records) for number in kept), (
            f"{name} keeps {kept} of {len(records)}"
        )
    for member in {name.removeprefix("-") for name in listing.sorts}:
        assert max(Counter(SORTS[member](record[member]) for record in records).values()) > 1, (
            f"{member} has no ties"
        )


# -- the lists


@every_list
def test_a_list_without_a_query_is_the_first_twenty_newest_first(
    reader: Reader, operation: str
) -> None:
    """Nothing is left out, nothing comes twice, and ties are broken by id."""
    records = reader.records(operation)
    newest = sorted(
        records, key=lambda record: (record[created(operation)], record["id"]), reverse=True
    )
    assert len({record["id"] for record in records}) == len(records)
    assert [record["id"] for record in newest] == [
        record["id"] for record in reader.pages(operation, {})
    ]
    assert len(records) == reader.hold(operation, {})


@every_list
def test_each_filter_keeps_what_it_says(reader: Reader, operation: str) -> None:
    """Whatever it is asked for, in every spelling, and for what does not occur."""
    listing = reader.listings[operation]
    records = reader.records(operation)
    for name in listing.filters:
        for value in values(listing, records, name):
            reader.hold(operation, {name: value, "limit": "100"})


@every_list
def test_a_range_has_its_start_and_not_its_end(reader: Reader, operation: str) -> None:
    """From its start, included, to its end, excluded; with one end, with both, and with none
    between them.
    """
    listing = reader.listings[operation]
    records = reader.records(operation)
    chosen = Random(operation)
    for stem in dict.fromkeys(name.rpartition("_")[0] for name in listing.ranges):
        since = f"{stem}_since"
        until = f"{stem}_until"
        ends = instants(operation, records, since, chosen)
        for end in ends:
            reader.hold(operation, {since: end, "limit": "100"})
            reader.hold(operation, {until: end, "limit": "100"})
            assert reader.hold(operation, {since: end, until: end}) == 0
        for _ in range(10):
            reader.hold(
                operation, {since: chosen.choice(ends), until: chosen.choice(ends), "limit": "100"}
            )


@every_list
def test_a_sort_order_holds_across_all_pages(reader: Reader, operation: str) -> None:
    """All pages of the whole list and of a part of it, upwards and downwards."""
    listing = reader.listings[operation]
    records = reader.records(operation)
    name = listing.filters[0]
    part = {
        name: max(
            occurring(listing, records, name),
            key=lambda value: len(matching(operation, records, {name: value})),
        )
    }
    for query in ({}, part, {listing.ranges[0]: records[len(records) // 2][created(operation)]}):
        for sort in listing.sorts:
            expected = [
                record["id"] for record in matching(operation, records, query | {"sort": sort})
            ]
            assert expected == [
                record["id"] for record in reader.pages(operation, query | {"sort": sort})
            ], sort


@every_list
def test_any_query_answers_what_reading_everything_gives(reader: Reader, operation: str) -> None:
    """Filters, ranges, a sort order and a page together."""
    totals = [
        reader.hold(operation, query)
        for query in combinations(reader.listings[operation], reader.records(operation))
    ]
    assert sum(total > 0 for total in totals) > RANDOM_QUERIES // 3
