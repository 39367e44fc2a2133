"""How deep a run went: shares of what was accepted, conflicts that were seen, links
that were taken.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Json = dict[str, Any]
METHODS = ("get", "put", "post", "delete", "patch")
# Of the requests of these that were meant to be valid, so many in a hundred are accepted at least.
CREATES = 30
UNREACHED = Path(__file__).with_name("unreached.yaml")


class Link(NamedTuple):
    """A declared link: as schemathesis names it, the two operations, and the tag of the first."""

    name: str
    source: str
    target: str
    tag: str


def unreached(contract: Json) -> dict[tuple[str, str], str]:
    """What a run need not see, each with the reason: 409 or every status of operations."""
    ids = {operation["operationId"]: name for name, operation in operations(contract)}
    entries: list[Json] = yaml.safe_load(UNREACHED.read_text())
    return {
        (ids[name], entry["status"]): entry["why"]
        for entry in entries
        for name in entry["operations"]
        if name in ids
    }


@dataclass(slots=True)
class Reach:
    """Answers by operation (`GET /v2/customers`): of valid requests and of all; and by
    declared link.
    """

    valid: dict[str, Counter[int]] = field(default_factory=dict)
    all: dict[str, Counter[int]] = field(default_factory=dict)
    links: dict[str, Counter[int]] = field(default_factory=dict)

    def read(self, report: Path) -> None:
        """Add the events of a run."""
        with report.open() as lines:
            for line in lines:
                recorder = (json.loads(line).get("ScenarioFinished") or {}).get("recorder") or {}
                for ident, entry in recorder.get("cases", {}).items():
                    response = recorder["interactions"].get(ident, {}).get("response")
                    if response is not None:
                        self._add(entry, response["status_code"])

    def _add(self, entry: Json, status: int) -> None:
        case = entry["value"]
        operation = f"{case['method']} {case['path']}"
        self.all.setdefault(operation, Counter())[status] += 1
        meta = case.get("meta")
        link = entry.get("transition")
        # A probe that takes the credential away, or has one that may do nothing, is made from a
        # valid request.
        if (
            meta is not None
            and meta["generation"]["mode"] == "positive"
            and status not in (401, 403)
        ):
            self.valid.setdefault(operation, Counter())[status] += 1
        if link and entry.get("is_transition_applied"):
            self.links.setdefault(link["id"], Counter())[status] += 1

    def share(self, operation: str) -> int:
        """Of a hundred valid requests, those that were accepted."""
        counts = self.valid.get(operation, Counter())
        return 100 * accepted(counts) // max(1, counts.total())

    def lacks_conflict(self, name: str, operation: Json) -> bool:
        """Whether an operation documents 409, which its own rules alone make, and nobody saw it."""
        return "409" in operation["responses"] and 409 not in self.all.get(name, ())


def accepted(counts: Counter[int]) -> int:
    """The answers that are successes."""
    return sum(count for status, count in counts.items() if 200 <= status < 300)


def operations(contract: Json) -> Iterator[tuple[str, Json]]:
    """Every operation of a contract with its name, as `GET /v2/customers`."""
    for path, item in contract["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


def declared_links(contract: Json) -> list[Link]:
    """Every link of a contract."""
    names = {operation["operationId"]: name for name, operation in operations(contract)}
    return [
        Link(
            f"{name} -> [{status}] {link} -> {names[target['operationId']]}",
            operation["operationId"],
            target["operationId"],
            operation["tags"][0],
        )
        for name, operation in operations(contract)
        for status, answer in operation["responses"].items()
        for link, target in answer.get("links", {}).items()
    ]


def is_taken(link: Link, reach: Reach) -> bool:
    """Whether a chain has gone along it to a success; from what was deleted to the 404
    that says so.
    """
    counts = reach.links.get(link.name, Counter())
    return accepted(counts) > 0 or (link.name.startswith("DELETE") and counts[404] > 0)


def table(contract: Json, reach: Reach) -> str:
    """A line for each operation: how its valid requests were answered, and a documented conflict
    that nobody saw.
    """
    names = [name for name, _ in operations(contract)]
    excused = unreached(contract)
    width = max(map(len, names))
    rows = [f"{'':{width}} accepted   of   %  never seen"]
    for name, operation in operations(contract):
        counts = reach.valid.get(name, Counter())
        unseen = "409" if reach.lacks_conflict(name, operation) else ""
        rows.append(
            f"{name:{width}} {accepted(counts):8} {counts.total():4} {reach.share(name):3} "
            f" {unseen}"
        )
    links = declared_links(contract)
    taken = [link for link in links if is_taken(link, reach)]
    rows.append(
        f"\n{len(taken)} of {len(links)} declared links were taken in chains, to a success or from"
        " a DELETE to 404."
    )
    for (name, status), why in excused.items():
        rows.append(f"{name} {status} need not be seen: {why}")
    return "\n".join(rows)


def findings(contract: Json, reach: Reach) -> Iterable[str]:
    """What a run should have reached and did not."""
    excused = unreached(contract)
    for name, operation in operations(contract):
        creates = name.startswith("POST") and "201" in operation["responses"]
        if (name, "every") in excused:
            continue
        if not accepted(reach.valid.get(name, Counter())):
            yield f"{name} was never accepted, so it was not tested."
        elif creates and reach.share(name) < CREATES:
            yield f"{name} was accepted in {reach.share(name)} of 100, less than {CREATES}."
        if reach.lacks_conflict(name, operation) and (name, "409") not in excused:
            yield f"{name} is documented to answer 409 and never did."
    for link in declared_links(contract):
        if not is_taken(link, reach):
            counts = dict(reach.links.get(link.name, Counter()))
            yield (
                f"The link {link.name} was never taken to a success:"
                f" {counts or 'it was not tried'}."
            )
