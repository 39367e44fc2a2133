"""People: coherent Brazilian customers, every field of one customer from one place of the catalogue.

A People is built once (Faker fills its pools) and then draws tens of thousands of persons a second. It uses only
`random()` of the generator it is given, so that one state gives the same person on every machine.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from faker import Faker

from ..domain.documents import cnpj_with_check_digits
from .catalogue import Catalogue, Place
from .cpf import CpfMaker
from .draw import Weighted, pick
from .pools import PARTICLES, Family, name_pools, plain_ascii

COMPANIES = 0.04
WOMEN = 0.54
ALPHANUMERIC = 0.06  # of the companies; Receita Federal has issued alphanumeric CNPJs since July 2026
ALPHANUMERIC_SINCE_MS = 1_782_874_800_000  # 2026-07-01T00:00:00-03:00
CNPJ_ALPHABET = "0123456789ABCDEGHJKLMNPRSTVWXYZ"  # without F, I, O, Q, U, which some programs reject
# RFC 2606: no mail to a seeded address may reach a real person.
DOMAINS = ("example.com",) * 6 + ("example.org",) * 2 + ("example.net",) * 2
DEPARTMENTS = ("contato", "financeiro", "compras", "adm")
# Shares of customers who leave a part of the form empty.
WITHOUT_ADDRESS, WITHOUT_PHONE = 0.08, 0.03
LANDLINES, OF_COMPANIES = 0.12, 0.7
HOUSES_WITHOUT_COMPLEMENT = 0.6
WITH_DIGITS = 0.2  # of e-mail addresses; those that somebody else has already get digits too


@dataclass(frozen=True, slots=True)
class Person:
    """One customer. `phones` and `address` have the shapes of the Customer resource."""

    type: str
    name: str
    email: str
    document: str
    document_type: str
    phones: dict[str, dict[str, str]]
    address: dict[str, str]

    @property
    def flat_phones(self) -> dict[str, str]:
        """The phones as an order's customer carries them: {"mobile_phone": "+5511987654321"}."""
        return {
            key: f"+{phone['country_code']}{phone['area_code']}{phone['number']}" for key, phone in self.phones.items()
        }

    def customer(self) -> dict[str, Any]:
        """The writable fields of a Customer."""
        return {
            "type": self.type,
            "name": self.name,
            "email": self.email,
            "document": self.document,
            "document_type": self.document_type,
            "phones": {key: dict(phone) for key, phone in self.phones.items()},
            "address": dict(self.address),
        }

    def order_customer(self) -> dict[str, Any]:
        """The OrderCustomer of an order that this person places."""
        return {
            "name": self.name,
            "email": self.email,
            "document": self.document,
            "document_type": self.document_type,
            "type": self.type,
            "phones": self.flat_phones,
            "address": dict(self.address),
        }


