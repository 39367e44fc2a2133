"""Lists and figures that a screen asks for every day: the dearest orders, customers by name, a period, a search."""

from typing import Any

import pytest

from ..support.make import Json, fresh_cpf, make_customer, make_order, make_plan, make_project
from .stage import DAY, Stage
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
    "search",
    [
        "JOAO DA",
        "joão da sil",
        "Silva+ofertas@",
        "390.533.447",
        "53344705",
        "3.447-0",
        "(11) 98877-6655",
        "+55 11 9887",
        "988776655",
        "{code}",
    ],
)
def test_orders_are_searched_by_one_part_of_buyer_or_code(stage: Stage, search: str) -> None:
    """Name, e-mail, document, telephone or code, whatever case, accents and punctuation; with the filters beside it."""
    plan = make_plan(stage.api)
    sought = {"name": "João da Silva", "email": "silva+ofertas@example.com", "document": "39053344705"}
    order = make_order(stage.api, plan, customer=sought | {"phones": {"mobile_phone": "5511988776655"}})
    ordered(stage, plan, 49.9)
    search = search.format(code=order["code"].lower())
    assert [order["id"]] == [each["id"] for each in found(stage, "orders", search=search)]
    assert [] == found(stage, "orders", search=search, status="paid")


@pytest.mark.parametrize("search", ["joao silva", "silva 390", "silva.ofertas", "47058877", "da.silva"])
def test_a_search_is_one_contiguous_part(stage: Stage, search: str) -> None:
    """Words apart are not found, nor what begins in one member and ends in the next."""
    buyer = {"name": "João da Silva", "email": "silva+ofertas@example.com", "document": "39053344705"}
    make_order(stage.api, customer=buyer | {"phones": {"mobile_phone": "8877", "home_phone": "11"}})
    assert [] == found(stage, "orders", search=search)


def test_a_code_is_found_in_letters_of_either_case(stage: Stage) -> None:
    """As somebody types it from a letter."""
    order = make_order(stage.api)
    for code in (order["code"], order["code"].lower()):
        assert [order["id"]] == [each["id"] for each in found(stage, "orders", code=code)]


@pytest.mark.parametrize(
    ("sort", "expected"), [("name", ["Álvaro", "Ana", "bruno", "Caio"]), ("-name", ["Caio", "bruno", "Ana", "Álvaro"])]
)
def test_customers_sort_by_name_as_in_a_directory(stage: Stage, sort: str, expected: list[str]) -> None:
    """As in a directory: neither case nor accents count."""
    for name in ("bruno", "Caio", "Ana", "Álvaro"):
        make_customer(stage.api, name=name)
    assert expected == [customer["name"] for customer in found(stage, "customers", sort=sort)]


@pytest.mark.parametrize("sort", ["totalAmount", "-totalAmount", "createdAt", "-createdAt"])
@pytest.mark.parametrize("filters", [{}, {"status": "pending"}])
def test_every_page_of_a_list_is_sorted_as_the_first(stage: Stage, sort: str, filters: Json) -> None:
    """The pages of two, one after the other, are the list."""
    plan = make_plan(stage.api)
    amounts = [49.9, 100.0, 9.9, 30.0, 20.0]
    for amount in amounts:
        ordered(stage, plan, amount)
        stage.advance(1)
    pages = [found(stage, "orders", sort=sort, limit="2", page=str(page), **filters) for page in (1, 2, 3)]
    upwards = sorted(amounts) if "Amount" in sort else amounts
    assert (upwards[::-1] if sort.startswith("-") else upwards) == [
        order["totalAmount"] for page in pages for order in page
    ]


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


def test_money_counts_when_it_moves(stage: Stage) -> None:
    """A payment when it is paid, each refund when it is made: net may be negative. The order counts when it is made."""
    plan = make_plan(stage.api, billing_type="one_time")
    days = [stage.now()]
    order = ordered(stage, plan, 30.0)
    for verb, body in (("pay", {}), ("refund", {"amount": 10}), ("refund", {"amount": 5})):
        stage.advance(DAY / 2)
        days.append(stage.now())
        stage.drive("orders", order["id"], verb, **body)
    days.append(stage.after(1))

    def figures(start: int, end: int) -> tuple[Any, ...]:
        period = {"from": days[start], "to": days[end]}
        stats = done(stage.api.get(f"/v2/projects/{plan['projectId']}/stats", params=period))["data"]["stats"]
        money = stats["revenue"]
        assert [money["net"]] * len(stats["top_plans"]) == [plan["revenue"] for plan in stats["top_plans"]]
        return stats["orders"]["paid"], money["gross"], money["refunded"], money["net"], stats["conversion_rate"]

    assert (1, 0.0, 0.0, 0.0, 1.0) == figures(0, 1)
    assert (0, 30.0, 0.0, 30.0, None) == figures(1, 2)
    assert (0, 0.0, 10.0, -10.0, None) == figures(2, 3)
    assert (0, 0.0, 5.0, -5.0, None) == figures(3, 4)
    assert (1, 30.0, 15.0, 15.0, 1.0) == figures(0, 4)


def test_an_archived_project_has_no_monthly_revenue(stage: Stage) -> None:
    """Its subscriptions end with the period that is paid; the revenue there was stays."""
    project = stage.subscription()["projectId"]

    def figures() -> tuple[float, float, int]:
        stats = done(stage.api.get(f"/v2/projects/{project}/stats"))["data"]["stats"]
        return stats["mrr"], stats["revenue"]["net"], stats["subscribers"]["active"]

    assert (49.9, 49.9, 1) == figures()
    done(stage.api.post(f"/v2/projects/{project}/archive"))
    assert (0.0, 49.9, 1) == figures()
    assert 49.9 == stage.get_project(project)["total_revenue"]


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
