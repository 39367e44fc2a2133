"""Faker's people of Brazil, made coherent: every field of a customer belongs to one place.

Given and middle names are drawn by Faker's own provider; where its lists are flat or made of newborns, our tables add
the names of adults with their weights. Cities, area codes, postal codes and regions of a CPF are ours: those of Faker
do not belong to each other.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import count

from faker import Generator
from faker.providers import BaseProvider

from ..domain.documents import cnpj_with_check_digits, cpf_with_check_digits
from ..kernel.record import Body
from .tables import plain_ascii, table, weighted

COMPANIES = 0.04  # of the buyers
WOMEN = 0.54
FROM_FAKER = 0.45  # of the given names; the others are those of the parents of Faker's
WITH_MIDDLE_NAME = 0.72
WITH_DIGITS = 0.15  # of e-mail addresses, besides those that get a number to differ from others
WITHOUT_ADDRESS, WITHOUT_PHONE = 0.08, 0.03  # they leave this part of the form empty
LANDLINES, LANDLINES_OF_COMPANIES = 0.12, 0.7
FLATS_WITHOUT_SHARE = 1.0  # where a place does not say how many of its homes are flats, all are
ALPHANUMERIC = 0.06  # of the companies, since Receita Federal issues such CNPJs
ALPHANUMERIC_SINCE_MS = 1_782_874_800_000  # 2026-07-01T00:00:00-03:00
CNPJ_ALPHABET = "0123456789ABCDEGHJKLMNPRSTVWXYZ"  # without F, I, O, Q, U, which some programs reject
OLDEST_ROOT, NEWEST_ROOT = 11, 64  # first digits of the CNPJs of the years in which there is a MEI
HIGHEST_NUMBERS = {"Avenida": 1_990, "Praça": 190}  # of houses, by the first word of the street's name
HIGHEST_NUMBER = 890
BLOCKS = "ABCDEFGHIJK"  # of a superquadra in Brasília
PARTICLES = ("da", "das", "de", "do", "dos", "e")
DEPARTMENTS = ("contato", "financeiro", "compras", "adm")
#: RFC 2606: no mail to such an address can reach anybody.
DOMAINS = weighted({"example.com": 6, "example.org": 2, "example.net": 2})
MAILBOXES = weighted(
    {
        "{given}.{last}": 45,
        "{given}.{middle}.{last}": 20,
        "{given}{last}": 15,
        "{initial}{last}": 10,
        "{given}_{last}": 10,
    }
)
BRANDS = weighted(
    {
        "{{surname}}": 55,
        "{{surname}} & {{surname}}": 25,
        "{{surname}} & Filhos": 13,
        "Irmãos {{surname}}": 7,
    }
)
#: Patterns of Faker: `#` is a digit, `%` one that is not zero, `?` a letter.
MOBILES = ("96#######", "97#######", "98#######", "99#######")
MAIL_DIGITS = ("%#", "%#", "197#", "198#", "199#")
FLATS = weighted({"Apto %#": 40, "Apto %0%": 30, "Apto 1%0%": 10, "Bloco ?, Apto %#": 10, "Bloco ?, Apto %0%": 10})
HOUSES = weighted({"": 60, "Casa": 24, "Casa %": 8, "Fundos": 4, "Sobrado": 4})
OFFICES = weighted({"Sala %#": 50, "Sala %0%": 20, "Conjunto %#": 30})


class PeopleProvider(BaseProvider):
    """`buyer`, `person`, `company` and `address_of` for a Faker of `pt_BR`."""

    __use_weighting__ = True

    def __init__(self, generator: Generator) -> None:
        super().__init__(generator)
        names, geography = table("names"), table("geography")
        self._women, self._men = weighted(names["female"]), weighted(names["male"])
        self._barred = frozenset(names["not_from_faker"])
        self._surnames = weighted({name: weight for name, (weight, _, _) in names["surnames"].items()})
        self._particles: dict[str, tuple[str, float]] = {
            name: (particle, share) for name, (_, particle, share) in names["surnames"].items()
        }
        self._states: Body = geography["states"]
        self._surnames_of = {state: self._surnames_in(state) for state in self._states}
        self._suffixes = weighted(names["suffixes"])
        self._forms = weighted(names["company_forms"])
        self._rows: list[Body] = geography["rows"]
        self._places = OrderedDict((number, row["weight"]) for number, row in enumerate(self._rows))

    def _surnames_in(self, state: str) -> "OrderedDict[str, float]":
        """The surnames of a state, with those that its immigrants brought."""
        found = OrderedDict(self._surnames)
        total = sum(found.values())
        for group in table("names")["regional"]:
            if state not in group["states"]:
                continue
            bearers = total * group["share"] / (1 - group["share"])
            for name in group["surnames"]:
                found[name] = found.get(name, 0) + bearers / len(group["surnames"])
        return found

    def _chance(self, share: float) -> bool:
        return bool(self.generator.random.random() < share)

    # -- whom a shop knows

    def buyer(self, *, letters: bool = True) -> Body:
        """A person or, once in 25 times, a company: the members of a CustomerCreate.

        `letters` says whether a CNPJ may have them: there are such since July 2026.
        """
        return self.company(letters=letters) if self._chance(COMPANIES) else self.person()

    def person(self) -> Body:
        """Somebody whose name, CPF, telephones and address belong to one place."""
        place = self._place()
        name, mailbox = self._name_and_mailbox(place)
        region = self._states[place["state"]]["cpf_region"]
        return {
            "type": "individual",
            "name": name,
            "email": f"{mailbox}@{self.random_element(DOMAINS)}",
            "document": cpf_with_check_digits(self.numerify("########") + str(region)),
            "document_type": "cpf",
            "phones": self._phones(place, LANDLINES),
            "address": {} if self._chance(WITHOUT_ADDRESS) else self._address(place),
        }

    def company(self, *, letters: bool = True) -> Body:
        """A company; seven in ten are one person with a MEI, registered under the root of the CNPJ and the name."""
        place = self._place()
        form = self.random_element(self._forms)
        document = self._cnpj(letters=self._chance(ALPHANUMERIC) and letters)
        is_alone = form == "MEI"
        if is_alone:
            owner, mailbox = self._name_and_mailbox(place)
            name = f"{document[:2]}.{document[2:5]}.{document[5:8]} {owner}"
        else:
            brand = self.generator.parse(self.random_element(BRANDS))
            name = f"{brand} {self.random_element(table('names')['activities'])} {form}"
            mailbox = f"{self.random_element(DEPARTMENTS)}.{plain_ascii(brand)}"
        return {
            "type": "company",
            "name": name,
            "email": f"{mailbox}@{self.random_element(DOMAINS)}",
            "document": document,
            "document_type": "cnpj",
            "phones": self._phones(place, LANDLINES if is_alone else LANDLINES_OF_COMPANIES),
            "address": self._address(place, is_office=not is_alone),
        }

    def crowd(self, count: int, in_use: set[str], *, letters: bool = True) -> Iterator[Body]:
        """So many buyers with documents and e-mail addresses of their own; nobody has a document that is `in_use`."""
        documents, addresses = set(in_use), set[str]()
        for _ in range(count):
            buyer = self.buyer(letters=letters)
            while buyer["document"] in documents:
                buyer = self.buyer(letters=letters)
            email = next(email for email in _addresses(buyer) if email not in addresses)
            documents.add(buyer["document"])
            addresses.add(email)
            yield buyer | {"email": email}

    # -- parts of them

    def surname(self) -> str:
        """A surname without a particle, as often as Brazilians have it."""
        return self.random_element(self._surnames)

    def given_name(self, *, of_a_woman: bool) -> str:
        """The given name of an adult: Faker's, unless it is one that newborns have, or one of our table."""
        if not self._chance(FROM_FAKER):
            return self.random_element(self._women if of_a_woman else self._men)
        return self._drawn_by_faker("first_name_female" if of_a_woman else "first_name_male")

    def _drawn_by_faker(self, formatter: str) -> str:
        """A name by a method of Faker's provider for persons, unless our table bars it."""
        name = str(self.generator.format(formatter))
        while name in self._barred:
            name = str(self.generator.format(formatter))
        return name

    def _name_and_mailbox(self, place: Body) -> tuple[str, str]:
        """A full name, and the local part of an e-mail address that belongs to it."""
        is_woman = self._chance(WOMEN)
        given = self.given_name(of_a_woman=is_woman)
        last = self.random_element(self._surnames_of[place["state"]])
        middle = self._drawn_by_faker("last_name") if self._chance(WITH_MIDDLE_NAME) else ""
        if middle.split()[-1:] == [last] or middle == given:
            middle = ""
        particle, share = self._particles.get(last, ("", 0))
        words = [given, middle, f"{particle} {last}" if self._chance(share) else last]
        if not is_woman and self._chance(sum(self._suffixes.values())):
            words.append(self.random_element(self._suffixes))
        return " ".join(filter(None, words)), self._mailbox(given.split()[0], middle, last)

    def _mailbox(self, given: str, middle: str, last: str) -> str:
        first = plain_ascii(given)
        pattern = self.random_element(MAILBOXES)
        if not middle:
            pattern = pattern.replace("{middle}.", "")
        names = {"given": first, "initial": first[0], "last": plain_ascii(last)}
        local = pattern.format(middle=plain_ascii(middle.rpartition(" ")[2]), **names)
        if self._chance(WITH_DIGITS):
            local += self.numerify(self.random_element(MAIL_DIGITS))
        return local

    def _cnpj(self, *, letters: bool) -> str:
        alphabet = CNPJ_ALPHABET if letters else "0123456789"
        root = "".join(self.random_choices(alphabet, length=6))
        return cnpj_with_check_digits(f"{self.random_int(OLDEST_ROOT, NEWEST_ROOT)}{root}0001")

    def mobile_number(self) -> str:
        """Nine digits, without the area code."""
        return self.numerify(self.random_element(MOBILES))

    def _phones(self, place: Body, landlines: float) -> Body:
        """A mobile number, for some a landline too, and for a few no phone at all."""
        if self._chance(WITHOUT_PHONE):
            return {}
        numbers = {"mobile_phone": self.mobile_number()}
        if self._chance(landlines):
            numbers["home_phone"] = self.numerify("3#######")
        return {
            name: {"country_code": "55", "area_code": place["ddd"], "number": number}
            for name, number in numbers.items()
        }

    # -- places

    def address_of(self, city: str) -> Body:
        """An address in one of the cities of the table; its postal code is that of the street. Raises ValueError."""
        rows = [row for row in self._rows if row["city"] == city]
        if not rows:
            known = ", ".join(sorted({row["city"] for row in self._rows}))
            raise ValueError(f"there is no city {city!r} in the table; known are {known}")
        return self._address(self.random_element(rows))

    def _place(self) -> Body:
        return self._rows[self.random_element(self._places)]

    def _address(self, place: Body, *, is_office: bool = False) -> Body:
        street = self.random_element(tuple(place["streets"]))
        cep: str = place["streets"][street]
        if "numbering" in place:
            block = self.random_int(0, len(BLOCKS) - 1)
            number, cep, within = f"Bloco {BLOCKS[block]}", str(int(cep) + 10 * block), "Apto %0%"
        else:
            highest = HIGHEST_NUMBERS.get(street.partition(" ")[0], HIGHEST_NUMBER)
            number, within = str(self.random_int(10, highest)), self._within(place, is_office=is_office)
        address = {
            "line_1": f"{number}, {street}, {place['bairro']}",
            "line_2": self.bothify(within, letters="ABCD"),
            "zip_code": cep,
            "city": place["city"],
            "state": place["state"],
            "country": "BR",
        }
        return {name: text for name, text in address.items() if text}

    def _within(self, place: Body, *, is_office: bool) -> str:
        """The pattern of what stands behind street and number."""
        if is_office:
            return self.random_element(OFFICES)
        return self.random_element(FLATS if self._chance(place.get("apartments", FLATS_WITHOUT_SHARE)) else HOUSES)


def _addresses(buyer: Body) -> Iterator[str]:
    """E-mail addresses of a buyer, the likeliest first: one that is in use is followed by that of the whole name."""
    mailbox, _, domain = buyer["email"].partition("@")
    yield buyer["email"]
    if buyer["type"] == "individual":
        words = [plain_ascii(word) for word in buyer["name"].split() if word not in PARTICLES]
        mailbox = ".".join(words)
        yield f"{mailbox}@{domain}"
    for number in count(2):
        yield f"{mailbox}{number}@{domain}"
