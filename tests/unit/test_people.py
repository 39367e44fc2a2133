"""Seeded people: coherent, valid, reproducible and quick to draw."""

from pathlib import Path
from typing import Any

import pytest
from faker import Faker
from stdnum.br import cnpj, cpf

from stub_server.core.record import Body
from stub_server.data import MembershipProvider
from stub_server.data.scenario import read_node
from stub_server.data.tables import plain_ascii, table
from stub_server.domain.places import warnings_for

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
FOLDER = FIXTURES / "catalogue"


@pytest.fixture(scope="module")
def persons() -> list[Body]:
    faker = Faker("pt_BR")
    faker.add_provider(MembershipProvider)
    faker.seed_instance(7)
    known = set[str]()
    return [faker.stranger(known) for _ in range(20_000)]


@pytest.mark.check
def test_documents_are_valid_by_an_independent_library(persons: list[Body]) -> None:
    for person in persons:
        checker = cpf if person["document_type"] == "cpf" else cnpj
        assert checker.is_valid(person["document"]), person
        assert {"individual": "cpf", "company": "cnpj"}[person["type"]] == person["document_type"]


def test_every_field_of_a_person_comes_from_one_place(persons: list[Body]) -> None:
    places = {
        (place["city"], place["state"], place["bairro"]): place
        for place in table("geography")["rows"]
    }
    for person in persons:
        address = person["address"]
        if not address:
            continue
        number, street, bairro = address["line_1"].split(", ")
        place = places[address["city"], address["state"], bairro]
        cep = place["streets"][street]
        is_superquadra = "numbering" in place
        block = "ABCDEFGHIJK".index(number[-1]) if is_superquadra else 0
        assert address["zip_code"] == str(int(cep) + 10 * block).zfill(8)
        assert number.startswith("Bloco ") == is_superquadra
        assert {phone["area_code"] for phone in person["phones"].values()} <= {place["ddd"]}
        if person["type"] == "individual":
            assert person["document"][8] == str(
                table("geography")["states"][place["state"]]["cpf_region"]
            )


def test_places_agree_with_the_rules_that_warn_about_contacts(persons: list[Body]) -> None:
    for person in persons[:3_000]:
        assert warnings_for(person["phones"], person["address"]) == ()


def test_mail_goes_to_reserved_domains_and_belongs_to_the_name(persons: list[Body]) -> None:
    for person in persons:
        local, _, domain = person["email"].partition("@")
        assert domain in {"example.com", "example.org", "example.net"}
        assert local.isascii()
        assert local == local.lower()
        assert " " not in local
        if person["type"] == "individual":
            assert local[0] == plain_ascii(person["name"])[0]


def test_our_tables_agree_with_each_other() -> None:
    def read(name: str, schema: str) -> Any:
        return read_node(FOLDER / name, schema).value

    geography = read("geography.yaml", "Geography")
    for row in geography["rows"]:
        state = geography["states"][row["state"]]
        assert row["ddd"] in state["ddd"]
        for cep in row["streets"].values():
            assert cep.startswith(row["cep"])
            assert any(low <= cep[:5] <= high for low, high in state["cep"]), cep
    names = read("names.yaml", "Names")
    assert names["particles"].keys() <= names["surnames"].keys()
    prices = [float(price) for price in read("prices.yaml", "PriceTable")["monthly"]]
    niches = read("niches.yaml", "Niches")["niches"]
    assert min(niche["monthly_up_to"] for niche in niches) >= max(prices[:5])
    for member in ("name", "slug"):
        named = [project[member] for niche in niches for project in niche["projects"]]
        assert len(named) == len(set(named))
    for name in ("banks", "habits", "stories"):
        assert read(f"{name}.yaml", name.title())
