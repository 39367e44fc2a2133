"""The list of products over HTTP: filters, sort orders, and what a plan unlocks."""

import httpx2
import pytest

from ..support.make import Maker
from .steps import UNKNOWN, make_product, names


@pytest.fixture
def project_id(make_project: Maker) -> str:
    """An active project."""
    ident: str = make_project()["id"]
    return ident


class TestListing:
    """listProducts."""

    @pytest.fixture
    def plans(self, api: httpx2.Client, project_id: str, make_plan: Maker) -> tuple[str, str]:
        """Two plans that unlock three products in part."""
        first, second = make_plan(project_id)["id"], make_plan(project_id)["id"]
        make_product(api, project_id, name="Aulas", type="course", planIds=[first, second])
        make_product(api, project_id, name="bônus", type="ebook", status="draft", planIds=[second])
        make_product(api, project_id, name="Comunidade", type="community", description="Só para sócios")
        return first, second

    def test_a_plan_finds_what_it_unlocks(
        self, api: httpx2.Client, project_id: str, plans: tuple[str, str], make_project: Maker
    ) -> None:
        """With or without its project, in letters of either case, together with other filters."""
        first, second = plans
        assert names(api, "products", planId=first) == ["Aulas"]
        assert names(api, "products", planId=second.upper(), sort="name") == ["Aulas", "bônus"]
        assert names(api, "products", planId=second, status="draft") == ["bônus"]
        assert names(api, "products", planId=second, search="aula") == ["Aulas"]
        assert names(api, "products", planId=second, projectId=project_id.upper(), type="ebook") == ["bônus"]
        assert names(api, "products", planId=second, projectId=make_project()["id"]) == []
        assert names(api, "products", planId=UNKNOWN) == []

    def test_a_deleted_plan_unlocks_nothing(self, api: httpx2.Client, plans: tuple[str, str]) -> None:
        """Its id is out of every product."""
        first, second = plans
        assert api.delete(f"/v2/plans/{first}").status_code == 200
        assert names(api, "products", planId=first) == []
        assert names(api, "products", planId=second, sort="name") == ["Aulas", "bônus"]
