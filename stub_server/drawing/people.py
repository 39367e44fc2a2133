"""People: coherent Brazilian customers, every field of one customer from one place of the catalogue.

A People is built once (Faker adds given names to its pools) and then draws persons. It uses only `random()` of the
generator it is given, so that one state gives the same person on every machine.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from faker import Faker

from ..domain.documents import cnpj_with_check_digits, cpf_with_check_digits
from ..kernel.record import Body
from .catalogue import Catalogue, plain_ascii
from .draw import Weighted, pick

COMPANIES = 0.04
WOMEN = 0.54
WITH_MIDDLE_NAME = 0.72
ALPHANUMERIC = 0.06  # of the companies; Receita Federal has issued alphanumeric CNPJs since July 2026
ALPHANUMERIC_SINCE_MS = 1_782_874_800_000  # 2026-07-01T00:00:00-03:00
CNPJ_ALPHABET = "0123456789ABCDEGHJKLMNPRSTVWXYZ"  # without F, I, O, Q, U, which some programs reject
# RFC 2606: no mail to a seeded address may reach a real person.
DOMAINS = ("example.com",) * 6 + ("example.org",) * 2 + ("example.net",) * 2
DEPARTMENTS = ("contato", "financeiro", "compras", "adm")
# Shares of customers who leave a part of the form empty.
WITHOUT_ADDRESS, WITHOUT_PHONE = 0.08, 0.03
LANDLINES, LANDLINES_OF_COMPANIES = 0.12, 0.7
HIGHEST_NUMBERS = {"Avenida": 1_990, "Praça": 190}  # of houses, roughly, by the first word of the street's name
HIGHEST_NUMBER = 890
HOUSES_WITHOUT_COMPLEMENT = 0.6
HOUSES = ("Casa",) * 7 + ("Casa 1", "Casa 2", "Casa 3", "Fundos", "Sobrado")
SUPERQUADRA_FLATS = [f"Apto {floor}0{unit}" for floor in range(1, 7) for unit in range(1, 9)]
# São Paulo writes "Apto 82", others "Apto 802"; one in five has a block. 17 and the eight spellings of a floor's flats
# have no common divisor, so all spellings occur with each block.
FLATS = [f"Apto {floor}{zero}{unit}" for floor in range(1, 19) for unit in range(1, 5) for zero in ("", "0")]
FLATS += [f"Bloco {block}, {flat}" for turn, block in enumerate("ABCD") for flat in FLATS[turn::17]]
WITH_DIGITS = 0.2  # of e-mail addresses, besides those that get a number to differ from others
PARTICLES = ("da", "das", "de", "do", "dos", "e")
FROM_FAKER = 0.06  # share of people whose given name comes from Faker
DRAWS = 400  # of names from Faker


class Name(NamedTuple):
    """A given name or a surname: as written, without its particle, and as in e-mail addresses."""

    text: str
    base: str
    plain: str


def seeded_faker(seed: int) -> Faker:
    """A Faker of Brazilian Portuguese whose stream depends on nothing but the seed."""
    # Two of its 26 providers: loading all of them takes longer than drawing the pools.
    faker = Faker("pt_BR", providers=["faker.providers.company", "faker.providers.person"], use_weighting=True)
    faker.seed_instance(seed)
    return faker


class People:
    """Draws persons. `faker` must have been seeded with `seed_instance`; it is used while building only."""

    def __init__(self, catalogue: Catalogue, faker: Faker) -> None:
        names = catalogue.names
        self._female = _given_names(names, "female", faker.first_name_female)
        self._male = _given_names(names, "male", faker.first_name_male)
        surnames = _surnames(names)
        self._middle = Weighted(surnames)
        # By state, as last surnames reflect immigration.
        self._states: Body = catalogue.geography["states"]
        self._last = {state: _last_names(names, surnames, state) for state in self._states}
        suffixes: dict[str, float] = names["suffixes"]
        self._suffixes = Weighted([*suffixes.items(), ("", 1 - sum(suffixes.values()))])  # most have none
        self._company_forms: Weighted[str] = Weighted(names["company_forms"].items())
        self._activities: list[str] = names["activities"]
        self._places = Weighted((place, place["weight"]) for place in catalogue.geography["rows"])

    def crowd(self, rng: Random, count: int, at_ms: int) -> Iterator[Body]:
        """`count` persons with different documents and e-mail addresses."""
        documents: set[str] = set()
        emails: set[str] = set()
        while len(documents) < count:
            person = self.person(rng, at_ms)
            if person["document"] in documents:
                continue
            local, _, domain = person["email"].partition("@")
            if person["email"] in emails and person["type"] == "individual":
                # Somebody whose address is in use takes the whole name, and a number only if that is in use too.
                local = ".".join(plain_ascii(word) for word in person["name"].split() if word not in PARTICLES)
            email, room = f"{local}@{domain}", 10
            while email in emails:
                room *= 3
                email = f"{local}{2 + int(rng.random() * room)}@{domain}"
            documents.add(person["document"])
            emails.add(email)
            yield person | {"email": email}

    def person(self, rng: Random, at_ms: int) -> Body:
        """One person, or with a chance of 4 % a company: the writable fields of a Customer.

        `at_ms` (epoch) decides whether a CNPJ may have letters.
        """
        place = self._places.draw(rng)
        if rng.random() < COMPANIES:
            return self._company(rng, place, at_ms)
        name, local = self._name_and_mailbox(rng, place)
        return {
            "type": "individual",
            "name": name,
            "email": f"{local}@{pick(rng, DOMAINS)}",
            "document": _cpf(rng, self._states[place["state"]]["cpf_region"]),
            "document_type": "cpf",
            "phones": _phones(rng, place["ddd"], LANDLINES),
            "address": self._address(rng, place) if rng.random() >= WITHOUT_ADDRESS else {},
        }

    def _name_and_mailbox(self, rng: Random, place: Body) -> tuple[str, str]:
        """A full name, and the local part of an e-mail address that belongs to it."""
        is_woman = rng.random() < WOMEN
        given, surnames = (self._female if is_woman else self._male).draw(rng), self._last[place["state"]]
        last = surnames.draw(rng)
        if last.plain == given.plain:
            last = surnames.draw(rng)
        middle = self._middle.draw(rng) if rng.random() < WITH_MIDDLE_NAME else None
        if middle is not None and middle.base in (last.base, given.text):
            middle = None
        name = " ".join(part.text for part in (given, middle, last) if part is not None)
        if not is_woman:
            suffix = self._suffixes.draw(rng)
            name = f"{name} {suffix}" if suffix else name
        return name, _mailbox(rng, given.plain, middle, last)

    def _company(self, rng: Random, place: Body, at_ms: int) -> Body:
        form = self._company_forms.draw(rng)
        document = _cnpj(rng, at_ms)
        owner = self._last[place["state"]].draw(rng).base
        is_home, is_holding = form == "MEI", form == "S.A."
        if is_home:
            full_name, local = self._name_and_mailbox(rng, place)
            name = f"{document[:2]}.{document[2:5]}.{document[5:8]} {full_name}"
        else:
            partner, trade, shape = self._middle.draw(rng).base, pick(rng, self._activities), rng.random()
            brand = owner
            if shape < 0.2:
                brand = f"{owner} & Filhos" if shape < 0.13 else f"Irmãos {owner}"
            elif partner != owner and (shape < 0.45 or is_holding):
                brand = f"{owner} & {partner}"
            trade = "Participações" if is_holding else trade
            name = f"{brand} {trade} {form}"
            local = ".".join((pick(rng, DEPARTMENTS), plain_ascii(owner), plain_ascii(trade.split()[0])))
        return {
            "type": "company",
            "name": name,
            "email": f"{local}@{pick(rng, DOMAINS)}",
            "document": document,
            "document_type": "cnpj",
            "phones": _phones(rng, place["ddd"], LANDLINES if is_home else LANDLINES_OF_COMPANIES),
            "address": self._address(rng, place, is_office=not is_home),
        }

    def _address(self, rng: Random, place: Body, *, is_office: bool = False) -> dict[str, str]:
        street, cep = pick(rng, [*place["streets"].items()])
        luck = rng.random()
        highest = HIGHEST_NUMBERS.get(street.partition(" ")[0], HIGHEST_NUMBER)
        number = str(10 + int(highest * luck * (0.3 + 0.7 * luck)))
        complements: Sequence[str] = ()
        is_superquadra = "numbering" in place
        if is_superquadra:
            block = int(luck * 11)
            number, cep, complements = f"Bloco {'ABCDEFGHIJK'[block]}", str(int(cep) + 10 * block), SUPERQUADRA_FLATS
        elif rng.random() < place.get("apartments", 1.0):
            complements = FLATS
        elif rng.random() >= HOUSES_WITHOUT_COMPLEMENT:
            complements = HOUSES
        if is_office and not is_superquadra:
            room = 11 + 10 * int(rng.random() * 15) + int(rng.random() * 4)
            complements = [f"{'Sala' if luck < 0.7 else 'Conjunto'} {room}"]
        more = {"line_2": pick(rng, complements)} if complements else {}
        where = {"zip_code": cep, "city": place["city"], "state": place["state"], "country": "BR"}
        return {"line_1": ", ".join((number, street, place["bairro"])), **more, **where}


# -- pools of names and complements


def _given_names(names: Body, table: str, draw: Callable[[], str]) -> Weighted[Name]:
    weights: dict[str, float] = names[table]
    known = {*weights, *names["not_from_faker"]}
    rare = [name for name in dict.fromkeys(draw() for _ in range(DRAWS)) if name not in known]
    share = sum(weights.values()) * FROM_FAKER / len(rare)
    pairs = [*weights.items(), *((name, share) for name in rare)]
    return Weighted((Name(name, name, plain_ascii(name.split()[0])), weight) for name, weight in pairs)


def _surnames(names: Body) -> list[tuple[Name, float]]:
    """Each surname with its weight, and those that some write with a particle in both forms."""
    pairs: list[tuple[Name, float]] = []
    for name, (weight, particle, share) in names["surnames"].items():
        plain = plain_ascii(name)
        pairs.append((Name(name, name, plain), weight * (1 - share)))
        pairs.append((Name(f"{particle} {name}", name, plain), weight * share))
    return pairs


def _last_names(names: Body, surnames: list[tuple[Name, float]], state: str) -> Weighted[Name]:
    """The surnames of a state: those of everywhere, and those of its immigrants."""
    total = sum(weight for _, weight in surnames)
    groups = [group for group in names["regional"] if state in group["states"]]
    local = sum(group["share"] for group in groups)
    pairs = [(name, weight * (1 - local)) for name, weight in surnames]
    for group in groups:
        each = total * group["share"] / len(group["surnames"])
        pairs += [(Name(name, name, plain_ascii(name)), each) for name in group["surnames"]]
    return Weighted(pairs)


# -- parts of a person


def _mailbox(rng: Random, given: str, middle: Name | None, last: Name) -> str:
    """The local part of an e-mail address."""
    style = rng.random()
    if style < 0.45:
        local = f"{given}.{last.plain}"
    elif style < 0.65 and middle is not None:
        local = f"{given}.{middle.plain}.{last.plain}"
    elif style < 0.8:
        local = f"{given}{last.plain}"
    else:
        local = f"{given[0]}{last.plain}" if style < 0.9 else f"{given}_{last.plain}"
    luck = rng.random()
    if luck >= WITH_DIGITS:
        return local
    digits = f"{1 + int(rng.random() * 99):02d}" if luck < 0.6 * WITH_DIGITS else str(1970 + int(rng.random() * 36))
    return local + digits


def _phones(rng: Random, ddd: str, landlines: float) -> dict[str, dict[str, str]]:
    """A mobile number, for some people a landline too, and for a few no phone at all."""
    luck = rng.random()
    if luck < WITHOUT_PHONE:
        return {}
    phones = {"mobile_phone": mobile_number(rng)}
    if luck > 1 - landlines:
        phones["home_phone"] = str(30_000_000 + int(rng.random() * 10_000_000))
    return {name: {"country_code": "55", "area_code": ddd, "number": number} for name, number in phones.items()}


def mobile_number(rng: Random) -> str:
    """Nine digits, without the area code."""
    return f"9{60_000_000 + int(rng.random() * 40_000_000)}"


def _cpf(rng: Random, region: int) -> str:
    """A CPF of a fiscal region; its first eight digits are drawn with replacement, as real ones repeat digits."""
    while True:
        nine = f"{int(rng.random() * 10_000):04d}{int(rng.random() * 10_000):04d}{region}"
        if len(set(nine)) > 1:  # equal digits pass the checksum, but are not a CPF
            return cpf_with_check_digits(nine)


def _cnpj(rng: Random, at_ms: int) -> str:
    """A company of the last twenty years: Receita Federal has counted from 11 to 65 million since."""
    alphabet = CNPJ_ALPHABET if rng.random() < ALPHANUMERIC and at_ms >= ALPHANUMERIC_SINCE_MS else CNPJ_ALPHABET[:10]
    root = "".join(pick(rng, alphabet) for _ in range(6))
    return cnpj_with_check_digits(f"{11 + int(rng.random() * 54)}{root}0001")
