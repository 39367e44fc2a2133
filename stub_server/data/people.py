"""Faker's people of Brazil, made coherent: every field of a customer belongs to one place.

Given and middle names are drawn by Faker's own provider; where its lists are flat or made of
newborns, our tables add the names of adults with their weights. Cities, area codes, postal codes
and regions of a CPF are ours: those of Faker do not belong to each other.
"""

from functools import cache
from typing import Any

from faker.providers import BaseProvider

from ..core.record import Body
from ..domain.cpf import cpf_with_check_digits
from ..domain.documents import cnpj_with_check_digits
from .tables import Shares, pick, plain_ascii, table

COMPANIES = 0.04  # of the buyers
WOMEN = 0.54
FROM_FAKER = 0.45  # of the given names; the others are those of the parents of Faker's
WITH_MIDDLE_NAME = 0.72
WITHOUT_ADDRESS, WITHOUT_PHONE = 0.08, 0.03  # they leave this part of the form empty
LANDLINES, LANDLINES_OF_COMPANIES = 0.12, 0.7
ALPHANUMERIC = 0.06  # of the companies, since Receita Federal issues such CNPJs
ALPHANUMERIC_SINCE_MS = 1_782_874_800_000  # 2026-07-01T00:00:00-03:00
# without F, I, O, Q, U, which some programs reject
CNPJ_ALPHABET = "0123456789ABCDEGHJKLMNPRSTVWXYZ"
OLDEST_ROOT, NEWEST_ROOT = 11, 64  # first digits of the CNPJs of the years in which there is a MEI
# of houses, by the first word of the street's name
HIGHEST_NUMBERS = {"Avenida": 1_990, "Praça": 190}
HIGHEST_NUMBER = 890
BLOCKS = "ABCDEFGHIJK"  # of a superquadra in Brasília


