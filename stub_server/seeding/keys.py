"""The merchant's API keys: the main one, whose secret the server hands out, and those of the scenario.

Sandboxes are copied, and their keys must differ all the same: a key identifies its sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..contract.formats import date_time_ms
from ..domain import api_keys
from ..drawing.rhythm import office_hour
from ..engine import resources
from ..engine.draft import Draft
from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.clock import DAY, HOUR, MINUTE, SECOND, iso
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Body, Row
from ..scenarios.scenario import KeySpec
from .script import Script

MAIN: Body = {"name": "Loja principal", "description": "Chave do site, com todas as permissões."}
MAIN_ID = named_uuid("api_key", "main")


def pair_of(secret: bytes, seed: int, ident: str, sandbox: str = DEFAULT) -> tuple[str, str]:
    """Public and private half of a seeded key, by its id; they differ by sandbox."""
    names = (str(seed), "api_key", ident) if sandbox == DEFAULT else (str(seed), "api_key", ident, sandbox)
    return (
        api_keys.PUBLIC + derived_text(secret, api_keys.PUBLIC_LENGTH, *names, "public"),
        api_keys.PRIVATE + derived_text(secret, api_keys.PRIVATE_LENGTH, *names, "private"),
    )


def mark_seeded(sandbox: Sandbox) -> None:
    """Remember which keys of a sandbox are the seed's: those that it has before anybody has used it."""
    sandbox.seeded_keys = frozenset(ident for store in sandbox.stores.values() for ident in store.api_keys.keys)


def derive_keys(sandbox: Sandbox, secret: bytes) -> None:
    """Give the seeded keys of a copied sandbox secrets of its own. Those of the default sandbox stay as they are."""
    if sandbox.name == DEFAULT:
        return
    for store in sandbox.stores.values():
        table = store.api_keys
        for ident in sandbox.seeded_keys & table.keys.keys():
            row = table.open(ident)
            assert row is not None
            public_key, private_key = pair_of(secret, sandbox.seed, ident, sandbox.name)
            if row.public["public_key"] == sandbox.credentials.get("public_key"):
                sandbox.credentials = {"public_key": public_key, "private_key": private_key}
            public = row.public | {"public_key": public_key}
            hidden = row.hidden | {"digest": api_keys.digest(private_key)}
            record = table.prepare(ident, public, hidden, row)._replace(version=row.record.version)
            store.replace(table.name, row, Row(record, public, hidden))


def plan_keys(
    script: Script, specs: Sequence[KeySpec], scopes: Sequence[str], secret: bytes, seed: int, rng: Random
) -> dict[str, str]:
    """Plan the main key, which has all `scopes`, and the scenario's; returns the main key's two halves."""
    store, now = script.store, script.end
    begun = date_time_ms(store.merchant.created_at)
    halves = pair_of(secret, seed, MAIN_ID)
    main = MAIN | {"scopes": [*scopes]}
    script.add(begun + 10 * MINUTE + int(rng.random() * HOUR), script.step, _create, MAIN_ID, main, halves)
    used: list[tuple[str, int, int]] = []
    for spec in specs:
        ident = named_uuid("api_key", spec.key)
        created = max(begun + 2 * HOUR, min(office_hour(rng, now - spec.days_old * DAY), now - 5 * MINUTE))
        fields = dict(spec.fields)
        fields["allowed_projects"] = [named_uuid("project", slug) for slug in fields.get("allowed_projects", [])]
        last, days = now - int(rng.random() * 5 * HOUR), fields.pop("expires_in_days", None)
        if spec.state == "expired":
            ended = created + (now - created) // 2
            fields["expires_at"] = iso(ended)
            last = ended - int(rng.random() * 20 * HOUR)
        elif isinstance(days, int):
            # To the end of the day in Brasília, three hours into the next one of UTC.
            fields["expires_at"] = iso((now // DAY + days) * DAY + 3 * HOUR - 1)
        script.add(created, script.step, _create, ident, fields, pair_of(secret, seed, ident))
        if spec.state == "inactive":
            last = created + (now - created) // 3
            script.add(last + HOUR, script.step, _switch_off, ident)
        if spec.usage:
            used.append((ident, spec.usage, max(created, last)))
    script.add(now, _use, script, used, now - 20 * SECOND - int(rng.random() * 4 * MINUTE))
    return {"public_key": halves[0], "private_key": halves[1]}


def _create(draft: Draft, ident: str, fields: Body, halves: tuple[str, str]) -> None:
    projects = api_keys.known_projects(fields.get("allowed_projects", []), draft.store.projects.keys)
    public, hidden = api_keys.new_key(
        fields, draft.sandbox.rules.defaults["ApiKey"], ident, *halves, projects, draft.now
    )
    resources.add_key(draft, public, hidden | {"user_id": draft.store.merchant.user_id})


def _switch_off(draft: Draft, ident: str) -> None:
    row = draft.open(draft.store.api_keys, ident)
    assert row is not None
    resources.change_key(draft, row, *api_keys.changed_key(row, {"is_active": False}, None, draft.now))


def _use(script: Script, used: Sequence[tuple[str, int, int]], latest: int) -> None:
    """How often each key was used, and when last: the main one by every order, twice."""
    store, requests = script.store, 0
    for ident, count, last in used:
        store.set_usage(ident, (count, iso(last)))
        requests += count
    if len(store.orders):
        store.set_usage(MAIN_ID, (2 * len(store.orders) + requests, iso(latest)))
