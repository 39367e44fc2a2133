"""What a run of `make contract` need not see is documented."""

import yaml

from ..support.contract import document
from .reach import UNREACHED, operations

ENTRIES = ("openapi.yaml", "sandbox.yaml")


def test_every_entry_is_of_a_status_that_a_contract_has() -> None:
    entries = yaml.safe_load(UNREACHED.read_text())
    documented = set()
    for entry in ENTRIES:
        for _, operation in operations(document(entry).raw):
            documented |= {
                (operation["operationId"], status) for status in (*operation["responses"], "every")
            }
    listed = [(name, entry["status"]) for entry in entries for name in entry["operations"]]
    assert [] == [pair for pair in listed if pair not in documented]
    assert len(listed) == len(set(listed))
