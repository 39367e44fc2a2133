"""The process that is killed: makes requests to its own server and writes down what was answered,
as it is answered.
"""

import os
from hashlib import sha256
from itertools import count as count_from
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import orjson

from stub_server.app import create_app
from stub_server.core.clock import parse_iso
from stub_server.core.slices import at_once
from stub_server.domain.cpf import cpf_with_check_digits
from stub_server.engine.history import state_at
from stub_server.engine.sandbox import Sandbox
from stub_server.server.layers.routing import Application
from stub_server.server.sandboxes import entry
from stub_server.settings import Settings
from stub_server.storage import lines, sqlite
from stub_server.storage.lines import Writer
from stub_server.storage.package import MEDIA
from stub_server.storage.state import capture

from ..engine.inside import Inside
from ..support.live import NOW
from ..support.make import customer_body
from .places import PLACES

NAMES = ("default", "one", "two", "three")
Fact = tuple[str, int, str, list[str]]
"""What a sandbox is: its incarnation, its newest step, the digest of its state, and
its snapshots.
"""
Facts = dict[str, Fact]


def settings(folder: Path) -> Settings:
    """A server over a directory, whose worlds begin with nothing."""
    return Settings(store=folder, scenario="empty", now=parse_iso(NOW), history=5_000)


def digest(world: Sandbox) -> str:
    """One text for a state."""
    seal = sha256()
    for line in Writer().state(capture(world)):
        seal.update(line)
    return seal.hexdigest()


def facts(app: Application) -> Facts:
    """What every sandbox of a server is, by name."""
    return {
        entry.sandbox.name: (
            entry.incarnation,
            entry.sandbox.log.number,
            digest(entry.sandbox),
            [
                f"{snapshot.name} {digest(snapshot.sandbox)}"
                for snapshot in entry.snapshots.values()
            ],
        )
        for entry in app.sandboxes.entries()
    }


def live(folder: Path, told: int, seed: int, place: str | None, count: int) -> None:
    """Make requests until somebody ends this process; `told` is where acknowledged facts
    are written.
    """
    with (
        patch.object(entry, "LEAST", 12_000),
        patch.object(lines, "PART", 5_000),
        patch.object(sqlite, "EVERY", 0.005),
        patch.object(sqlite, "LONG", 200_000),
        patch.object(sqlite, "VERY_LONG", 600_000),
    ):
        app = create_app(settings(folder))
        inside = Inside(app)
        inside.run(started(app))
        if place is not None:
            PLACES[place](count)
        random = Random(seed)
        files: dict[str, bytes] = {}
        _tell(told, {"facts": facts(app)})
        for number in count_from(1):
            name = random.choice(NAMES)
            action = random.choices(tuple(ACTIONS), WEIGHTS)[0]
            _tell(told, {"begins": [number, action, name]})
            ACTIONS[action](inside, app, name, random, files)
            _tell(told, {"facts": facts(app)})


async def started(app: Application) -> None:
    """Have what is written brought to the disk, as a server that was started does."""
    app.sandboxes.persistence.start()


def _tell(told: int, what: Any) -> None:
    os.write(told, orjson.dumps(what) + b"\n")


# -- what it does


def _token(app: Application, inside: Inside, name: str) -> str:
    inside.ask("GET", f"/s/{name}/_sandbox/credentials")
    world = app.sandboxes.find(name)
    assert world is not None
    return app.server.ready_token(world)


