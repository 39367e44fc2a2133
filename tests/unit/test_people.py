"""Seeded people: coherent, valid, reproducible and quick to draw."""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from stdnum.br import cnpj, cpf

from stub_server.domain.places import warnings_for
from stub_server.drawing.catalogue import Catalogue, load_catalogue
from stub_server.drawing.cpf import CpfMaker
from stub_server.drawing.people import ALPHANUMERIC_SINCE_MS, People, Person
from stub_server.drawing.pools import plain_ascii, seeded_faker
from stub_server.scenarios.files import Files, ScenarioError

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
FOLDER = FIXTURES / "catalogue"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(FOLDER, Files(FIXTURES))


@pytest.fixture(scope="module")
def persons(catalogue: Catalogue) -> list[Person]:
    return list(People(catalogue, seeded_faker(42)).crowd(random.Random(7), 20_000))


@pytest.mark.check
def test_documents_are_valid_by_an_independent_library(persons: list[Person]) -> None:
    for person in persons:
        checker = cpf if person.document_type == "cpf" else cnpj
        assert checker.is_valid(person.document), person
        assert {"individual": "cpf", "company": "cnpj"}[person.type] == person.document_type


def test_every_region_and_many_roots_give_valid_cpfs() -> None:
    maker, rng = CpfMaker(), random.Random(3)
    for region in range(10):
        for _ in range(1_000):
            drawn = maker.draw(rng, region)
            assert cpf.is_valid(drawn)
            assert drawn[8] == str(region)


def test_cpf_digits_repeat_as_in_real_ones(persons: list[Person]) -> None:
    """Nine digits drawn without replacement would never repeat; drawn with it, nearly all have a repeat."""
    repeats = [len(set(p.document[:9])) < 9 for p in persons if p.type == "individual"]
    assert sum(repeats) > 0.95 * len(repeats)


def test_eleven_equal_digits_are_drawn_again() -> None:
    class Ones(random.Random):
        draws = 0

        def random(self) -> float:
            self.draws += 1
            return 0.11111 if self.draws <= 2 else 0.5

    assert CpfMaker().draw(Ones(), 1).startswith("50005000")


def test_every_field_of_a_person_comes_from_one_place(catalogue: Catalogue, persons: list[Person]) -> None:
    places = {(place.city, place.state, place.bairro): place for place in catalogue.places}
    for person in persons:
        address = person.address
        if not address:
            continue
        number, street, bairro = address["line_1"].split(", ")
        place = places[address["city"], address["state"], bairro]
        (cep,) = (row.cep for row in place.streets if row.name == street)
        block = "ABCDEFGHIJK".index(number[-1]) if place.superquadra else 0
        assert address["zip_code"] == str(int(cep) + 10 * block).zfill(8)
        assert number.startswith("Bloco ") == place.superquadra
        assert {phone["area_code"] for phone in person.phones.values()} <= {place.ddd}
        if person.type == "individual":
            assert person.document[8] == str(place.cpf_region)


def test_places_agree_with_the_rules_that_warn_about_contacts(persons: list[Person]) -> None:
    for person in persons[:3_000]:
        assert warnings_for(person.phones, person.address) == ()


def test_phones_are_mobiles_and_landlines_in_both_shapes(persons: list[Person]) -> None:
    for person in persons:
        for name, phone in person.phones.items():
            number = phone["number"]
            mobile = len(number) == 9 and number[0] == "9" and number[1] in "6789"
            landline = len(number) == 8 and number[0] == "3"
            assert mobile if name == "mobile_phone" else landline
            assert person.flat_phones[name] == f"+55{phone['area_code']}{number}"
        assert person.order_customer()["phones"] == person.flat_phones


def test_not_everybody_fills_in_the_whole_form(persons: list[Person]) -> None:
    def share(what: Callable[[Person], bool]) -> float:
        return sum(map(what, persons)) / len(persons)

    assert 0.05 < share(lambda person: not person.address) < 0.12
    assert 0.01 < share(lambda person: not person.phones) < 0.06
    assert 0.08 < share(lambda person: "home_phone" in person.phones) < 0.2
    assert 0.1 < share(lambda person: bool(person.address) and "line_2" not in person.address) < 0.4


def test_mail_goes_to_reserved_domains_and_belongs_to_the_name(persons: list[Person]) -> None:
    for person in persons:
        local, _, domain = person.email.partition("@")
        assert domain in {"example.com", "example.org", "example.net"}
        assert local.isascii()
        assert local == local.lower()
        assert " " not in local
        if person.type == "individual":
            assert local[0] == plain_ascii(person.name)[0]


def test_a_crowd_shares_neither_documents_nor_mail(persons: list[Person]) -> None:
    assert len({person.document for person in persons}) == len(persons)
    assert len({person.email for person in persons}) == len(persons)


def test_names_read_as_brazilian_names(catalogue: Catalogue, persons: list[Person]) -> None:
    suffixes = {name for name, _ in catalogue.names.suffixes}
    women = {name for name, _ in catalogue.names.female}
    barred = set(catalogue.names.not_from_faker)
    for person in persons:
        if person.type == "company":
            continue
        words = person.name.split()
        assert words[-1] not in {"da", "das", "de", "do", "dos"}
        assert barred.isdisjoint((words[0], " ".join(words[:2])))
        assert words[0][0].isupper()
        surnames = [word for word in words[1:] if word[0].isupper()]
        assert len(set(surnames)) == len(surnames), person.name
        if suffixes & {words[-1]}:
            assert words[0] not in women - {name for name, _ in catalogue.names.male}


