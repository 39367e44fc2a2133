"""Names that differ in letters and are the same to whoever reads them: refused as duplicates, never
a defect.
"""

import httpx2
import pytest

from ..support.estate import Estate
from ..support.make import Maker, created
from .steps import refused

ALIKE = [
    ("Straße", "STRASSE"),
    ("ﬁtness", "FITNESS"),
    ("Ωmega", "ωMEGA"),
    ("naſcer", "NASCER"),
    ("Clube", "cLUBE"),
]
OTHERS = [("São Paulo", "Sao Paulo"), ("İlha", "Ilha")]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_names_that_read_alike_are_one_name(
    api: httpx2.Client, make_project: Maker, first: str, second: str
) -> None:
    """Of projects, and of plans of one project: made under it, and renamed to it."""
    created(api.post("/v2/projects", json={"name": first}))
    refused(api.post("/v2/projects", json={"name": second}), 409, "duplicate_name")
    other = make_project()["id"]
    refused(api.put(f"/v2/projects/{other}", json={"name": second}), 409, "duplicate_name")
    plan = {"projectId": other, "amount": 10}
    made = created(api.post("/v2/plans", json=plan | {"name": first}))["plan"]
    refused(api.post("/v2/plans", json=plan | {"name": second}), 409, "duplicate_name")
    assert 200 == api.put(f"/v2/plans/{made['id']}", json={"name": second}).status_code, (
        "its own name, written anew"
    )


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_names_that_differ_by_more_than_case_are_two(shop: Estate, first: str, second: str) -> None:
    for name in (first, second):
        created(shop.api.post("/v2/projects", json={"name": name}))
