"""The tables of `fixtures/catalogue/`: places, names, projects and prices where Faker's own are not good enough."""

import unicodedata
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache

from ..contract.source import read
from ..kernel.record import Body
from ..kernel.shipped import data_dir


@cache
def table(name: str) -> Body:
    """One table. Nobody may change it."""
    found: Body = read(data_dir("fixtures") / "catalogue" / f"{name}.yaml")
    return found


def weighted(shares: Mapping[str, float]) -> "OrderedDict[str, float]":
    """Elements with their shares, in the form that Faker draws from."""
    return OrderedDict(shares)


def plain_ascii(text: str) -> str:
    """Lower-case ASCII letters and digits only: "Conceição" -> "conceicao"."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in plain.lower() if letter.isascii() and letter.isalnum())