def test_shares_follow_the_population(persons: list[Person]) -> None:
    count = len(persons)
    companies = [person for person in persons if person.type == "company"]
    assert 0.03 < len(companies) / count < 0.05
    assert all(person.document[8:12] == "0001" for person in companies)
    assert 5 < sum(not person.document.isdigit() for person in companies) < 0.15 * len(companies)
    states = Counter(person.address["state"] for person in persons if person.address)
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
    assert capitals <= {f"{place.state} {place.city}" for place in catalogue.places}
    weight = sum(place.weight for place in catalogue.places if f"{place.state} {place.city}" in capitals)
    assert 0.6 < weight / sum(place.weight for place in catalogue.places) < 0.7


def test_faker_supplies_the_long_tail(catalogue: Catalogue, persons: list[Person]) -> None:
    table = {name for name, _ in (*catalogue.names.female, *catalogue.names.male)}
    firsts = {name.split()[0] for name in table}
    tail = [p for p in persons if p.type == "individual" and p.name.split()[0] not in firsts]
    assert 0.01 < len(tail) / len(persons) < 0.08


def test_one_postal_code_is_one_street(catalogue: Catalogue) -> None:
    streets = [street.cep for place in catalogue.places for street in place.streets]
    assert len(set(streets)) == len(streets)


def test_companies_are_what_brazilian_companies_are(persons: list[Person]) -> None:
    """Seven in ten are one person with a MEI, registered under the root of the CNPJ and the owner's name."""
    companies = [person for person in persons if person.type == "company"]
    forms = Counter(_form(person) for person in companies)
    for form, share in {"MEI": 0.7, "Ltda.": 0.28, "S.A.": 0.02}.items():
        assert forms[form] / len(companies) == pytest.approx(share, abs=0.04), form


def test_companies_have_names_of_their_own(persons: list[Person]) -> None:
    firms = Counter(person.name for person in persons if person.type == "company")
    assert max(firms.values()) <= 3
    assert any("Irmãos " in name for name in firms)
    assert any(" & Filhos " in name for name in firms)


def test_a_company_is_no_older_than_its_form(persons: list[Person]) -> None:
    """Receita Federal counts: the roots of the years in which there is a MEI begin with 11 to 64."""
    roots = {int(person.document[:2]) for person in persons if person.type == "company"}
    assert {min(roots), max(roots)} == {11, 64}


def test_no_house_number_is_everywhere(persons: list[Person]) -> None:
    numbers = Counter(person.address["line_1"].partition(",")[0] for person in persons if person.address)
    assert max(count for number, count in numbers.items() if number.isdigit()) < 0.01 * numbers.total()


def _form(person: Person) -> str:
    root = person.document[:8]
    if person.name.startswith(f"{root[:2]}.{root[2:5]}.{root[5:]} "):
        return "MEI"
    return person.name.rpartition(" ")[2]


def test_most_mail_addresses_have_no_digits(persons: list[Person]) -> None:
    assert sum(any(map(str.isdigit, person.email)) for person in persons) < len(persons) / 3


@pytest.mark.check
def test_no_alphanumeric_cnpj_before_they_were_issued(catalogue: Catalogue) -> None:
    people, rng = People(catalogue, seeded_faker(1)), random.Random(1)
    before = [people.person(rng, at_ms=ALPHANUMERIC_SINCE_MS - 1) for _ in range(10_000)]
    assert all(person.document.isdigit() for person in before)


@pytest.mark.check
def test_one_seed_gives_one_crowd_whatever_the_hash_seed() -> None:
    code = (
        "import random, sys, hashlib\n"
        "from pathlib import Path\n"
        "from stub_server.drawing.catalogue import load_catalogue\n"
        "from stub_server.scenarios.files import Files\n"
        "from stub_server.drawing.people import People\n"
        "from stub_server.drawing.pools import seeded_faker\n"
        "fixtures = Path(sys.argv[1])\n"
        "people = People(load_catalogue(fixtures / 'catalogue', Files(fixtures)), seeded_faker(5))\n"
        "print(hashlib.sha256(repr(list(people.crowd(random.Random(5), 2000))).encode()).hexdigest())\n"
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
    assert people.person(random.Random(1)) != people.person(random.Random(2))
    assert people.person(random.Random(1)) == people.person(random.Random(1))


@pytest.mark.check
@pytest.mark.parametrize(
    ("table", "change", "complaint"),
    [
        ("geography", lambda t: t["rows"][0].update(ddd="21"), "geography.yaml: rows[0].ddd: 21 is not an area code"),
        ("geography", lambda t: t["rows"][0]["streets"].update(X="9" * 8), "geography.yaml: rows[0].streets: X: CEP"),
        ("geography", lambda t: t["rows"][3].pop("weight"), "geography.yaml: rows[3]: lacks 'weight'"),
        ("names", lambda t: t["surnames"].update(Silva=[1, "von", 1]), "names.yaml: surnames.Silva[1]: 'von'"),
        ("niches", lambda t: t["niches"][0]["bumps"][0].update(price=1.999), "niches.yaml: niches[0].bumps[0].price"),
        ("prices", lambda t: t["monthly"].update({"12.34": 1}), "prices.yaml: monthly.12.34: is not a step"),
        ("banks", lambda t: t["banks"][0].update(ispb=18236120), "banks.yaml: banks[0].ispb: must be a text"),
    ],
)
def test_a_wrong_table_is_named_with_its_key(
    tmp_path: Path, table: str, change: Callable[[Any], object], complaint: str
) -> None:
    for path in FOLDER.glob("*.yaml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    data = yaml.safe_load((FOLDER / f"{table}.yaml").read_text(encoding="utf-8"))
    change(data)
    (tmp_path / f"{table}.yaml").write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load_catalogue(tmp_path, Files(FIXTURES))
    assert str(caught.value).startswith(complaint)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"niches\.yaml: cannot be read"):
        load_catalogue(tmp_path, Files(FIXTURES))
