"""What each filter of a list keeps, by the words of the contract: nothing here knows how the server
finds it.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..support.contract import document as document_of_contract

Json = dict[str, Any]
NOBODY = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records it keeps, spellings of what finds a record, and something that finds
    none of them.
    """

    keeps: Callable[[Json, str], bool]
    finding: Callable[[Json], list[str]]
    nothing: str | None = None


def folded(text: str) -> str:
    """Text without accents and case."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold()


def unmasked(document: str) -> str:
    """A document without the marks people write in it."""
    return document.replace(".", "").replace("-", "").replace("/", "")


def exact(member: str, nothing: str | None = None) -> Filter:
    """Equal, letter by letter. A record may hold null, which nothing finds."""
    return Filter(
        lambda record, asked: record[member] == asked,
        lambda record: [] if record[member] is None else [record[member]],
        nothing,
    )


def flag(member: str) -> Filter:
    """True or false."""

    def spelled(record: Json) -> str:
        return "true" if record[member] else "false"

    return Filter(lambda record, asked: spelled(record) == asked, lambda record: [spelled(record)])


def ident(member: str) -> Filter:
    """An id, in letters of either case. A record may hold one, none or several."""

    def held(record: Json) -> list[str]:
        value = record[member]
        return value if isinstance(value, list) else [] if value is None else [value]

    return Filter(
        lambda record, asked: asked.lower() in held(record),
        lambda record: [spelling for value in held(record) for spelling in (value, value.upper())],
        NOBODY,
    )


def text(*members: str) -> Filter:
    """Text that one of the members contains, whatever its case and accents."""

    def held(record: Json) -> list[str]:
        return [record[member] for member in members if record[member]]

    def parts(record: Json) -> list[str]:
        return [
            part
            for whole in held(record)
            for part in (whole[:100], folded(whole)[1:7].upper(), whole[-5:], "")
        ]

    return Filter(
        lambda record, asked: any(folded(asked) in folded(whole) for whole in held(record)),
        parts,
        "zzqxzzqx",
    )


def code() -> Filter:
    """A code, in letters of either case."""
    return Filter(
        lambda record, asked: record["code"].upper() == asked.upper(),
        lambda record: [record["code"], record["code"].lower()],
        "NOSUCHCODE",
    )


def buyer() -> Filter:
    """One part of an order's code or of what it says of its buyer, numbers with their punctuation
    or without.
    """

    def plain(number: str) -> str:
        return "".join(sign for sign in folded(number) if sign not in " ()+-./")

    def words(record: Json) -> list[str]:
        return [record["code"], record["customer"]["name"], record["customer"]["email"]]

    def numbers(record: Json) -> list[str]:
        return [record["customer"]["document"], *record["customer"]["phones"].values()]

    def keeps(record: Json, asked: str) -> bool:
        found = any(folded(asked) in folded(word) for word in words(record))
        return found or (
            plain(asked) != "" and any(plain(asked) in plain(number) for number in numbers(record))
        )

    def parts(record: Json) -> list[str]:
        spelled = [
            part for word in words(record) for part in (word, folded(word)[1:7].upper(), word[-5:])
        ]
        for number in map(plain, numbers(record)):
            spelled += [
                number,
                number[2:7],
                f"{number[:3]}.{number[3:6]}",
                f"({number[2:4]}) {number[4:9]}-{number[9:]}",
            ]
        return [*spelled, ".", " ", ""]

    return Filter(keeps, parts, "zzqxzzqx")


def contacts() -> Filter:
    """The same of a customer, who has no code and whose telephones are in parts."""

    def as_order(record: Json) -> Json:
        phones = {
            name: f"+{p['country_code']}{p.get('area_code', '')}{p['number']}"
            for name, p in record["phones"].items()
        }
        return {"code": "", "customer": record | {"phones": phones}}

    orders = buyer()
    return Filter(
        lambda record, asked: orders.keeps(as_order(record), asked),
        lambda record: orders.finding(as_order(record)),
        "zzqxzzqx",
    )


def entry(member: str) -> Filter:
    """One entry of a free map, letter by letter."""

    def held(record: Json) -> list[str]:
        return [f"{name}:{value}" for name, value in record[member].items()]

    return Filter(
        lambda record, asked: asked in held(record),
        lambda record: [text for text in held(record) if ":" not in text.partition(":")[0]],
        "nobody:has",
    )


def email() -> Filter:
    """An address, in letters of either case."""
    return Filter(
        lambda record, asked: record["email"].lower() == asked.lower(),
        lambda record: [record["email"], record["email"].upper()],
        "nobody.at.all@example.com",
    )


def document(of: Callable[[Json], str]) -> Filter:
    """A document, with its mask or without."""

    def spellings(record: Json) -> list[str]:
        plain = unmasked(of(record))
        return [
            plain,
            f"{plain[:3]}.{plain[3:]}",
            f"{plain[:2]}.{plain[2:5]}/{plain[5:-2]}-{plain[-2:]}"[:20],
        ]

    def keeps(record: Json, asked: str) -> bool:
        return unmasked(of(record)) == unmasked(asked)

    return Filter(keeps, spellings, "999.999.999-99")


def pattern(member: str) -> Filter:
    """A type of event, named by one of the record's patterns: itself, all of its
    resource, or all.
    """

    def keeps(record: Json, asked: str) -> bool:
        return bool({asked, f"{asked.split('.')[0]}.*", "*"} & set(record[member]))

    return Filter(keeps, lambda record: [name for name in record[member] if "*" not in name])


SEARCH = text("name", "description")
EVENT_ID = exact("event_id", "evt_none")

OWN: dict[str, dict[str, Filter]] = {
    "listApiKeys": {"search": SEARCH},
    "listCustomers": {
        "name": text("name"),
        "email": email(),
        "document": document(lambda record: str(record["document"])),
        "metadata": entry("metadata"),
        "search": contacts(),
    },
    "listPlans": {"search": SEARCH},
    "listSubscriptions": {
        "search": Filter(
            lambda record, asked: contacts().keeps(record["searched"], asked),
            lambda record: contacts().finding(record["searched"]),
            "zzqxzzqx",
        ),
        "orderId": ident("orderIds"),
    },
    "listOrders": {
        "code": code(),
        "document": document(lambda record: str(record["customer"]["document"])),
        "metadata": entry("metadata"),
        "search": buyer(),
    },
    "listProjects": {"search": SEARCH},
    "listProducts": {"planId": ident("planIds"), "search": SEARCH},
    "listWebhooks": {"event": pattern("events")},
    "listWebhookLogs": {"event_id": EVENT_ID},
    "listLogsForWebhook": {"event_id": EVENT_ID},
}
"""By operation and query parameter: filters that are more than a member with the name of
the parameter.
"""


@cache
def filter_of(operation: str, name: str) -> Filter:
    """What a parameter keeps: by the table, or the records whose member of its name is equal."""
    own = OWN.get(operation, {}).get(name)
    if own is not None:
        return own
    contract = document_of_contract()
    schema = contract.resolve(
        next(each.schema for each in contract.operations[operation].parameters if each.name == name)
    )
    if schema["type"] == "boolean":
        return flag(name)
    return ident(name) if schema.get("format") == "uuid" else exact(name)
