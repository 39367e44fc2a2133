"""Seeded projects: distinct, complete, and priced as Brazilian shops price."""

import random
from pathlib import Path

import pytest

from stub_server.drawing.blueprints import (
    Blueprint,
    Blueprints,
    lifetime_price,
    points,
    printed,
    shop_price,
)
from stub_server.drawing.catalogue import Catalogue, load_catalogue
from stub_server.drawing.people import seeded_faker
from stub_server.scenarios.files import Files

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(Files(FIXTURES))


def niche_of(blueprint: Blueprint) -> str:
    return str(blueprint.fields["metadata"]["niche"])


def drawn(catalogue: Catalogue, seed: int) -> list[Blueprint]:
    return list(Blueprints(catalogue, seeded_faker(9)).draw(random.Random(seed), 200))


@pytest.fixture(scope="module")
def blueprints(catalogue: Catalogue) -> list[Blueprint]:
    return drawn(catalogue, 9)


def test_two_hundred_projects_have_as_many_names_and_slugs(blueprints: list[Blueprint]) -> None:
    assert len({blueprint.fields["name"].lower() for blueprint in blueprints}) == 200
    assert len({blueprint.slug for blueprint in blueprints}) == 200


def test_the_first_eight_projects_show_eight_niches(blueprints: list[Blueprint]) -> None:
    assert len({niche_of(blueprint) for blueprint in blueprints[:8]}) == 8


def test_texts_keep_the_limits_of_a_project(blueprints: list[Blueprint]) -> None:
    for blueprint in blueprints:
        fields = blueprint.fields
        assert 3 <= len(fields["name"]) <= 120
        assert len(fields["description"]) <= 500 < 20_000 >= len(fields["long_description"])
        assert fields["website_url"] == f"https://www.example.com/{blueprint.slug}"
        assert blueprint.slug.isascii()
        for key in ("logo_url", "cover_image"):
            assert fields[key].startswith("https://assets.example.com/")


def test_settings_and_metadata_are_maps_of_strings(blueprints: list[Blueprint]) -> None:
    maps = ("business_settings", "marketing_settings", "content_settings", "notification_settings", "metadata")
    for blueprint in blueprints:
        for key in maps:
            assert blueprint.fields[key]
            assert all(isinstance(value, str) for value in blueprint.fields[key].values())


def test_a_project_has_two_to_four_plans_dearer_with_length(catalogue: Catalogue, blueprints: list[Blueprint]) -> None:
    dearest = {niche["key"]: niche["monthly_up_to"] for niche in catalogue.niches["niches"]}
    for blueprint in blueprints:
        amounts = [plan["amount"] for plan, _ in blueprint.plans]
        assert 2 <= len(amounts) <= 4
        assert amounts == sorted(set(amounts))
        assert 19.90 <= amounts[0] <= dearest[niche_of(blueprint)]
        assert len({plan["name"] for plan, _ in blueprint.plans}) == len(amounts)


def test_one_time_plans_alone_have_no_interval(blueprints: list[Blueprint]) -> None:
    seen = set()
    for blueprint in blueprints:
        for plan, _ in blueprint.plans:
            seen.add(plan["name"])
            once = plan["billing_type"] == "one_time"
            assert once == (plan["name"] == "Vitalício")
            assert once == (plan["interval"] is None) == (plan["interval_count"] is None)
            assert not (once and plan["trial_period_days"])
    assert seen == {"Mensal", "Trimestral", "Anual", "Vitalício"}


def test_some_projects_offer_a_trial_of_one_or_two_weeks(blueprints: list[Blueprint]) -> None:
    trials = [plan["trial_period_days"] for blueprint in blueprints for plan, _ in blueprint.plans]
    assert {0, 7, 14} == set(trials)
    assert 30 < sum(days > 0 for days in trials) < 100


def test_a_trial_lengthens_the_first_month_and_the_plan_says_so(blueprints: list[Blueprint]) -> None:
    for plan in (plan for blueprint in blueprints for plan, _ in blueprint.plans):
        if days := plan["trial_period_days"]:
            assert (plan["interval"], plan["interval_count"]) == ("month", 1)
        assert ("dias" in plan["description"]) == (days > 0)
        assert not days or f"{days} dias a mais no primeiro mês" in plan["description"]


def test_longer_plans_cost_what_their_multiple_says(catalogue: Catalogue) -> None:
    prices = catalogue.prices
    for monthly, _ in points(prices, "monthly"):
        assert shop_price(prices, monthly * prices["multiples"]["quarterly"]) == pytest.approx(2.7 * monthly, rel=0.05)
        assert shop_price(prices, monthly * prices["multiples"]["yearly"]) == pytest.approx(10 * monthly, rel=0.05)
        for seed in range(20):
            assert 10 * monthly < lifetime_price(random.Random(seed), prices, monthly) <= 30 * monthly


@pytest.mark.parametrize(
    ("wanted", "price"), [(49_900, 49_700), (13_473, 13_490), (97_000, 99_700), (199_00, 197_00), (127_000, 124_700)]
)
def test_prices_end_as_in_shops(catalogue: Catalogue, wanted: int, price: int) -> None:
    assert shop_price(catalogue.prices, wanted) == price


def test_prices_are_printed_with_comma_and_point() -> None:
    assert printed(123_456) == "R$ 1.234,56"
    assert printed(4_990) == "R$ 49,90"


def test_no_two_products_have_one_sku(blueprints: list[Blueprint]) -> None:
    skus = [product["sku"] for blueprint in blueprints for product, unlocking in blueprint.products]
    assert len(set(skus)) == len(skus)


def test_products_name_plans_of_their_project(blueprints: list[Blueprint]) -> None:
    for blueprint in blueprints:
        names = {plan["name"] for plan, _ in blueprint.plans}
        assert len(blueprint.products) >= 3
        for _, unlocking in blueprint.products:
            assert unlocking
            assert set(unlocking) <= names


def test_no_plan_promises_a_mentor_whom_it_does_not_unlock(blueprints: list[Blueprint]) -> None:
    mentored = 0
    for blueprint in blueprints:
        for product, unlocking in blueprint.products:
            text = f"{product['name']}. {product['description']}".casefold()
            for plan, _ in blueprint.plans:
                promised = [feature for feature in plan["features"] if feature.casefold() in text]
                mentored += bool(promised)
                assert plan["name"] in unlocking or not promised, (blueprint.slug, plan["name"], promised)
    assert mentored


def test_bumps_have_a_price(blueprints: list[Blueprint]) -> None:
    assert all(0 < price < 100 for blueprint in blueprints for _, price in blueprint.bumps)
    assert all(blueprint.bumps for blueprint in blueprints)


def test_slogans_come_from_faker_without_the_barred_words(catalogue: Catalogue, blueprints: list[Blueprint]) -> None:
    slogans = {blueprint.fields["marketing_settings"]["slogan"] for blueprint in blueprints}
    assert len(slogans) > 20
    assert not [text for text in slogans if any(words in text for words in catalogue.niches["not_in_slogans"])]


def test_one_seed_gives_the_same_projects(catalogue: Catalogue, blueprints: list[Blueprint]) -> None:
    again = drawn(catalogue, 9)
    assert again == blueprints
    assert drawn(catalogue, 10) != blueprints
