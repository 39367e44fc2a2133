"""The merchant's API keys: the main one, whose secret the server hands out, and those of the scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..contract.formats import date_time_ms
from ..domain.api_keys import new_key
from ..kernel.clock import DAY, HOUR, MINUTE, SECOND, iso
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Body
from ..kernel.timers import Timers
from ..store.memory import Store
from .rhythm import office_hour
from .scenario import KeySpec

MAIN: Body = {
    "name": "Loja principal",
    "description": "Chave do site, com todas as permissões.",
}


def pair_of(secret: bytes, seed: int, key: str) -> tuple[str, str]:
    """Public and private half of a named key: the same in every world of one server and seed."""
    names = (str(seed), "api_key", key)
    return (
        "pk_sandbox_" + derived_text(secret, 24, *names, "public"),
        "sk_sandbox_" + derived_text(secret, 40, *names, "private"),
    )


def cut_keys(
    store: Store,
    blank: Body,
    specs: Sequence[KeySpec],
    scopes: Sequence[str],
    secret: bytes,
    seed: int,
    rng: Random,
    now: int,
    timers: Timers,
) -> dict[str, str]:
    """Write the main key, which holds all `scopes`, and the scenario's; answers the main key's two halves."""
    begun = date_time_ms(store.merchant.created_at)
    halves = pair_of(secret, seed, "main")
    main = MAIN | {"scopes": list(scopes)}
    _write(store, blank, "main", main, halves, begun + 10 * MINUTE + int(rng.random() * HOUR), None)
    used = 0
    for spec in specs:
        created = max(begun + 2 * HOUR, min(office_hour(rng, now - spec.days_old * DAY), now - 5 * MINUTE))
        fields = dict(spec.fields)
        fields["allowed_projects"] = [named_uuid("project", slug) for slug in fields.get("allowed_projects", [])]
        last = now - int(rng.random() * 5 * HOUR)
        if spec.state == "expired":
            ended = created + (now - created) // 2
            fields["expires_at"] = iso(ended)
            last = ended - int(rng.random() * 20 * HOUR)
        elif spec.state == "inactive":
            last = created + (now - created) // 3
        elif isinstance(fields.get("expires_in_days"), int):
            # To the end of the day in Brasília, three hours into the next one of UTC.
            fields["expires_at"] = iso((now // DAY + fields["expires_in_days"]) * DAY + 3 * HOUR - 1)
        fields.pop("expires_in_days", None)
        ident = _write(store, blank, spec.key, fields, pair_of(secret, seed, spec.key), created, spec.state)
        if spec.state != "expired" and fields.get("expires_at") is not None:
            timers.set_all([(date_time_ms(fields["expires_at"]), "api_key.expire", ident)], store.merchant.id)
        if spec.usage:
            store.usage[ident] = (spec.usage, iso(max(created, last)))
            used += spec.usage
    latest = now - 20 * SECOND - int(rng.random() * 4 * MINUTE)
    if len(store.orders):
        store.usage[named_uuid("api_key", "main")] = (2 * len(store.orders) + used, iso(latest))
    return {"public_key": halves[0], "private_key": halves[1]}


def _write(
    store: Store,
    blank: Body,
    key: str,
    fields: Mapping[str, Any],
    halves: tuple[str, str],
    at: int,
    state: str | None,
) -> str:
    ident = named_uuid("api_key", key)
    body = dict(fields)
    projects = [str(project) for project in body.get("allowed_projects", [])]
    public, hidden = new_key(body, blank, ident, *halves, projects, at)
    if state in ("inactive", "expired"):
        public["is_active"] = False
    hidden["user_id"] = store.merchant.user_id
    store.add("api_keys", ident, public, hidden)
    return ident
