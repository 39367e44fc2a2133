"""Overlays as tests write them down, and the contract corrected by them."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx2

from stub_server.contract import bundle
from stub_server.contract.document import Document

from .contract import OPENAPI
from .estate import client, token
from .live import Live

HEAD = 'overlay: 1.0.0\ninfo: { title: A correction, version: "1" }\nactions:\n'


def overlay(folder: Path, actions: str, name: str = "overlay.yaml") -> Path:
    """A file with these actions."""
    file = folder / name
    file.write_text(HEAD + actions, encoding="utf-8")
    return file


def corrected(folder: Path, *actions: str) -> Document:
    """The contract with one overlay per text."""
    files = [overlay(folder, text, f"{number}.yaml") for number, text in enumerate(actions)]
    return bundle.contracts(OPENAPI, files).document


def removed(*targets: str) -> str:
    """Actions that remove what the JSONPaths select."""
    return "".join(f'  - {{ target: "{target}", remove: true }}\n' for target in targets)


def updated(target: str, update: str) -> str:
    """An action that updates what a JSONPath selects."""
    return f'  - target: "{target}"\n    update: {update}\n'


def copied(target: str, source: str) -> str:
    """Actions that make the target and copy the source into it; the target is a
    parent and a key.
    """
    parent, key = target.rsplit(" ", 1)
    return (
        updated(parent, f'{{ "{key}": {{}} }}')
        + f'  - target: "{parent}[\'{key}\']"\n    copy: "{source}"\n'
    )


LIFE = "$.components.schemas.Order['x-lifecycle']"
NO_PAID = removed("$['x-webhooks']['order.paid']", f"{LIFE}.moves[?@.event == 'order.paid'].event")
SETTLED = (
    copied("$['x-webhooks'] order.settled", "$['x-webhooks']['order.paid']")
    + removed("$['x-webhooks']['order.paid']")
    + updated(f"{LIFE}.moves[?@.event == 'order.paid']", "{ event: order.settled }")
)
NO_ANALYTICS = removed(
    "$['x-scopes'][?@.name == 'analytics:read']",
    "$.paths['/v2/analytics'].get['x-scopes'][?@ == 'analytics:read']",
)


def merchant_of(serve: Callable[..., Live], folder: Path, actions: str) -> httpx2.Client:
    """A new merchant's API, of a server with these corrections."""
    live = serve(overlays=(overlay(folder, actions),), scenario="empty")
    return client(live, "default", token(live, "default", str(uuid4())))
