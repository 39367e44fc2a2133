"""Stock Connexion and the sandbox route and accept alike, but for differences that are listed with
their reasons.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import pytest

from ..support.commit import commit
from ..support.live import FROZEN
from . import stock
from .asking import all_requests
from .differences import DIFFERENCES, difference_of
from .ours import Ours
from .wire import Decision, Request

pytestmark = pytest.mark.check
LEAST = 9_000  # as the README says
EVERY = pytest.param(1_000_000, marks=pytest.mark.night)


class Compared(NamedTuple):
    """A request, and what each application made of it."""

    request: Request
    stock: Decision
    ours: Decision

    @property
    def is_alike(self) -> bool:
        """The same operation, the same yes or no."""
        return (self.stock.operation, self.stock.is_accepted) == (
            self.ours.operation,
            self.ours.is_accepted,
        )


async def _prepared(ours: Ours) -> tuple[dict[str, Any], dict[str, str]]:
    """The contract as it is served, and Authorization headers of every kind, which Connexion is
    told of too.
    """
    transport = httpx2.ASGITransport(ours.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:4600") as client:
        contract: dict[str, Any] = (await client.get("/openapi.json")).json()
        made = (await client.get("/_sandbox/credentials")).json()
        few = (await client.post("/_sandbox/tokens", json={"scopes": ["orders:read"]})).json()[
            "token"
        ]
    operations = [operation for item in contract["paths"].values() for operation in item.values()]
    every = " ".join(
        sorted({scope for operation in operations for scope in operation.get("x-scopes", ())})
    )
    tokens = {made["jwt"]: every, few: "orders:read"}
    private = {made["private_key"]: every}
    public = {made["public_key"]: ""}
    stock.SCOPES_OF.update(
        jwt=tokens, bearer=tokens | private, publicBearer=tokens | private | public
    )
    known = {
        "full": made["jwt"],
        "few": few,
        "private": made["private_key"],
        "public": made["public_key"],
    }
    known["unknown"] = f"sk_sandbox_{'0' * 24}"
    return contract, {name: f"Bearer {token}" for name, token in known.items()}


async def _run(most: int) -> list[Compared]:
    ours = Ours(FROZEN)
    contract, credentials = await _prepared(ours)
    connexion = stock.Stock(contract)
    requests = all_requests(contract, credentials)
    asked = random.Random(commit()).sample(requests, min(most, len(requests)))
    return [
        Compared(request, await connexion.decide(request), await ours.decide(request))
        for request in asked
    ]


@pytest.fixture(scope="module", params=[5_500, EVERY])
def compared(request: pytest.FixtureRequest) -> Iterator[list[Compared]]:
    """A run of other requests with every commit, and at night of all."""
    logging.disable(logging.WARNING)  # Connexion logs every refusal
    try:
        with stock.formats_known():
            yield asyncio.run(_run(request.param))
    finally:
        logging.disable(logging.NOTSET)


def test_connexion_and_the_sandbox_decide_alike(compared: list[Compared]) -> None:
    """The same operation, the same yes or no, about thousands of requests."""
    unexplained = [one for one in compared if not one.is_alike and difference_of(*one) is None]
    assert [] == unexplained[:20]
    assert len(compared) >= 5_000


@pytest.mark.parametrize("compared", [EVERY], indirect=True)
@pytest.mark.parametrize("name", [difference.name for difference in DIFFERENCES])
def test_what_differs_on_purpose_still_differs(compared: list[Compared], name: str) -> None:
    """A difference that is gone is no reason any more."""
    found = [difference_of(*one) for one in compared if not one.is_alike]
    assert name in [difference.name for difference in found if difference is not None]


@pytest.mark.parametrize("compared", [EVERY], indirect=True)
def test_every_operation_is_asked_in_every_way(compared: list[Compared]) -> None:
    """Each is accepted and refused by both, for its credential and for what was sent."""
    assert len(compared) >= LEAST
    counted: dict[str, Counter[str]] = {}
    for one in compared:
        if one.is_alike and one.ours.operation is not None:
            kind = "accepted" if one.ours.is_accepted else str(one.stock.status)
            counted.setdefault(one.ours.operation, Counter())[kind] += 1
    assert 49 == len(counted)
    for operation, kinds in counted.items():
        assert kinds["accepted"] >= 3, (operation, kinds)
        assert kinds["401"] >= 5, (operation, kinds)
