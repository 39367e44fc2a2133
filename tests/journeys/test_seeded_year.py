"""The past of a seeded sandbox as its lists show it: who came when, from where, and how they paid."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import count

import httpx2
import pytest

from stub_server.kernel.clock import DAY, parse_iso
from stub_server.settings import Settings

from ..support.live import NOW, Live, running
from ..support.make import Json
from ..support.worlds import FIXTURES
from .hooks import clients
from .steps import done

pytestmark = pytest.mark.check


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A fifth of `busy`."""
    path = tmp_path_factory.mktemp("scenarios") / "busy.yaml"
    text = (FIXTURES / "scenarios" / "busy.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("scale: 1\n", "scale: 0.2\n"), encoding="utf-8")
    with running(Settings(scenario=str(path), now=parse_iso(NOW))) as opened:
        yield opened


@pytest.fixture(scope="module")
def api(live: Live) -> Iterator[httpx2.Client]:
    """Its API."""
    with clients(live) as (opened, _):
        yield opened


@pytest.fixture(scope="module")
def customers(api: httpx2.Client) -> list[Json]:
    """All of them, oldest first."""
    return _all(api, "customers")


@pytest.fixture(scope="module")
def orders(api: httpx2.Client) -> list[Json]:
    """All of them, oldest first."""
    return _all(api, "orders")


def _all(api: httpx2.Client, name: str) -> list[Json]:
    found: list[Json] = []
    for page in count(1):
        held = done(api.get(f"/v2/{name}", params={"limit": "100", "page": str(page), "sort": "createdAt"}))[name]
        found += held
        if len(held) < 100:
            return found
    raise AssertionError("pages end")


def test_one_postal_code_is_one_street(customers: list[Json]) -> None:
    streets: dict[str, set[str]] = defaultdict(set)
    for customer in customers:
        address = customer["address"]
        if address and address["country"] == "BR" and address["zip_code"]:
            place, street, bairro = address["line_1"].split(", ")
            block = place if place.startswith("Bloco") else ""
            streets[address["zip_code"]].add(f"{block} {street}, {bairro}, {address['city']}".strip())
    assert len(streets) > 100
    assert {cep: names for cep, names in streets.items() if len(names) > 1} == {}
    assert len({name for names in streets.values() for name in names}) == len(streets), "nor has a street two"


def test_companies_are_mostly_of_one_person(customers: list[Json]) -> None:
    """In real shares: seven in ten are a MEI, named by the root of the CNPJ and the owner; hardly any is an S.A."""
    companies = [customer for customer in customers if customer["type"] == "company"]
    forms = {"MEI": 0, "Ltda.": 0, "S.A.": 0}
    for company in companies:
        root = company["document"][:8]
        alone = company["name"].startswith(f"{root[:2]}.{root[2:5]}.{root[5:]} ")
        forms["MEI" if alone else company["name"].rpartition(" ")[2]] += 1
    assert 0.58 < forms["MEI"] / len(companies) < 0.82
    assert forms["S.A."] < 0.08 * len(companies)


def test_most_mail_addresses_have_no_digits(customers: list[Json]) -> None:
    assert sum(any(map(str.isdigit, customer["email"])) for customer in customers) < len(customers) / 3


def test_customers_come_as_sales_do(customers: list[Json]) -> None:
    """Over the whole year, and not at its end to make up a number."""
    ages = [(parse_iso(NOW) - parse_iso(customer["createdAt"])) // DAY for customer in customers]
    months = [sum(age // 30 == month for age in ages) for month in range(12)]
    assert max(months) < 2 * min(months), months
    for days in (1, 3, 7):  # those who wait for their payment are of the last day
        assert sum(age < days for age in ages) < 2 * len(ages) * days / 365 + 12, days


def test_a_few_have_never_bought(customers: list[Json], orders: list[Json]) -> None:
    bought = {order["customer"]["document"] for order in orders}
    assert 0.02 < sum(customer["document"] not in bought for customer in customers) / len(customers) < 0.12


@pytest.mark.parametrize("seed", [42, 7])
def test_nobody_is_entered_at_the_end_to_make_up_a_number(seed: int) -> None:
    """Of the 220 customers of `default` those of the last day wait for their payment, or are personas."""
    with running(Settings(seed=seed, now=parse_iso(NOW))) as live, clients(live) as (api, _):
        customers = _all(api, "customers")
        bought = {order["customer"]["document"] for order in _all(api, "orders")}
    ages = [(parse_iso(NOW) - parse_iso(customer["createdAt"])) // DAY for customer in customers]
    assert ages.count(0) < 10
    assert sum(customer["document"] not in bought for customer in customers) < 0.17 * len(customers)


@pytest.fixture(scope="module")
def sales(live: Live, orders: list[Json]) -> tuple[list[Json], dict[str, list[Json]]]:
    """The first orders, and the renewal orders of each subscription: no list shows which is which."""
    hidden = {row.id: row.hidden for row in live.app.sandboxes.default.store.orders.all_rows()}
    first = [order for order in orders if not hidden[order["id"]]["renewal"]]
    renewals: dict[str, list[Json]] = defaultdict(list)
    for order in orders:
        if hidden[order["id"]]["renewal"]:
            renewals[hidden[order["id"]]["subscriptionId"]].append(order)
    return first, renewals


Sold = tuple[list[Json], dict[str, list[Json]]]


def test_first_orders_are_paid_as_brazilians_pay(sales: Sold) -> None:
    first, _ = sales
    methods = Counter(order["paymentMethod"] for order in first)
    for method, share in {"pix": 0.52, "credit_card": 0.38, "boleto": 0.10}.items():
        assert methods[method] / len(first) == pytest.approx(share, abs=0.025), method


def test_most_cards_are_accepted_and_most_others_tried_again(sales: Sold) -> None:
    first, _ = sales
    cards = [order for order in first if order["paymentMethod"] == "credit_card"]
    declined = [order for order in cards if order["status"] == "failed"]
    assert 1 - len(declined) / len(cards) == pytest.approx(0.88, abs=0.02)
    assert {order["status"] for order in cards} <= {"paid", "refunded", "failed"}
    times: dict[tuple[str, str], list[str]] = defaultdict(list)
    for order in first:
        times[order["customer"]["document"], order["items"][0]["description"]].append(order["createdAt"])
    again = [order for order in declined if _next_try(times, order) is not None]
    assert 0.5 < len(again) / len(declined) < 0.9


def _next_try(times: dict[tuple[str, str], list[str]], order: Json) -> str | None:
    held = times[order["customer"]["document"], order["items"][0]["description"]]
    return next((at for at in held if 0 < parse_iso(at) - parse_iso(order["createdAt"]) < DAY), None)


def test_renewals_are_mostly_by_card_and_few_cards_are_declined(sales: Sold) -> None:
    _, renewals = sales
    bills = [order for held in renewals.values() for order in held]
    assert 0.52 < sum(order["paymentMethod"] == "credit_card" for order in bills) / len(bills) < 0.68
    first, declined, recovered = 0, 0, 0
    for held in renewals.values():
        was_declined = False
        for order in held:
            if order["paymentMethod"] != "credit_card":
                continue
            failed = order["status"] == "failed"
            if not was_declined:
                first += 1
                declined += failed
            elif not failed:
                recovered += 1
            was_declined = failed
    assert declined / first == pytest.approx(0.04, abs=0.01)
    assert 0.55 < recovered / declined < 0.9
