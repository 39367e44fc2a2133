"""Projects to seed: names, texts, settings, plans and products of Brazilian memberships, by niche."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from faker import Faker

from .catalogue import Catalogue, Niche, Product, Project
from .draw import Weighted, pick
from .plans import Plan, plans
from .pools import plain_ascii
from .prices import reais

SOURCES = ("instagram", "google", "youtube", "facebook", "indicacao")


class ProductBlueprint(NamedTuple):
    """`fields` are a ProductCreate without projectId and planIds; `plans` names the plans that unlock it."""

    fields: dict[str, Any]
    plans: tuple[str, ...]


class ProjectBlueprint(NamedTuple):
    """`fields` are a ProjectCreate without status; `bumps` are (title, reais) of extras offered at checkout."""

    niche: str
    slug: str
    name: str
    fields: dict[str, Any]
    plans: tuple[Plan, ...]
    products: tuple[ProductBlueprint, ...]
    bumps: tuple[tuple[str, float], ...]


def project_blueprints(
    rng: random.Random, catalogue: Catalogue, count: int, slogans: tuple[str, ...]
) -> tuple[ProjectBlueprint, ...]:
    """`count` projects with different names and slugs, spread over the niches."""
    queue = _interleaved(rng, catalogue)
    blueprints = []
    for position in range(count):
        niche, project = queue[position % len(queue)]
        edition = position // len(queue) + 1
        name, slug = project.name, project.slug
        if edition > 1:
            name = f"{name}: {catalogue.edition} {edition}"
            slug = f"{slug}-{plain_ascii(catalogue.edition)}-{edition}"
        first = position == 0  # some project has a trial, whatever the seed
        blueprints.append(_blueprint(rng, catalogue, niche, project, name, slug, slogans, has_trial=first))
    return tuple(blueprints)


def project_blueprint(
    rng: random.Random, catalogue: Catalogue, slug: str, slogans: tuple[str, ...]
) -> ProjectBlueprint | None:
    """The catalogue's project with this slug, or None."""
    for niche in catalogue.niches:
        for project in niche.projects:
            if project.slug == slug:
                return _blueprint(rng, catalogue, niche, project, project.name, slug, slogans)
    return None


def _blueprint(
    rng: random.Random,
    catalogue: Catalogue,
    niche: Niche,
    project: Project,
    name: str,
    slug: str,
    slogans: tuple[str, ...],
    *,
    has_trial: bool = False,
) -> ProjectBlueprint:
    owners = Weighted((surname.name, surname.weight) for surname in catalogue.names.surnames)
    offered = plans(rng, catalogue.prices, niche, has_trial=has_trial)
    return ProjectBlueprint(
        niche=niche.key,
        slug=slug,
        name=name,
        fields=_fields(rng, niche, project, name, slug, pick(rng, slogans), owners.draw(rng)),
        plans=offered,
        products=tuple(
            _product(niche, product, slug, number, offered) for number, product in enumerate(project.products, start=1)
        ),
        bumps=tuple((bump.title, reais(bump.cents)) for bump in niche.bumps),
    )


def slogans_of(catalogue: Catalogue, faker: Faker) -> tuple[str, ...]:
    """Slogans from Faker, without those that contain an excluded text of the catalogue."""
    drawn = dict.fromkeys(faker.catch_phrase() for _ in range(400))
    return tuple(text for text in drawn if not any(words in text for words in catalogue.not_in_slogans))


def _interleaved(rng: random.Random, catalogue: Catalogue) -> list[tuple[Niche, Project]]:
    """Every project once, alternating between niches, so that few projects cover many niches."""
    niches = [(niche, _shuffled(rng, niche.projects)) for niche in _shuffled(rng, catalogue.niches)]
    longest = max(len(projects) for _, projects in niches)
    return [(niche, projects[turn]) for turn in range(longest) for niche, projects in niches if turn < len(projects)]


def _shuffled(rng: random.Random, items: tuple[Any, ...]) -> list[Any]:
    # Not random.shuffle, as Python may change how it uses the generator.
    return [item for _, _, item in sorted((rng.random(), position, item) for position, item in enumerate(items))]


def _fields(
    rng: random.Random, niche: Niche, project: Project, name: str, slug: str, slogan: str, owner: str
) -> dict[str, Any]:
    affiliates = rng.random() < 0.4
    hashtag = "".join(word[0].upper() + word[1:] for word in project.name.split())
    return {
        "name": name,
        "description": project.description,
        "long_description": project.long_description,
        "logo_url": f"https://assets.example.com/{slug}/logo.png",
        "cover_image": f"https://assets.example.com/{slug}/capa.jpg",
        "website_url": f"https://www.example.com/{slug}",
        "visibility": Weighted((("public", 85), ("unlisted", 15))).draw(rng),
        "business_settings": {
            "legal_name": f"{owner} Educação Digital Ltda.",
            "support_email": f"suporte.{slug}@example.com",
            "timezone": "America/Sao_Paulo",
            "refund_days": "7",
        },
        "marketing_settings": {
            "slogan": slogan,
            "hashtag": f"#{hashtag}",
            "main_source": pick(rng, SOURCES),
            "affiliates": "true" if affiliates else "false",
            **({"affiliate_percent": pick(rng, ("20", "30", "40", "50"))} if affiliates else {}),
        },
        "content_settings": {
            "language": "pt-BR",
            "release": pick(rng, ("immediate", "weekly", "weekly")),
            "certificate": "true" if any(product.type == "course" for product in project.products) else "false",
            "theme_color": f"#{niche.color}",
        },
        "notification_settings": {
            "sender_name": f"Equipe {project.name}",
            "welcome_email": "true",
            "renewal_reminder_days": pick(rng, ("1", "3", "3", "5")),
        },
        "metadata": {"niche": niche.key, "audience": niche.audience},
    }


def _product(niche: Niche, product: Product, slug: str, number: int, offered: tuple[Plan, ...]) -> ProductBlueprint:
    # Mentorship comes with the more expensive plans only, everything else with all.
    chosen = offered[1:] if product.type == "mentorship" else offered
    # Shorter ones are the same for Contas do MEI and Churrasco de Mestre.
    first, *others = slug.split("-")
    initials = (first[:3] + "".join(word if word.isdigit() else word[0] for word in others)).upper()
    return ProductBlueprint(
        fields={
            "name": product.name,
            "description": product.description,
            "type": product.type,
            "status": "active",
            "image_url": f"https://assets.example.com/{slug}/produto-{number}.jpg",
            "access_url": f"https://membros.example.com/{slug}/{number}",
            "sku": f"{initials}-{number:02d}",
            "metadata": {"niche": niche.key},
        },
        plans=tuple(plan.name for plan in chosen),
    )
