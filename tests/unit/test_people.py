"""Seeded people: coherent, valid, reproducible and quick to draw."""

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from stdnum.br import cnpj, cpf

from stub_server.contract.source import ContractError
from stub_server.domain.customers import as_buyer
from stub_server.domain.places import warnings_for
from stub_server.drawing.catalogue import Catalogue, load_catalogue, plain_ascii
from stub_server.drawing.people import ALPHANUMERIC_SINCE_MS, People, seeded_faker
from stub_server.kernel.record import Body
from stub_server.scenarios.files import Files, ScenarioError

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
FOLDER = FIXTURES / "catalogue"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(Files(FIXTURES))


@pytest.fixture(scope="module")
def persons(catalogue: Catalogue) -> list[Body]:
    return list(People(catalogue, seeded_faker(42)).crowd(random.Random(7), 20_000, ALPHANUMERIC_SINCE_MS))


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


def test_every_field_of_a_person_comes_from_one_place(catalogue: Catalogue, persons: list[Body]) -> None:
    places = {(place["city"], place["state"], place["bairro"]): place for place in catalogue.geography["rows"]}
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
            assert person["document"][8] == str(catalogue.geography["states"][place["state"]]["cpf_region"])


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


def test_names_read_as_brazilian_names(catalogue: Catalogue, persons: list[Body]) -> None:
    suffixes = set(catalogue.names["suffixes"])
    women = set(catalogue.names["female"])
    barred = set(catalogue.names["not_from_faker"])
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
            assert words[0] not in women - set(catalogue.names["male"])


def test_shares_follow_the_population(persons: list[Body]) -> None:
    count = len(persons)
    companies = [person for person in persons if person["type"] == "company"]
    assert 0.03 < len(companies) / count < 0.05
    assert all(person["document"][8:12] == "0001" for person in companies)
    assert 5 < sum(not person["document"].isdigit() for person in companies) < 0.15 * len(companies)
    states = Counter(person["address"]["state"] for person in persons if person["address"])
    assert len(states) == 27
    assert states["SP"] == max(states.values())


def test_two_thirds_of_customers_live_in_capitals(catalogue: Catalogue) -> None:
    capitals = {
        "AC Rio Branco", "AL Maceió", "AM Manaus", "AP Macapá", "BA Salvador", "CE Fortaleza", "DF Brasília",
        "ES Vitória", "GO Goiânia", "MA São Luís", "MG Belo Horizonte", "MS Campo Grande", "MT Cuiabá", "PA Belém",
        "PB João Pessoa", "PE Recife", "PI Teresina", "PR Curitiba", "RJ Rio de Janeiro", "RN Natal",
        "RO Porto Velho", "RR Boa Vista", "RS Porto Alegre", "SC Florianópolis", "SE Aracaju", "SP São Paulo",
        "TO Palmas",
    }  # fmt: skip
    weights: Counter[str] = Counter()
    for place in catalogue.geography["rows"]:
        weights[f"{place['state']} {place['city']}"] += place["weight"]
    assert capitals <= weights.keys()
    assert 0.6 < sum(weights[name] for name in capitals) / weights.total() < 0.7


def test_faker_supplies_the_long_tail(catalogue: Catalogue, persons: list[Body]) -> None:
    table = {*catalogue.names["female"], *catalogue.names["male"]}
    firsts = {name.split()[0] for name in table}
    tail = [p for p in persons if p["type"] == "individual" and p["name"].split()[0] not in firsts]
    assert 0.01 < len(tail) / len(persons) < 0.08


def test_one_postal_code_is_one_street(catalogue: Catalogue) -> None:
    streets = [cep for place in catalogue.geography["rows"] for cep in place["streets"].values()]
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
def test_no_alphanumeric_cnpj_before_they_were_issued(catalogue: Catalogue) -> None:
    people, rng = People(catalogue, seeded_faker(1)), random.Random(1)
    before = [people.person(rng, ALPHANUMERIC_SINCE_MS - 1) for _ in range(10_000)]
    assert all(person["document"].isdigit() for person in before)


@pytest.mark.check
def test_one_seed_gives_one_crowd_whatever_the_hash_seed() -> None:
    code = (
        "import random, sys, hashlib\n"
        "from pathlib import Path\n"
        "from stub_server.drawing.catalogue import load_catalogue\n"
        "from stub_server.drawing.people import People, seeded_faker\n"
        "from stub_server.scenarios.files import Files\n"
        "people = People(load_catalogue(Files(Path(sys.argv[1]))), seeded_faker(5))\n"
        "print(hashlib.sha256(repr(list(people.crowd(random.Random(5), 2000, 0))).encode()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, str(FIXTURES)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    }
    assert len(digests) == 1


def test_other_seeds_give_other_people(catalogue: Catalogue) -> None:
    people = People(catalogue, seeded_faker(5))
    assert people.person(random.Random(1), 0) != people.person(random.Random(2), 0)
    assert people.person(random.Random(1), 0) == people.person(random.Random(1), 0)


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
    particles = {particle for _, particle, _ in read("names.yaml", "Names")["surnames"].values()}
    assert particles <= {"", "da", "das", "de", "do", "dos"}
    prices = read("prices.yaml", "PriceTable")
    assert prices["ladder"] == sorted(set(prices["ladder"]))
    assert {float(price) for price in (*prices["monthly"], *prices["lifetime"])} <= set(prices["ladder"])
    niches = read("niches.yaml", "Niches")["niches"]
    amounts = [price for niche in niches for price in (niche["monthly_up_to"], *(b["price"] for b in niche["bumps"]))]
    assert [] == [amount for amount in (*amounts, *prices["ladder"]) if round(amount, 2) != amount]
    for member in ("name", "slug"):
        named = [project[member] for niche in niches for project in niche["projects"]]
        assert len(named) == len(set(named))
    assert read("banks.yaml", "Banks")


def test_a_wrong_table_is_named_with_its_key(tmp_path: Path) -> None:
    files = Files(FIXTURES)
    files.folder = tmp_path
    with pytest.raises(ContractError, match=r"geography\.yaml: no such file"):
        load_catalogue(files)
    shutil.copytree(FOLDER, tmp_path / "catalogue")
    path = tmp_path / "catalogue" / "geography.yaml"
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    del data["rows"][3]["weight"]
    path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"^geography\.yaml: rows\[3\]: \"weight\" is a required property"):
        load_catalogue(files)
