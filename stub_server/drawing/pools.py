"""The pools of names that people and companies are drawn from: the catalogue's, and some given names of Faker."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import NamedTuple

from faker import Faker

from .catalogue import Names
from .draw import Weighted

PARTICLES = ("da", "das", "de", "do", "dos", "e")
TAIL = 0.06  # share of people whose given name comes from Faker
DRAWS = 400


class Given(NamedTuple):
    text: str
    plain: str


class Family(NamedTuple):
    """A surname as written, with or without a particle."""

    text: str
    base: str
    plain: str


class NamePools(NamedTuple):
    female: Weighted[Given]
    male: Weighted[Given]
    middle: Weighted[Family]
    last: dict[str, Weighted[Family]]  # by state, as last surnames reflect immigration
    suffixes: tuple[tuple[str, float], ...]
    company_forms: Weighted[str]
    activities: tuple[str, ...]


def seeded_faker(seed: int) -> Faker:
    """A Faker of Brazilian Portuguese whose stream depends on nothing but the seed."""
    # Two of its 26 providers: loading all of them takes longer than drawing the pools.
    faker = Faker("pt_BR", providers=["faker.providers.company", "faker.providers.person"], use_weighting=True)
    faker.seed_instance(seed)
    return faker


def plain_ascii(text: str) -> str:
    """Lower-case ASCII letters and digits only: "Conceição" -> "conceicao"."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in plain.lower() if letter.isascii() and letter.isalnum())


def name_pools(names: Names, faker: Faker, states: Iterable[str]) -> NamePools:
    """Merge the weighted tables with what a seeded Faker adds. Same seed, same pools."""
    families = _families(names)
    return NamePools(
        female=_given(names.female, faker.first_name_female, names.not_from_faker),
        male=_given(names.male, faker.first_name_male, names.not_from_faker),
        middle=Weighted(families),
        last={state: _last(names, families, state) for state in dict.fromkeys(states)},
        suffixes=names.suffixes,
        company_forms=Weighted(names.company_forms),
        activities=names.activities,
    )


def _given(table: tuple[tuple[str, float], ...], draw: Callable[[], str], excluded: tuple[str, ...]) -> Weighted[Given]:
    known = {name for name, _ in table} | set(excluded)
    tail = [name for name in dict.fromkeys(draw() for _ in range(DRAWS)) if name not in known]
    share = sum(weight for _, weight in table) * TAIL / max(len(tail), 1)
    pairs = [*table, *((name, share) for name in tail)]
    return Weighted((Given(name, plain_ascii(name.split()[0])), weight) for name, weight in pairs)


def _families(names: Names) -> list[tuple[Family, float]]:
    pairs: list[tuple[Family, float]] = []
    for surname in names.surnames:
        plain = Family(surname.name, surname.name, plain_ascii(surname.name))
        pairs.append((plain, surname.weight * (1 - surname.particle_share)))
        if surname.particle_share:
            bearing = Family(f"{surname.particle} {surname.name}", surname.name, plain.plain)
            pairs.append((bearing, surname.weight * surname.particle_share))
    return pairs


def _last(names: Names, families: list[tuple[Family, float]], state: str) -> Weighted[Family]:
    total = sum(weight for _, weight in families)
    groups = [group for group in names.regional if state in group.states]
    local = sum(group.share for group in groups)
    pairs = [(family, weight * (1 - local)) for family, weight in families]
    for group in groups:
        each = total * group.share / len(group.surnames)
        pairs += [(Family(name, name, plain_ascii(name)), each) for name in group.surnames]
    return Weighted(pairs)
