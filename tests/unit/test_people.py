"""Seeded people: coherent, valid, reproducible and quick to draw."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faker import Faker
from faker.providers.person.pt_BR import Provider as FakersPeople
from stdnum.br import cnpj, cpf

from stub_server.data import MembershipProvider
from stub_server.data.files import Files
from stub_server.data.provider import new_faker
from stub_server.data.tables import plain_ascii, table
from stub_server.domain.customers import as_buyer
from stub_server.domain.places import warnings_for
from stub_server.kernel.record import Body

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
FOLDER = FIXTURES / "catalogue"


@pytest.fixture(scope="module")
def persons() -> list[Body]:
    faker = Faker("pt_BR")
    faker.add_provider(MembershipProvider)
    faker.seed_instance(7)
    found: list[Body] = list(faker.crowd(20_000, set()))
    return found


@pytest.mark.check
def test_documents_are_valid_by_an_independent_library(persons: list[Body]) -> None:
    for person in persons:
        checker = cpf if person["document_type"] == "cpf" else cnpj
        assert checker.is_valid(person["document"]), person
        assert {"individual": "cpf", "company": "cnpj"}[person["type"]] == person["document_type"]


def test_cpf_digits_repeat_as_in_real_ones(persons: list[Body]) -> None:
    """Nine digits drawn without replacement would never repeat; drawn with it, nearly all have a repeat."""
    repeats = [len(set(p["document"][:9])) < 9 for p in persons if p["type"] == "individual"]
    assert sum(repeats) > 0.95 * len(repeats)


def test_every_field_of_a_person_comes_from_one_place(persons: list[Body]) -> None:
    places = {(place["city"], place["state"], place["bairro"]): place for place in table("geography")["rows"]}
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
            assert person["document"][8] == str(table("geography")["states"][place["state"]]["cpf_region"])


def test_places_agree_with_the_rules_that_warn_about_contacts(persons: list[Body]) -> None:
    for person in persons[:3_000]:
        assert warnings_for(person["phones"], person["address"]) == ()


def test_phones_are_mobiles_and_landlines_in_both_shapes(persons: list[Body]) -> None:
    for person in persons:
        for name, phone in person["phones"].items():
            number = phone["number"]
            mobile = len(number) == 9 and number[0] == "9" and number[1] in "6789"
            landline = len(number) == 8 and number[0] == "3"
            assert mobile if name == "mobile_phone" else landline
            assert as_buyer(person)["phones"][name] == f"+55{phone['area_code']}{number}"


def test_not_everybody_fills_in_the_whole_form(persons: list[Body]) -> None:
    def share(what: Callable[[Body], bool]) -> float:
        return sum(map(what, persons)) / len(persons)

    assert 0.05 < share(lambda person: not person["address"]) < 0.12
    assert 0.01 < share(lambda person: not person["phones"]) < 0.06
    assert 0.08 < share(lambda person: "home_phone" in person["phones"]) < 0.2
    assert 0.1 < share(lambda person: bool(person["address"]) and "line_2" not in person["address"]) < 0.4


def test_mail_goes_to_reserved_domains_and_belongs_to_the_name(persons: list[Body]) -> None:
    for person in persons:
        local, _, domain = person["email"].partition("@")
        assert domain in {"example.com", "example.org", "example.net"}
        assert local.isascii()
        assert local == local.lower()
        assert " " not in local
        if person["type"] == "individual":
            assert local[0] == plain_ascii(person["name"])[0]


def test_a_crowd_shares_neither_documents_nor_mail(persons: list[Body]) -> None:
    assert len({person["document"] for person in persons}) == len(persons)
    assert len({person["email"] for person in persons}) == len(persons)


def test_names_read_as_brazilian_names(persons: list[Body]) -> None:
    suffixes = set(table("names")["suffixes"])
    women = set(table("names")["female"])
    barred = set(table("names")["not_from_faker"])
    for person in persons:
        if person["type"] == "company":
            continue
        words = person["name"].split()
        assert words[-1] not in {"da", "das", "de", "do", "dos"}
        assert barred.isdisjoint((words[0], " ".join(words[:2])))
        assert words[0][0].isupper()
        surnames = [word for word in words[1:] if word[0].isupper()]
        assert len(set(surnames)) == len(surnames), person["name"]
        if suffixes & {words[-1]}:
            assert words[0] not in women - set(table("names")["male"])


def test_shares_follow_the_population(persons: list[Body]) -> None:
    count = len(persons)
    companies = [person for person in persons if person["type"] == "company"]
    assert 0.03 < len(companies) / count < 0.05
    assert all(person["document"][8:12] == "0001" for person in companies)
    assert 5 < sum(not person["document"].isdigit() for person in companies) < 0.15 * len(companies)
    states = Counter(person["address"]["state"] for person in persons if person["address"])
    assert len(states) == 27
    assert states["SP"] == max(states.values())


def test_two_thirds_of_customers_live_in_capitals() -> None:
    capitals = {
        "AC Rio Branco", "AL Maceió", "AM Manaus", "AP Macapá", "BA Salvador", "CE Fortaleza", "DF Brasília",
        "ES Vitória", "GO Goiânia", "MA São Luís", "MG Belo Horizonte", "MS Campo Grande", "MT Cuiabá", "PA Belém",
        "PB João Pessoa", "PE Recife", "PI Teresina", "PR Curitiba", "RJ Rio de Janeiro", "RN Natal",
        "RO Porto Velho", "RR Boa Vista", "RS Porto Alegre", "SC Florianópolis", "SE Aracaju", "SP São Paulo",
        "TO Palmas",
    }  # fmt: skip
    weights: Counter[str] = Counter()
    for place in table("geography")["rows"]:
        weights[f"{place['state']} {place['city']}"] += place["weight"]
    assert capitals <= weights.keys()
    assert 0.6 < sum(weights[name] for name in capitals) / weights.total() < 0.7


def test_most_people_have_a_name_that_faker_drew(persons: list[Body]) -> None:
    """Nearly half of the given names, beside those that our table has too, and all the middle ones."""
    pool = {*FakersPeople.first_names_female, *FakersPeople.first_names_male} - set(table("names")["not_from_faker"])
    last = set(FakersPeople.last_names)
    names = [person["name"].split() for person in persons if person["type"] == "individual"]
    given = [name for name in names if name[0] in pool or " ".join(name[:2]) in pool]
    older = [name for name in names if name[0] not in {first.split()[0] for first in pool}]
    assert 0.45 < len(given) / len(names) < 0.85
    assert len(older) > 0.2 * len(names), "not all are children"
    middle = [name[1:-1] for name in names if len(name) == 3 and name[1] in last]
    assert len(middle) > 0.3 * len(names)


def test_one_postal_code_is_one_street() -> None:
    streets = [cep for place in table("geography")["rows"] for cep in place["streets"].values()]
    assert len(set(streets)) == len(streets)


def test_companies_are_what_brazilian_companies_are(persons: list[Body]) -> None:
    """Seven in ten are one person with a MEI, registered under the root of the CNPJ and the owner's name."""
    companies = [person for person in persons if person["type"] == "company"]
    forms = Counter(_form(person) for person in companies)
    for form, share in {"MEI": 0.7, "Ltda.": 0.28, "S.A.": 0.02}.items():
        assert forms[form] / len(companies) == pytest.approx(share, abs=0.04), form


