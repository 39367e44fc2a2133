"""How deep a run went: shares of what was accepted, statuses that were seen, links that were taken."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
METHODS = ("get", "put", "post", "delete", "patch")
# Of the requests of these that were meant to be valid, so many in a hundred are accepted at least.
CREATES = 30
# Statuses that a run need not see, and why. tests/journeys reaches each of them.
UNREACHABLE = {
    "400": "syntax is broken by chance alone",
    "403": "the run's token may do everything",
    "409": "a state may be needed that is in no schema",
    "413": "a body beyond the server's limit is in no schema",
}


@dataclass(slots=True)
class Reach:
    """Answers by operation (`GET /v2/customers`): of valid requests and of all; and by declared link."""

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
        meta, link = case.get("meta"), entry.get("transition")
        # A probe that takes the credential away is made from a valid request.
        if meta is not None and meta["generation"]["mode"] == "positive" and status != 401:
            self.valid.setdefault(operation, Counter())[status] += 1
        if link and entry.get("is_transition_applied"):
            self.links.setdefault(link["id"], Counter())[status] += 1

    def share(self, operation: str) -> int:
        """Of a hundred valid requests, those that were accepted."""
        counts = self.valid.get(operation, Counter())
        return 100 * accepted(counts) // max(1, counts.total())


def accepted(counts: Counter[int]) -> int:
    """The answers that are successes."""
    return sum(count for status, count in counts.items() if 200 <= status < 300)


def operations(contract: Json) -> Iterator[tuple[str, Json]]:
    """Every operation of a contract with its name, as `GET /v2/customers`."""
    for path, item in contract["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


def declared_links(contract: Json) -> list[str]:
    """Every link of a contract, named as schemathesis names it."""
    names = {operation["operationId"]: name for name, operation in operations(contract)}
    return [
        f"{name} -> [{status}] {link} -> {names[target['operationId']]}"
        for name, operation in operations(contract)
        for status, answer in operation["responses"].items()
        for link, target in answer.get("links", {}).items()
    ]


def table(contract: Json, reach: Reach) -> str:
    """A line for each operation: how its valid requests were answered, and documented statuses that nobody saw."""
    names = [name for name, _ in operations(contract)]
    width = max(map(len, names))
    rows = [f"{'':{width}} accepted   of   %  never seen"]
    for name, operation in operations(contract):
        counts = reach.valid.get(name, Counter())
        unseen = " ".join(status for status in operation["responses"] if int(status) not in reach.all.get(name, ()))
        rows.append(f"{name:{width}} {accepted(counts):8} {counts.total():4} {reach.share(name):3}  {unseen}")
    taken = [link for link in declared_links(contract) if accepted(reach.links.get(link, Counter()))]
    rows.append(f"\n{len(taken)} of {len(declared_links(contract))} declared links were taken to a success in chains.")
    reasons = [f"{status}: {why}." for status, why in UNREACHABLE.items()]
    return "\n".join([*rows, "Statuses that a run need not see: " + " ".join(reasons)])


def findings(contract: Json, reach: Reach, links: int) -> Iterable[str]:
    """What a run should have reached and did not. `links` is the least number of links taken in chains."""
    for name, operation in operations(contract):
        creates = name.startswith("POST") and "201" in operation["responses"]
        if not accepted(reach.valid.get(name, Counter())):
            yield f"{name} was never accepted, so it was not tested."
        elif creates and reach.share(name) < CREATES:
            yield f"{name} was accepted in {reach.share(name)} of 100, less than {CREATES}."
        for status in operation["responses"]:
            if int(status) not in reach.all.get(name, ()) and status not in UNREACHABLE:
                yield f"{name} is documented to answer {status} and never did."
    taken = [link for link in declared_links(contract) if accepted(reach.links.get(link, Counter()))]
    if len(taken) < links:
        yield f"{len(taken)} declared links were taken to a success, less than {links}."
