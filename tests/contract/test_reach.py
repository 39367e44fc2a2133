"""The table of `make contract`: what a run need not see is documented, and what else it has not
seen fails it.
"""

from collections import Counter
from typing import Any

import pytest
import yaml

from ..support.contract import document
from .reach import UNREACHED, Reach, Unreached, declared_links, findings, operations, table

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
            method: (
                operation
                | {
                    "responses": {
                        code: doc.resolve(a) for code, a in operation["responses"].items()
                    }
                }
            )
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
            documented |= {
                (operation["operationId"], status) for status in (*operation["responses"], "every")
            }
        links |= {link.name for link in declared_links(contract)}
    listed = [(name, entry["status"]) for entry in entries for name in entry.get("operations", ())]
    assert [] == [pair for pair in listed if pair not in documented]
    assert len(listed) == len(set(listed))
    assert [] == [link for entry in entries for link in entry.get("links", ()) if link not in links]


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


def test_a_link_that_was_never_taken_is_told_and_counted(contract: Any) -> None:
    excused = Unreached.of(contract).links
    links = declared_links(contract)
    link = next(
        link for link in links if link.name not in excused and not link.name.startswith("DELETE")
    )
    reach = whole(contract)
    reach.links[link.name] = Counter([404, 409])
    assert [f"The link {link.name} was never taken to a success: {{404: 1, 409: 1}}."] == list(
        findings(contract, reach)
    )
    assert f"{len(links) - 1} of {len(links)} declared links" in table(contract, reach)
