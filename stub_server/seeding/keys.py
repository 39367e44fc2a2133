"""The merchant's API keys: the main one, whose secret the server hands out, and those of the scenario."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..contract.formats import date_time_ms
from ..domain.api_keys import PRIVATE, PRIVATE_LENGTH, PUBLIC, PUBLIC_LENGTH, changed_key, known_projects, new_key
from ..drawing.rhythm import office_hour
from ..engine import resources
from ..engine.sandbox import DEFAULT
from ..kernel.clock import DAY, HOUR, MINUTE, SECOND, iso
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Body
from ..scenarios.scenario import KeySpec
from .script import Script

MAIN: Body = {
    "name": "Loja principal",
    "description": "Chave do site, com todas as permissões.",
}
MAIN_ID = named_uuid("api_key", "main")


def pair_of(secret: bytes, seed: int, ident: str, world: str = DEFAULT) -> tuple[str, str]:
    """Public and private half of a seeded key, by its id: others in every world, so that a key tells whose it is."""
    names = (str(seed), "api_key", ident) if world == DEFAULT else (str(seed), "api_key", ident, world)
    return (
        PUBLIC + derived_text(secret, PUBLIC_LENGTH, *names, "public"),
        PRIVATE + derived_text(secret, PRIVATE_LENGTH, *names, "private"),
    )


def plan_keys(
    script: Script, specs: Sequence[KeySpec], scopes: Sequence[str], secret: bytes, seed: int, rng: Random
) -> dict[str, str]:
    """Plan the main key, which holds all `scopes`, and the scenario's; answers the main key's two halves."""
    store, now = script.store, script.end
    begun = date_time_ms(store.merchant.created_at)
    halves = pair_of(secret, seed, MAIN_ID)
    script.add(
        begun + 10 * MINUTE + int(rng.random() * HOUR), _cut, script, "main", MAIN | {"scopes": [*scopes]}, halves
    )
    used: list[tuple[str, int, int]] = []
    for spec in specs:
        created = max(begun + 2 * HOUR, min(office_hour(rng, now - spec.days_old * DAY), now - 5 * MINUTE))
        fields = dict(spec.fields)
        fields["allowed_projects"] = [named_uuid("project", slug) for slug in fields.get("allowed_projects", [])]
        last = now - int(rng.random() * 5 * HOUR)
        if spec.state == "expired":
            ended = created + (now - created) // 2
            fields["expires_at"] = iso(ended)
            last = ended - int(rng.random() * 20 * HOUR)
        elif isinstance(fields.get("expires_in_days"), int):
            # To the end of the day in Brasília, three hours into the next one of UTC.
            fields["expires_at"] = iso((now // DAY + fields["expires_in_days"]) * DAY + 3 * HOUR - 1)
        fields.pop("expires_in_days", None)
        script.add(created, _cut, script, spec.key, fields, pair_of(secret, seed, named_uuid("api_key", spec.key)))
        if spec.state == "inactive":
            last = created + (now - created) // 3
            script.add(last + HOUR, _switch_off, script, spec.key)
        if spec.usage:
            used.append((named_uuid("api_key", spec.key), spec.usage, max(created, last)))
    script.add(now, _use, script, used, now - 20 * SECOND - int(rng.random() * 4 * MINUTE))
    return {"public_key": halves[0], "private_key": halves[1]}


def _cut(script: Script, key: str, fields: Body, halves: tuple[str, str]) -> None:
    draft, ident = script.draft(), named_uuid("api_key", key)
    projects = known_projects(fields.get("allowed_projects", []), script.store.projects.keys)
    defaults = script.sandbox.rules.defaults["ApiKey"]
    public, hidden = new_key(fields, defaults, ident, *halves, projects, script.now)
    resources.add_key(draft, public, hidden | {"user_id": script.store.merchant.user_id})
    script.record(draft)


def _switch_off(script: Script, key: str) -> None:
    draft = script.draft()
    row = draft.open(script.store.api_keys, named_uuid("api_key", key))
    assert row is not None
    resources.change_key(draft, row, *changed_key(row, {"is_active": False}, None, script.now))
    script.record(draft)


def _use(script: Script, used: Sequence[tuple[str, int, int]], latest: int) -> None:
    """How often each key was used, and when last: the main one by every order, twice."""
    store, requests = script.store, 0
    for ident, count, last in used:
        store.set_usage(ident, (count, iso(last)))
        requests += count
    if len(store.orders):
        store.set_usage(MAIN_ID, (2 * len(store.orders) + requests, iso(latest)))
