"""Lists and figures that a screen asks for every day: the dearest orders, customers by name, a period, a search."""

from typing import Any

import pytest

from ..support.make import Json, fresh_cpf, make_customer, make_order, make_plan, make_project
from .stage import Stage
from .steps import done, make_product


def found(stage: Stage, what: str, **query: str) -> list[Json]:
    """A page of a list."""
    body = done(stage.api.get(f"/v2/{what}", params=query))
    rows: list[Json] = body.get("data", body)[what]
    return rows


def buyer() -> Json:
    """Somebody who has bought nothing yet."""
    document = fresh_cpf()
    return {"name": "Marina Duarte", "email": f"m.{document}@example.com", "document": document}


def ordered(stage: Stage, plan: Json, amount: float) -> Json:
    """A new order of an amount."""
    items = [{"description": "Plano", "quantity": 1, "amount": amount}]
    return make_order(stage.api, plan, totalAmount=amount, items=items, customer=buyer())


@pytest.mark.parametrize(
    ("sort", "expected"), [("totalAmount", [9.9, 49.9, 100.0]), ("-totalAmount", [100.0, 49.9, 9.9])]
)
def test_orders_sort_by_amount(stage: Stage, sort: str, expected: list[float]) -> None:
    """Upwards, and downwards with a minus; 100 is more than 49.9, though its first digit is less."""
    plan = make_plan(stage.api)
    for amount in (49.9, 100.0, 9.9):
        ordered(stage, plan, amount)
    assert expected == [
        order["totalAmount"] for order in found(stage, "orders", projectId=plan["projectId"], sort=sort)
    ]


@pytest.mark.parametrize(
    ("sort", "expected"), [("name", ["Álvaro", "Ana", "bruno", "Caio"]), ("-name", ["Caio", "bruno", "Ana", "Álvaro"])]
)
def test_customers_sort_by_name_as_in_a_directory(stage: Stage, sort: str, expected: list[str]) -> None:
    """As in a directory: neither case nor accents count."""
    for name in ("bruno", "Caio", "Ana", "Álvaro"):
        make_customer(stage.api, name=name)
    assert expected == [customer["name"] for customer in found(stage, "customers", sort=sort)]


def test_products_are_those_created_in_the_period(stage: Stage) -> None:
    """From its start, included, to its end, excluded."""
    project = stage.project()["id"]
    made = []
    for name in ("Primeiro", "Segundo", "Terceiro"):
        made.append(make_product(stage.api, project, name=name))
        stage.advance(60)
    first, second, third = (product["createdAt"] for product in made)

    def names(**query: str) -> list[str]:
        return [product["name"] for product in found(stage, "products", projectId=project, **query)]

    assert ["Segundo", "Primeiro"] == names(created_until=third)
    assert ["Primeiro"] == names(created_until=second)
    assert [] == names(created_until=first)
    assert ["Segundo"] == names(created_since=second, created_until=third)
    assert ["Terceiro"] == names(created_since=third)


def test_a_search_finds_projects_by_name_and_description(stage: Stage) -> None:
    """In name or description, whatever case and accents; nothing for text that is in neither."""
    for name, description in (("Clube do Violão", "Aulas"), ("Pão em casa", "Fermento e VIOLÃO"), ("Inglês", None)):
        make_project(stage.api, name=name, description=description)

    def names(text: str) -> list[str]:
        return [project["name"] for project in found(stage, "projects", search=text, sort="name")]

    assert ["Clube do Violão", "Pão em casa"] == names("violao")
    assert ["Pão em casa"] == names("PAO")
    assert ["Inglês"] == names("glês")
    assert [] == names("teclado")


def test_statistics_count_the_orders_of_the_period(stage: Stage) -> None:
    """Orders and revenue from its start, included, to its end, excluded."""
    plan = make_plan(stage.api, billing_type="one_time")
    placed = []
    for amount in (10.0, 20.0, 40.0):
        placed.append(ordered(stage, plan, amount))
        stage.drive("orders", placed[-1]["id"], "pay")
        stage.advance(60)
    first, second, third = (order["createdAt"] for order in placed)

    def figures(**period: str) -> tuple[int, float, Any, Any]:
        path = f"/v2/projects/{plan['projectId']}/stats"
        stats = done(stage.api.get(path, params=period))["data"]["stats"]
        return stats["orders"]["paid"], stats["revenue"]["net"], stats["from"], stats["to"]

    assert (3, 70.0, None, None) == figures()
    assert (2, 60.0, second, None) == figures(**{"from": second})
    assert (1, 40.0, third, None) == figures(**{"from": third})
    assert (1, 10.0, None, second) == figures(to=second)
    assert (2, 30.0, first, third) == figures(**{"from": first, "to": third})
    assert (0, 0.0, second, second) == figures(**{"from": second, "to": second})
