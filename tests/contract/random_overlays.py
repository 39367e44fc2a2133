"""Overlays drawn at random: each changes one place of the contract, as somebody might who corrects it.

`python -m tests.contract.random_overlays 500` serves the contract with each of so many, or sees the start refused. A
second number is the seed to begin with.
"""

import json
import logging
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from stub_server.contract.source import ContractError
from stub_server.scenarios.files import ScenarioError

from ..support.contract import document
from ..support.estate import estate
from ..support.live import FROZEN, Live, running
from ..support.overlays import overlay
from ..support.receiver import receiving
from ..support.requests import OPERATIONS, ask

Place = tuple[str | int, ...]
Action = dict[str, Any]
SUCCESSES = ("200", "201", "202", "204")
OTHER_TYPES = ("string", "integer", "boolean", "array", "object")
LAST = ["suspendProject", "activateProject", "deleteProduct", "deleteWebhook", "deleteApiKey", "archiveProject"]


def drawn(seed: int) -> list[Action]:
    """The actions of one overlay."""
    random = Random(seed)
    place, node = random.choice(_PLACES)
    return random.choice([*_changes(random, place, node)])


class Logged(logging.Handler):
    """Collects what a server logs as an error, such as a defect of a request or of a job."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(f"{record.getMessage()} {record.exc_info and record.exc_info[1]!r}")


def outcome(folder: Path, seed: int) -> tuple[str, list[str]]:
    """What becomes of a server with one overlay: `stopped` or `served`, and what is wrong with that."""
    logged, log = Logged(), logging.getLogger("stub_server")
    log.addHandler(logged)
    try:
        what, defects = _outcome(folder, seed)
    finally:
        log.removeHandler(logged)
    return what, [*defects, *logged.found]


def _outcome(folder: Path, seed: int) -> tuple[str, list[str]]:
    file = overlay(folder, "".join(f"  - {json.dumps(action)}\n" for action in drawn(seed)), f"{seed}.yaml")
    try:
        with running(replace(FROZEN, overlays=(file,), scenario="empty")) as live:
            return "served", [*_defects(live)]
    except (ContractError, ScenarioError) as error:
        where = f"{file.name}:" in str(error) and f"{file.name}:?" not in str(error)
        return "stopped", [] if where else [f"without file and line: {error}"]


def _defects(live: Live) -> Iterator[str]:
    """What the server answers that no contract has, while a merchant uses every operation."""
    seen: list[httpx2.Response] = []
    with receiving() as receiver:
        try:
            merchant = estate(live, "default", receiver.url)
        except (AssertionError, KeyError, IndexError):  # refused, as the overlay asks
            return
        for client in (merchant.api, merchant.control):
            client.event_hooks = {"response": [seen.append]}
        deletions = [o.id for o in OPERATIONS.values() if o.method == "DELETE"]
        for name in (*[o for o in OPERATIONS if o not in LAST and o not in deletions], *LAST):
            ask(merchant.api, OPERATIONS[name], merchant.ids)
        merchant.control.post("/clock/advance", json={"days": 40})
        merchant.control.post(f"/orders/{merchant.ids['orderId']}/refund")
        merchant.control.get("/invariants")
        for path in ("/openapi.json", "/openapi.yaml", "/docs/createPixOrder"):
            merchant.api.get(path)
        merchant.close()
    for response in seen:
        if response.status_code >= 500 and response.status_code != 501:
            yield f"{response.request.method} {response.request.url.path}: {response.status_code}"


def _changes(random: Random, place: Place, node: Any) -> Iterator[list[Action]]:
    """What may be done to a place."""
    kind, target = _kind(place), _path(place)
    yield [{"target": target, "remove": True}]
    if kind == "response" and str(place[-1]).startswith("2"):
        status = random.choice([s for s in SUCCESSES if s != place[-1]])
        yield [{"target": _path(place[:-1]), "update": {status: node}}, {"target": target, "remove": True}]
    if kind != "schema":
        return

    def update(change: Action, member: str = "") -> list[Action]:
        return [{"target": f"{target}['{member}']" if member else target, "update": change}]

    def remove(rest: str) -> list[Action]:
        return [{"target": target + rest, "remove": True}]

    type_ = node.get("type")
    yield update({"type": random.choice(OTHER_TYPES)})
    if "format" in node:
        yield remove("['format']")
        yield update({"format": random.choice(("uuid", "date-time", "email", "document"))})
    if "pattern" in node:
        yield remove("['pattern']")
    if "enum" in node:
        yield remove(f"['enum'][{random.randrange(len(node['enum']))}]")
        yield [{"target": f"{target}['enum']", "update": "something_else"}]
    if type_ == "string":
        yield update({"maxLength": random.choice((1, 3, 5000))})
        yield update({"minLength": random.choice((0, 60))})
    if type_ in ("integer", "number"):
        yield update({"maximum": random.choice((1, 10**9))})
        yield update({"minimum": random.choice((-5, 100))})
    if type_ == "array":
        yield update({"maxItems": random.choice((0, 1000))})
        yield update({"minItems": 2})
    if "properties" in node:
        yield update({"nickname": {"type": "string"}}, "properties")
        yield update({"additionalProperties": random.choice((True, False))})
        yield update({"required": [random.choice(list(node["properties"]))]})
        yield update({"required": ["nickname"]})
        if node.get("required"):
            yield remove(f"['required'][{random.randrange(len(node['required']))}]")
    if "nullable" in node or "type" in node:
        yield update({"nullable": not node.get("nullable", False)})


def _kind(place: Place) -> str:
    if "schemas" in place or "schema" in place:
        return "schema"
    return "response" if len(place) > 1 and place[-2] == "responses" else "other"


def _path(place: Place) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f"[{json.dumps(step)}]" for step in place)


def _places(node: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Schemas and their members, operations, responses, headers, parameters, events and rows of tables."""
    if isinstance(node, dict):
        if place and place[-1] not in ("properties", "paths", "components", "schemas", "responses", "example"):
            yield place, node
        for name, member in node.items():
            if name not in ("example", "examples", "x-basis", "x-basis-notes", "description", "info"):
                yield from _places(member, (*place, name))
    elif isinstance(node, list):
        for number, member in enumerate(node):
            yield from _places(member, (*place, number))


_PLACES = [*_places(document().raw)]


def main(count: int, first: int = 0) -> int:
    """Try so many, from a first seed; print what is wrong."""
    logging.getLogger("stub_server").propagate = False
    found = {"served": 0, "stopped": 0}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            what, defects = outcome(Path(folder), seed)
            found[what] += 1
            wrong += bool(defects)
            for defect in defects:
                print(f"{seed}: {json.dumps(drawn(seed))[:300]}\n    {defect}")
    print(f"{count} overlays: {found['served']} served, {found['stopped']} stopped the start, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
