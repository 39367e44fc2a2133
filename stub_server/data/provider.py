"""The Faker provider from which all that is invented in a sandbox comes, and Fakers that use it."""

from random import Random

from faker import Faker

from .catalogue import CatalogueProvider
from .people import PeopleProvider


class MembershipProvider(PeopleProvider, CatalogueProvider):
    """Buyers, companies, projects, plans and prices of Brazilian memberships, for a Faker
    of `pt_BR`.
    """


def new_faker(seed: int, *subject: str) -> Faker:
    """A Faker with the provider whose stream depends on seed and subject alone.

    Each subject has its own, so that a change to one does not affect the others.
    """
    # Two of Faker's 26 providers: loading all of them takes longer than drawing a sandbox.
    faker = Faker("pt_BR", providers=["faker.providers.company", "faker.providers.person"])
    faker.add_provider(MembershipProvider)
    faker.seed_instance(_name(seed, *subject))
    return faker


def stream(seed: int, *subject: str) -> Random:
    """The random stream of a subject for what needs no Faker: instants, and whether
    something happens.
    """
    return Random(_name(seed, *subject))


def _name(seed: int, *subject: str) -> str:
    return "/".join((str(seed), *subject))
