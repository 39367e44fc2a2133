"""Seeded projects: distinct, complete, and priced as Brazilian shops price."""

import pytest

from stub_server.data.catalogue import Membership, printed
from stub_server.data.provider import new_faker
from stub_server.data.tables import table


def niche_of(membership: Membership) -> str:
    return str(membership.project["metadata"]["niche"])


def drawn(seed: int) -> list[Membership]:
    """The whole catalogue."""
    faker = new_faker(seed)
    return [faker.membership(slug) for slug in faker.slugs()]


@pytest.fixture(scope="module")
def memberships() -> list[Membership]:
    return [membership for seed in range(9, 15) for membership in drawn(seed)]


def test_the_projects_have_names_and_slugs_of_their_own() -> None:
    assert len({membership.project["name"].lower() for membership in drawn(9)}) == 32
    assert len({membership.slug for membership in drawn(9)}) == 32


def test_the_first_eight_projects_show_eight_niches(memberships: list[Membership]) -> None:
    assert len({niche_of(membership) for membership in memberships[:8]}) == 8


def test_texts_keep_the_limits_of_a_project(memberships: list[Membership]) -> None:
    for membership in memberships:
        fields = membership.project
        assert 3 <= len(fields["name"]) <= 120
        assert len(fields["description"]) <= 500 < 20_000 >= len(fields["long_description"])
        assert fields["website_url"] == f"https://www.example.com/{membership.slug}"
        assert membership.slug.isascii()
        for key in ("logo_url", "cover_image"):
            assert fields[key].startswith("https://assets.example.com/")


def test_settings_and_metadata_are_maps_of_strings(memberships: list[Membership]) -> None:
    maps = ("business_settings", "marketing_settings", "content_settings", "notification_settings", "metadata")
    for membership in memberships:
        for key in maps:
            assert membership.project[key]
            assert all(isinstance(value, str) for value in membership.project[key].values())


def test_a_project_has_two_to_four_plans_dearer_with_length(memberships: list[Membership]) -> None:
    dearest = {niche["key"]: niche["monthly_up_to"] for niche in table("niches")["niches"]}
    for membership in memberships:
        amounts = [plan["amount"] for plan in membership.plans]
        assert 2 <= len(amounts) <= 4
        assert amounts == sorted(set(amounts))
        assert 19.90 <= amounts[0] <= dearest[niche_of(membership)]
        assert len({plan["name"] for plan in membership.plans}) == len(amounts)


def test_one_time_plans_alone_have_no_interval(memberships: list[Membership]) -> None:
    seen = set()
    for membership in memberships:
        for plan in membership.plans:
            seen.add(plan["name"])
            once = plan["billing_type"] == "one_time"
            assert once == (plan["name"] == "Vitalício")
            assert once == (plan["interval"] is None) == (plan["interval_count"] is None)
            assert not (once and plan["trial_period_days"])
    assert seen == {"Mensal", "Trimestral", "Anual", "Vitalício"}


def test_some_projects_offer_a_trial_of_one_or_two_weeks(memberships: list[Membership]) -> None:
    trials = [plan["trial_period_days"] for membership in memberships for plan in membership.plans]
    assert {0, 7, 14} == set(trials)
    assert 25 < sum(days > 0 for days in trials) < 100


def test_a_trial_lengthens_the_first_month_and_the_plan_says_so(memberships: list[Membership]) -> None:
    for plan in (plan for membership in memberships for plan in membership.plans):
        if days := plan["trial_period_days"]:
            assert (plan["interval"], plan["interval_count"]) == ("month", 1)
        assert ("dias" in plan["description"]) == (days > 0)
        assert not days or f"{days} dias a mais no primeiro mês" in plan["description"]


def test_longer_plans_cost_so_many_months() -> None:
    for price, row in table("prices")["monthly"].items():
        monthly = float(price)
        assert row["quarterly"] == pytest.approx(2.7 * monthly, rel=0.05)
        assert row["yearly"] == pytest.approx(10 * monthly, rel=0.05)
        assert all(10 * monthly < float(amount) <= 30 * monthly for amount in row["lifetime"])


def test_prices_end_as_in_shops() -> None:
    rows = table("prices")["monthly"]
    amounts = [float(price) for price in rows]
    amounts += [amount for row in rows.values() for amount in (row["quarterly"], row["yearly"])]
    amounts += [float(amount) for row in rows.values() for amount in row["lifetime"]]
    assert {f"{amount:.2f}"[-4:] for amount in amounts} <= {"4.90", "7.00", "9.90"}


def test_a_price_is_one_of_the_table_and_not_above_what_was_asked_for() -> None:
    faker = new_faker(9)
    assert {f"{faker.price():.2f}" for _ in range(500)} == set(table("prices")["monthly"])
    assert max(faker.price(49.90) for _ in range(200)) == 49.90


def test_a_plan_is_one_of_a_project() -> None:
    faker = new_faker(9)
    assert {faker.plan()["name"] for _ in range(100)} == {"Mensal", "Trimestral", "Anual", "Vitalício"}


def test_prices_are_printed_with_comma_and_point() -> None:
    assert printed(1234.56) == "R$ 1.234,56"
    assert printed(49.90) == "R$ 49,90"


def test_no_two_products_have_one_sku() -> None:
    skus = [product["sku"] for membership in drawn(9) for product in membership.products]
    assert len(set(skus)) == len(skus) >= 3 * 32


def test_bumps_have_a_price(memberships: list[Membership]) -> None:
    assert all(0 < price < 100 for membership in memberships for _, price in membership.bumps)
    assert all(membership.bumps for membership in memberships)


def test_slogans_come_from_faker_without_the_barred_words(memberships: list[Membership]) -> None:
    slogans = {membership.project["marketing_settings"]["slogan"] for membership in memberships}
    assert len(slogans) > 20
    assert not [text for text in slogans if any(words in text for words in table("niches")["not_in_slogans"])]


def test_one_seed_gives_the_same_projects(memberships: list[Membership]) -> None:
    assert drawn(9) == memberships[:32] != drawn(10)
