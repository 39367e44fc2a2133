"""The table of `make contract`: what a run need not see is documented, and what else it has not seen fails it."""

from collections import Counter
from typing import Any

import pytest
import yaml

from ..support.contract import document
from .reach import UNREACHED, Link, Reach, Unreached, accepted, declared_links, findings, is_taken, operations, table

ENTRIES = ("openapi.yaml", "sandbox.yaml")


def whole(contract: Any) -> Reach:
    """A run that has seen everything."""
    reach = Reach()
    for name, operation in operations(contract):
        statuses = [int(status) for status in operation["responses"] if status != "default"]
        reach.all[name] = Counter(statuses)
        reach.valid[name] = Counter(status for status in statuses if status < 300)
    reach.links = {link.name: Counter([200]) for link in declared_links(contract)}
    return reach


@pytest.fixture(params=ENTRIES)
def contract(request: pytest.FixtureRequest) -> Any:
    return resolved(document(request.param))


def resolved(doc: Any) -> Any:
    """The contract with its answers in place, as a server serves it."""
    paths = {
        path: {
            method: operation | {"responses": {code: doc.resolve(a) for code, a in operation["responses"].items()}}
            for method, operation in item.items()
            if isinstance(operation, dict)
        }
        for path, item in doc.raw["paths"].items()
    }
    return doc.raw | {"paths": paths}


def test_every_entry_is_of_a_status_or_link_that_a_contract_has() -> None:
    entries = yaml.safe_load(UNREACHED.read_text())
    documented, links = set(), set()
    for entry in ENTRIES:
        contract = resolved(document(entry))
        for _, operation in operations(contract):
            documented |= {(operation["operationId"], status) for status in (*operation["responses"], "every")}
        links |= {link.name for link in declared_links(contract)}
    listed = [(name, entry["status"]) for entry in entries for name in entry.get("operations", ())]
    assert [] == [pair for pair in listed if pair not in documented]
    assert len(listed) == len(set(listed))
    assert [] == [link for entry in entries for link in entry.get("links", ()) if link not in links]


def test_a_run_that_has_seen_everything_is_deep(contract: Any) -> None:
    assert [] == list(findings(contract, whole(contract)))


def test_every_status_that_was_never_seen_is_told_unless_it_is_listed(contract: Any) -> None:
    listed, reach = Unreached.of(contract).statuses, whole(contract)
    reach.all.clear()
    expected = [
        f"{name} is documented to answer {status} and never did."
        for name, operation in operations(contract)
        for status in operation["responses"]
        if (name, status) not in listed and (name, "every") not in listed
    ]
    assert expected == list(findings(contract, reach))
    assert len(expected) > 100


def test_an_operation_that_was_never_accepted_is_told(contract: Any) -> None:
    name = next(name for name, _ in operations(contract))
    reach = whole(contract)
    reach.valid[name] = Counter([404])
    assert [f"{name} was never accepted, so it was not tested."] == list(findings(contract, reach))


def test_a_creation_that_is_mostly_refused_is_told(contract: Any) -> None:
    name = next(n for n, operation in operations(contract) if n.startswith("POST") and "201" in operation["responses"])
    reach = whole(contract)
    reach.valid[name] = Counter({201: 29, 409: 71})
    assert [f"{name} was accepted in 29 of 100, less than 30."] == list(findings(contract, reach))


def test_a_link_that_was_never_taken_is_told_and_counted(contract: Any) -> None:
    excused = Unreached.of(contract).links
    links = declared_links(contract)
    link = next(link for link in links if link.name not in excused and not link.name.startswith("DELETE"))
    reach = whole(contract)
    reach.links[link.name] = Counter([404, 409])
    assert [f"The link {link.name} was never taken to a success: {{404: 1, 409: 1}}."] == list(
        findings(contract, reach)
    )
    assert f"{len(links) - 1} of {len(links)} declared links" in table(contract, reach)


def test_a_link_from_a_deletion_is_taken_when_the_record_is_gone() -> None:
    reach = Reach(
        links={"DELETE /a -> [200] Get -> GET /a": Counter([404]), "POST /a -> [201] Get -> GET /a": Counter([404])}
    )
    taken = {name: is_taken(Link(name, "a", "b", "c"), reach) for name in reach.links}
    assert [True, False] == list(taken.values())
    assert 0 == sum(map(accepted, reach.links.values()))