class PeopleProvider(BaseProvider):
    """`buyer`, `person`, `company` and `address_of` for a Faker of `pt_BR`."""

    __use_weighting__ = True

    def _pick(self, *path: str) -> Any:
        return pick(self.generator.random, *path)

    def _habit(self, name: str) -> str:
        return str(self._pick("habits", name))

    def _chance(self, share: float) -> bool:
        return bool(self.generator.random.random() < share)

    # -- whom a shop knows

    def buyer(self, *, letters: bool = True) -> Body:
        """A person or, once in 25 times, a company: the members of a CustomerCreate.

        `letters` says whether a CNPJ may have them: there are such since July 2026.
        """
        if self._chance(COMPANIES):
            return self.company(letters=letters)
        return self.person()

    def person(self) -> Body:
        """Somebody whose name, CPF, telephones and address belong to one place."""
        place = self._place()
        name, mailbox = self._name_and_mailbox()
        region = table("geography")["states"][place["state"]]["cpf_region"]
        return {
            "type": "individual",
            "name": name,
            "email": f"{mailbox}@{self._habit('domains')}",
            "document": cpf_with_check_digits(f"{self.random_int(0, 99_999_999):08}{region}"),
            "document_type": "cpf",
            "phones": self._phones(place, LANDLINES),
            "address": {} if self._chance(WITHOUT_ADDRESS) else self._address(place),
        }

    def company(self, *, letters: bool = True) -> Body:
        """A company; seven in ten are one person with a MEI, registered under the root of the CNPJ
        and the name.
        """
        place = self._place()
        form = self._pick("names", "company_forms")
        document = self._cnpj(letters=self._chance(ALPHANUMERIC) and letters)
        is_alone = form == "MEI"
        if is_alone:
            owner, mailbox = self._name_and_mailbox()
            name = f"{document[:2]}.{document[2:5]}.{document[5:8]} {owner}"
        else:
            brand = self.generator.parse(self._habit("brands"))
            name = f"{brand} {self.random_element(table('names')['activities'])} {form}"
            mailbox = f"{self._habit('departments')}.{plain_ascii(brand)}"
        return {
            "type": "company",
            "name": name,
            "email": f"{mailbox}@{self._habit('domains')}",
            "document": document,
            "document_type": "cnpj",
            "phones": self._phones(place, LANDLINES if is_alone else LANDLINES_OF_COMPANIES),
            "address": self._address(place, is_office=not is_alone),
        }

    def stranger(self, known: set[str], *, letters: bool = True) -> Body:
        """A buyer with a document that is not `known`, and is from then on."""
        while True:
            buyer = self.buyer(letters=letters)
            if buyer["document"] not in known:
                known.add(buyer["document"])
                return buyer

    # -- parts of them

    def surname(self) -> str:
        """A surname without a particle, as often as Brazilians have it."""
        return str(self._pick("names", "surnames"))

    def given_name(self, *, of_a_woman: bool) -> str:
        """The given name of an adult: Faker's, or one of our table."""
        sex = "female" if of_a_woman else "male"
        if self._chance(FROM_FAKER):
            return self._drawn_by_faker(f"first_name_{sex}")
        return str(self._pick("names", sex))

    def _drawn_by_faker(self, formatter: str) -> str:
        """A name by a method of Faker's provider for persons, unless our table bars it."""
        while True:
            name = str(self.generator.format(formatter))
            if name not in table("names")["not_from_faker"]:
                return name

    def _name_and_mailbox(self) -> tuple[str, str]:
        """A full name, and the local part of an e-mail address that belongs to it."""
        is_woman = self._chance(WOMEN)
        given = self.given_name(of_a_woman=is_woman)
        last = self.surname()
        middle = self._drawn_by_faker("last_name") if self._chance(WITH_MIDDLE_NAME) else ""
        if middle.split()[-1:] == [last] or middle == given:
            middle = ""
        particle, share = table("names")["particles"].get(last, ("", 0))
        suffix = "" if is_woman else self._pick("names", "suffixes")
        words = [given, middle, particle if self._chance(share) else "", last, suffix]
        return " ".join(filter(None, words)), self._mailbox(given.split()[0], middle, last)

    def _mailbox(self, given: str, middle: str, last: str) -> str:
        pattern = self._habit("mailboxes")
        if not middle:
            pattern = pattern.replace("{middle}.", "")
        first, middle = plain_ascii(given), plain_ascii(middle.rpartition(" ")[2])
        local = pattern.format(given=first, initial=first[0], middle=middle, last=plain_ascii(last))
        return local + self.numerify(self._habit("mail_digits"))

    def _cnpj(self, *, letters: bool) -> str:
        root = "".join(self.random_choices(CNPJ_ALPHABET if letters else "0123456789", length=6))
        return cnpj_with_check_digits(f"{self.random_int(OLDEST_ROOT, NEWEST_ROOT)}{root}0001")

    def _phones(self, place: Body, landlines: float) -> Body:
        """A mobile number, for some a landline too, and for a few no phone at all."""
        if self._chance(WITHOUT_PHONE):
            return {}
        code = {"country_code": "55", "area_code": place["ddd"]}
        phones = {"mobile_phone": code | {"number": f"9{self.random_int(60_000_000, 99_999_999)}"}}
        if self._chance(landlines):
            phones["home_phone"] = code | {"number": f"3{self.random_int(0, 9_999_999):07}"}
        return phones

    # -- places

    def address_of(self, city: str) -> Body:
        """An address in one of the cities of the table; its postal code is that of the street.

        Raises ValueError.
        """
        rows = [row for row in table("geography")["rows"] if row["city"] == city]
        if not rows:
            raise ValueError(f"there is no city {city!r} in fixtures/catalogue/geography.yaml")
        return self._address(self.random_element(rows))

    def _place(self) -> Body:
        row: Body = table("geography")["rows"][places().draw(self.generator.random)[0]]
        return row

    def _address(self, place: Body, *, is_office: bool = False) -> Body:
        street = self.random_element(tuple(place["streets"]))
        cep: str = place["streets"][street]
        number = str(
            self.random_int(10, HIGHEST_NUMBERS.get(street.partition(" ")[0], HIGHEST_NUMBER))
        )
        within = "flats" if self._chance(place.get("apartments", 1.0)) else "houses"
        if is_office:
            within = "offices"
        if "numbering" in place:
            block = self.random_int(0, len(BLOCKS) - 1)
            number, cep = f"Bloco {BLOCKS[block]}", str(int(cep) + 10 * block)
            within = "flats_in_superquadras"
        address = {
            "line_1": f"{number}, {street}, {place['bairro']}",
            "line_2": self.bothify(self._habit(within), letters="ABCD"),
            "zip_code": cep,
            "city": place["city"],
            "state": place["state"],
            "country": "BR",
        }
        if not address["line_2"]:
            del address["line_2"]
        return address


@cache
def places() -> Shares:
    """The places of the table by their numbers, with their weights."""
    return Shares({number: row["weight"] for number, row in enumerate(table("geography")["rows"])})
