"""Lists and figures that a screen asks for every day: the dearest orders, customers by name, a period, a search."""

from typing import Any

import pytest

from ..support.make import Json, fresh_cpf, make_customer, make_order, make_plan
from .stage import DAY, Stage
from .steps import done


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


def test_parts_that_are_given_back_count_once(stage: Stage) -> None:
    """Of the only order of a project: its sums are nothing in between."""
    plan = make_plan(stage.api)
    order = ordered(stage, plan, 100.0)
    stage.drive("orders", order["id"], "pay")
    for amount in (10.0, 15.0):
        stage.drive("orders", order["id"], "refund", amount=amount)
    project = done(stage.api.get(f"/v2/projects/{plan['projectId']}"))["data"]["project"]
    assert 75.0 == project["total_revenue"]