class People:
    """Draws persons. `faker` must have been seeded with `seed_instance`; it is used while building only."""

    def __init__(self, catalogue: Catalogue, faker: Faker) -> None:
        self._names = name_pools(catalogue.names, faker, (place.state for place in catalogue.places))
        self._places = Weighted((place, place.weight) for place in catalogue.places)
        self._cpf = CpfMaker()
        self._flats = _flats(18, blocks="ABCD")
        self._superquadra_flats = tuple(f"Apto {floor}0{unit}" for floor in range(1, 7) for unit in range(1, 9))
        self._houses = ("Casa",) * 7 + ("Casa 1", "Casa 2", "Casa 3", "Fundos", "Sobrado")

    def person(self, rng: random.Random, *, at_ms: int | None = None) -> Person:
        """One person, or with a chance of 4 % a company. `at_ms` (epoch) decides whether a CNPJ may have letters."""
        draw = rng.random
        places = self._places
        place = places.items[bisect(places.cumulative, draw() * places.total)]
        if draw() < COMPANIES:
            return self._company(rng, place, at_ms)
        name, local = self._called(rng, place)
        return Person(
            "individual",
            name,
            f"{local}@{DOMAINS[int(draw() * 10)]}",
            self._cpf.draw(rng, place.cpf_region),
            "cpf",
            _phones(rng, place.ddd, LANDLINES),
            self._address(rng, place) if draw() >= WITHOUT_ADDRESS else {},
        )

    def _called(self, rng: random.Random, place: Place) -> tuple[str, str]:
        """A full name, and the local part of an e-mail address that belongs to it."""
        draw, names = rng.random, self._names
        woman = draw() < WOMEN
        pool = names.female if woman else names.male
        given = pool.items[bisect(pool.cumulative, draw() * pool.total)]
        families = names.last[place.state]
        last = families.items[bisect(families.cumulative, draw() * families.total)]
        if last.plain == given.plain:
            last = families.draw(rng)
        name, middle = given.text, None
        if draw() < 0.72:
            middle = names.middle.items[bisect(names.middle.cumulative, draw() * names.middle.total)]
            if middle.base in (last.base, given.text):
                middle = None
            else:
                name = f"{name} {middle.text}"
        name = f"{name} {last.text}"
        if not woman:
            luck = draw()
            for suffix, share in names.suffixes:
                if luck < share:
                    name = f"{name} {suffix}"
                    break
                luck -= share
        return name, _local_part(rng, given.plain, middle, last)

    def crowd(self, rng: random.Random, count: int, *, at_ms: int | None = None) -> Iterator[Person]:
        """`count` persons with different documents and e-mail addresses."""
        documents: set[str] = set()
        emails: set[str] = set()
        while len(documents) < count:
            person = self.person(rng, at_ms=at_ms)
            if person.document in documents:
                continue
            local, _, domain = person.email.partition("@")
            if person.email in emails and person.type == "individual":
                # Whose address is taken writes the whole name, and only then a number.
                local = ".".join(plain_ascii(word) for word in person.name.split() if word not in PARTICLES)
                person = replace(person, email=f"{local}@{domain}")
            room = 10
            while person.email in emails:
                room *= 3
                person = replace(person, email=f"{local}{2 + int(rng.random() * room)}@{domain}")
            documents.add(person.document)
            emails.add(person.email)
            yield person

    def _company(self, rng: random.Random, place: Place, at_ms: int | None) -> Person:
        names, form = self._names, self._names.company_forms.draw(rng)
        document = _cnpj(rng, alphanumeric=at_ms is None or at_ms >= ALPHANUMERIC_SINCE_MS)
        owner = names.last[place.state].draw(rng).base
        if form == "MEI":
            full_name, local = self._called(rng, place)
            name = f"{document[:2]}.{document[2:5]}.{document[5:8]} {full_name}"
        else:
            partner, trade, shape = names.middle.draw(rng).base, pick(rng, names.activities), rng.random()
            brand = owner
            if shape < 0.2:
                brand = f"{owner} & Filhos" if shape < 0.13 else f"Irmãos {owner}"
            elif partner != owner and (shape < 0.45 or form == "S.A."):
                brand = f"{owner} & {partner}"
            if form == "S.A.":
                trade = "Participações"
            name = f"{brand} {trade} {form}"
            local = ".".join((pick(rng, DEPARTMENTS), plain_ascii(owner), plain_ascii(trade.split()[0])))
        home = form == "MEI"
        return Person(
            "company",
            name,
            f"{local}@{pick(rng, DOMAINS)}",
            document,
            "cnpj",
            _phones(rng, place.ddd, LANDLINES if home else OF_COMPANIES),
            self._address(rng, place, business=not home),
        )

    def _address(self, rng: random.Random, place: Place, *, business: bool = False) -> dict[str, str]:
        draw = rng.random
        streets = place.streets
        street = streets[int(draw() * len(streets))]
        luck = draw()
        number: str | int = 10 + int(street.span * luck * (0.3 + 0.7 * luck))
        cep = street.cep
        if place.superquadra:
            block = int(luck * 11)
            number, cep = f"Bloco {'ABCDEFGHIJK'[block]}", str(int(cep) + 10 * block)
            inside = self._superquadra_flats
        elif draw() < place.apartments:
            inside = self._flats
        else:
            inside = self._houses if draw() >= HOUSES_WITHOUT_COMPLEMENT else ()
        if business and not place.superquadra:
            inside = (f"{'Sala' if luck < 0.7 else 'Conjunto'} {11 + 10 * int(draw() * 15) + int(draw() * 4)}",)
        address = {"line_1": f"{number}, {street.name}, {place.bairro}"}
        if inside:
            address["line_2"] = inside[int(draw() * len(inside))]
        return address | {
            "zip_code": cep,
            "city": place.city,
            "state": place.state,
            "country": "BR",
        }


def _local_part(rng: random.Random, given: str, middle: Family | None, last: Family) -> str:
    draw = rng.random
    style = draw()
    if style < 0.45:
        local = f"{given}.{last.plain}"
    elif style < 0.65 and middle is not None:
        local = f"{given}.{middle.plain}.{last.plain}"
    elif style < 0.8:
        local = f"{given}{last.plain}"
    elif style < 0.9:
        local = f"{given[0]}{last.plain}"
    else:
        local = f"{given}_{last.plain}"
    luck = draw()
    if luck >= WITH_DIGITS:
        return local
    return f"{local}{1 + int(draw() * 99):02d}" if luck < 0.6 * WITH_DIGITS else f"{local}{1970 + int(draw() * 36)}"


def _phones(rng: random.Random, ddd: str, landlines: float) -> dict[str, dict[str, str]]:
    """A mobile number, for some people a landline too, and for a few no phone at all."""
    luck = rng.random()
    if luck < WITHOUT_PHONE:
        return {}
    number = f"9{60_000_000 + int(rng.random() * 40_000_000)}"
    phones = {"mobile_phone": {"country_code": "55", "area_code": ddd, "number": number}}
    if luck > 1 - landlines:
        number = str(30_000_000 + int(rng.random() * 10_000_000))
        phones["home_phone"] = {"country_code": "55", "area_code": ddd, "number": number}
    return phones


def _cnpj(rng: random.Random, *, alphanumeric: bool) -> str:
    """A company of the last twenty years: Receita Federal has counted from 11 to 65 million since."""
    alphabet = CNPJ_ALPHABET if rng.random() < ALPHANUMERIC and alphanumeric else CNPJ_ALPHABET[:10]
    root = "".join(pick(rng, alphabet) for _ in range(6))
    return cnpj_with_check_digits(f"{11 + int(rng.random() * 54)}{root}0001")


def is_alphanumeric(document: str) -> bool:
    """Whether a person's CPF or CNPJ has letters."""
    return not document.isdigit()


def _flats(floors: int, blocks: str) -> tuple[str, ...]:
    """Complements of flats: São Paulo writes "Apto 82", others "Apto 802"; one in five has a block."""
    plain = []
    for floor in range(1, floors + 1):
        for unit in range(1, 5):
            plain += [f"Apto {floor}{unit}", f"Apto {floor}0{unit}"]
    # 17 and the eight spellings of a floor's flats have no common divisor, so all spellings occur.
    in_blocks = [
        f"Bloco {block}, {plain[at]}" for turn, block in enumerate(blocks) for at in range(turn, len(plain), 17)
    ]
    return (*plain, *in_blocks)
