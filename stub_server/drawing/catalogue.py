"""The catalogue: the tables of `fixtures/catalogue/`, checked against `fixtures/schemas.yaml`."""

import unicodedata
from typing import NamedTuple

from ..kernel.record import Body
from ..scenarios.files import Files


class Catalogue(NamedTuple):
    """The contents of the tables. A row of `geography` is one neighbourhood: address, phone and CPF agree with it."""

    geography: Body
    names: Body
    niches: Body
    prices: Body


def load_catalogue(files: Files) -> Catalogue:
    """Read the tables. Raises ContractError, ScenarioError."""
    tables = {"geography": "Geography", "names": "Names", "niches": "Niches", "prices": "PriceTable"}
    folder = files.folder / "catalogue"
    return Catalogue(*(files.read(folder / f"{name}.yaml", shape).value for name, shape in tables.items()))


def plain_ascii(text: str) -> str:
    """Lower-case ASCII letters and digits only: "Conceição" -> "conceicao"."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in plain.lower() if letter.isascii() and letter.isalnum())