def test_companies_have_names_of_their_own(persons: list[Body]) -> None:
    firms = Counter(person["name"] for person in persons if person["type"] == "company")
    assert max(firms.values()) <= 3
    assert any("Irmãos " in name for name in firms)
    assert any(" & Filhos " in name for name in firms)


def test_a_company_is_no_older_than_its_form(persons: list[Body]) -> None:
    """Receita Federal counts: the roots of the years in which there is a MEI begin with 11 to 64."""
    roots = {int(person["document"][:2]) for person in persons if person["type"] == "company"}
    assert {min(roots), max(roots)} == {11, 64}


def test_no_house_number_is_everywhere(persons: list[Body]) -> None:
    numbers = Counter(person["address"]["line_1"].partition(",")[0] for person in persons if person["address"])
    assert max(count for number, count in numbers.items() if number.isdigit()) < 0.01 * numbers.total()


def _form(person: Body) -> str:
    root = person["document"][:8]
    if person["name"].startswith(f"{root[:2]}.{root[2:5]}.{root[5:]} "):
        return "MEI"
    return str(person["name"].rpartition(" ")[2])


def test_most_mail_addresses_have_no_digits(persons: list[Body]) -> None:
    assert sum(any(map(str.isdigit, person["email"])) for person in persons) < len(persons) / 3


@pytest.mark.check
def test_no_alphanumeric_cnpj_before_they_were_issued() -> None:
    faker: Any = new_faker(1)
    assert all(faker.company(letters=False)["document"].isdigit() for _ in range(2_000))
    assert not all(faker.company()["document"].isdigit() for _ in range(2_000))


@pytest.mark.check
def test_one_seed_gives_one_crowd_whatever_the_hash_seed() -> None:
    code = (
        "import hashlib\n"
        "from stub_server.data.provider import new_faker\n"
        "faker = new_faker(5)\n"
        "drawn = [*faker.crowd(2000, set()), faker.project(), faker.plan(), faker.address_of('Recife')]\n"
        "print(hashlib.sha256(repr(drawn).encode()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    }
    assert len(digests) == 1


def test_other_seeds_give_other_people() -> None:
    assert new_faker(1).buyer() != new_faker(2).buyer()
    assert new_faker(1).buyer() == new_faker(1).buyer()


def test_an_address_is_in_the_city_that_was_asked_for() -> None:
    faker = new_faker(1)
    assert {faker.address_of("Campinas")["city"] for _ in range(20)} == {"Campinas"}
    with pytest.raises(ValueError, match=r"no city 'Springfield' in the table; known are .*Campinas"):
        faker.address_of("Springfield")


def test_our_tables_agree_with_each_other() -> None:
    def read(name: str, schema: str) -> Any:
        return Files(FIXTURES).read(FOLDER / name, schema).value

    geography = read("geography.yaml", "Geography")
    for row in geography["rows"]:
        state = geography["states"][row["state"]]
        assert row["ddd"] in state["ddd"]
        for cep in row["streets"].values():
            assert cep.startswith(row["cep"])
            assert any(low <= cep[:5] <= high for low, high in state["cep"]), cep
    names = read("names.yaml", "Names")
    assert names["particles"].keys() <= names["surnames"].keys()
    particles = {particle for particle, _ in names["particles"].values()}
    assert particles <= {"da", "das", "de", "do", "dos"}
    prices = read("prices.yaml", "PriceTable")["monthly"]
    niches = read("niches.yaml", "Niches")["niches"]
    amounts = [price for niche in niches for price in (niche["monthly_up_to"], *(b["price"] for b in niche["bumps"]))]
    assert [] == [amount for amount in amounts if round(amount, 2) != amount]
    assert min(niche["monthly_up_to"] for niche in niches) >= max(float(price) for price in [*prices][:5])
    for member in ("name", "slug"):
        named = [project[member] for niche in niches for project in niche["projects"]]
        assert len(named) == len(set(named))
    assert read("banks.yaml", "Banks")
    assert read("habits.yaml", "Habits")
    assert read("stories.yaml", "Stories")