def _customer(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    document = cpf_with_check_digits(f"{random.randrange(10**9):09d}")
    answer = inside.ask(
        "POST",
        f"/s/{name}/v2/customers",
        customer_body(document=document),
        _token(app, inside, name),
    )
    assert answer.status == 201, answer


def _rename(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    token = _token(app, inside, name)
    found = inside.ask("GET", f"/s/{name}/v2/customers?limit=5", token=token).json()["customers"]
    if found:
        body = {"name": f"Pessoa {random.random()}", "metadata": {"k": "x" * random.randrange(250)}}
        assert (
            200 == inside.ask("PUT", f"/s/{name}/v2/customers/{found[0]['id']}", body, token).status
        )


def _advance(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    inside.ask("POST", f"/s/{name}/_sandbox/clock/advance", {"days": random.randrange(1, 40)})


def _reset(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    assert (
        200
        == inside.ask("POST", f"/s/{name}/_sandbox/reset", {"seed": random.randrange(100)}).status
    )


def _fork(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    if app.sandboxes.find(name) is None:
        return
    to = random.choice(NAMES[1:])
    inside.ask("POST", f"/_sandbox/sandboxes/{name}/fork", {"name": to})


def _delete(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    inside.ask("DELETE", f"/_sandbox/sandboxes/{name}")


def _rewind(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    _token(app, inside, name)
    world = app.sandboxes.find(name)
    assert world is not None
    to = random.randint(max(0, world.log.number - 20), world.log.number)
    inside.ask("POST", f"/s/{name}/_sandbox/rewind", {"to_step": to})


def _carry(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    origin = random.choice(NAMES)
    _token(app, inside, origin)
    file = inside.ask("GET", f"/s/{origin}/_sandbox/export").body
    assert 200 == inside.ask("POST", f"/s/{name}/_sandbox/import", file, media=MEDIA).status


def _snapshot(
    inside: Inside, app: Application, name: str, random: Random, files: dict[str, bytes]
) -> None:
    _token(app, inside, name)
    body = {"name": random.choice("abc")}
    if random.random() < 0.7:
        assert 201 == inside.ask("POST", f"/s/{name}/_sandbox/snapshots", body).status
    else:
        inside.ask("DELETE", f"/s/{name}/_sandbox/snapshots/{body['name']}")


ACTIONS = {
    "customer": _customer, "rename": _rename, "advance": _advance, "reset": _reset, "fork": _fork, "delete": _delete,
    "rewind": _rewind, "carry": _carry, "snapshot": _snapshot,
}  # fmt: skip
WEIGHTS = (40, 40, 5, 3, 4, 4, 4, 2, 6)


# -- what is there afterwards


def reopened(folder: Path, acknowledged: Facts, begun: list[Any] | None) -> list[str]:
    """Open the directory again; what is wrong with it, for what was acknowledged last and what had
    begun since.
    """
    app = create_app(settings(folder))
    inside = Inside(app)
    try:
        found = facts(app)
        wrong = []
        may_change = {begun[2]} if begun is not None else set()
        if begun is not None and begun[1] in ("fork", "carry"):
            may_change = set(NAMES)
        for name in {*acknowledged, *found}:
            was = acknowledged.get(name)
            now = found.get(name)
            if was == now:
                continue
            if name not in may_change:
                wrong.append(
                    f"{name} was {was} and is {now}, though nobody was about to change it ({begun})"
                )
            elif was is not None and now is not None and was[0] == now[0]:
                wrong += _continued(app, name, was, now)
                if was[3] != now[3] and (begun is None or begun[1] != "snapshot"):
                    wrong.append(f"the snapshots of {name} were {was[3]} and are {now[3]}")
        for name in found:
            answer = inside.ask("GET", f"/s/{name}/_sandbox/invariants")
            if answer.status != 200:
                wrong.append(f"{name}: {answer.body!r}")
        return wrong
    finally:
        inside.close()
        app.sandboxes.persistence.close()


def _continued(app: Application, name: str, was: Fact, now: Fact) -> list[str]:
    """A world that has gone on since must have been what was acknowledged."""
    if now[1:3] == was[1:3]:
        return []
    if now[1] <= was[1]:
        return [f"{name} was {was} and is {now}"]
    world = app.sandboxes.find(name)
    assert world is not None
    if world.log.oldest - 1 > was[1]:
        return []  # a later state was written since, which holds that step
    earlier = at_once(state_at(world, was[1], name))
    return (
        [] if digest(earlier) == was[2] else [f"{name} is another at step {was[1]}: {was}, {now}"]
    )
