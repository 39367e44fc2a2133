"""The tables of `fixtures/catalogue/`: places, names, projects, prices and habits where Faker has none or bad ones."""

import unicodedata
from collections import OrderedDict
from functools import cache
from typing import Any

from ..contract.source import read
from ..kernel.record import Body
from ..kernel.shipped import data_dir


@cache
def table(name: str) -> Body:
    """One table. Nobody may change it."""
    found: Body = read(data_dir("fixtures") / "catalogue" / f"{name}.yaml")
    return found


@cache
def elements(name: str, *path: str) -> "OrderedDict[str, float]":
    """The elements of a table with their shares, in the form that Faker draws from."""
    found: Any = table(name)
    for step in path:
        found = found[step]
    return OrderedDict(found)


def plain_ascii(text: str) -> str:
    """Lower-case ASCII letters and digits only: "Conceição" -> "conceicao"."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in plain.lower() if letter.isascii() and letter.isalnum())
