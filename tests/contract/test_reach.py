"""What a run of `make contract` need not see is documented."""

from typing import Any

import yaml

from ..support.contract import document
from .reach import UNREACHED, declared_links, operations

ENTRIES = ("openapi.yaml", "sandbox.yaml")


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
