"""Who takes part: those who behave, and those who do not.

Each function is one turn of one client.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from .scene import OK, REFUSED, TEAMS, Actor, order

GOOD = "well-behaved"
CUT_OFF = (0, *REFUSED)  # whoever sends no request gets a refusal or none


async def works(actor: Actor) -> None:
    """What an application under test does: reads most of the time, writes now and then."""
    sample = actor.own["sample"]
    turn = actor.turn % 8
    customer = f"/v2/customers/{sample['customerId']}"
    if turn in (0, 3):
        await actor.here("GET", customer)
    elif turn in (1, 5):
        await actor.here("GET", "/v2/orders?limit=20&sort=-totalAmount")
    elif turn == 2:
        await actor.here("PUT", customer, {"metadata": {"turn": str(actor.turn)}})
    elif turn == 4:
        await actor.here("GET", f"/v2/customers?page={1 + actor.luck.randrange(5)}")
    elif turn == 6:
        await actor.here("POST", "/v2/orders/pix", order(actor.own, actor.luck.randrange(10_000)))
    else:
        await actor.here("GET", f"/v2/projects/{sample['projectId']}/stats")


async def is_refused(actor: Actor) -> None:
    """Every kind of refusal."""
    turn = actor.turn % 8
    expected = REFUSED
    if turn == 0:
        await actor.here("POST", "/v2/orders/pix", b"{", expected=expected)
    elif turn == 1:
        await actor.here("POST", "/v2/orders/pix", {"items": [{}] * 100}, expected=expected)
    elif turn == 2:
        await actor.here("GET", "/v2/customers", token="eyJ.no.token", expected=expected)
    elif turn == 3:
        await actor.here(
            "GET", f"/v2/orders/{UUID(int=actor.luck.getrandbits(128))}", expected=expected
        )
    elif turn == 4:
        await actor.here("PATCH", "/v2/customers", {}, expected=expected)
    elif turn == 5:
        await actor.here("GET", "/v2/" + "x%C3%A9" * 2_000, expected=expected)
    elif turn == 6:
        body = order(actor.own, 1) | {"metadata": {"k" * 100_000: "v"}}
        await actor.here("POST", "/v2/orders/pix", body, expected=expected)
    else:
        stranger = {"Origin": "https://stranger.example", "Sec_Fetch_Site": "cross-site"}
        await actor.ask("GET", "/_sandbox/invariants", expected=expected, **stranger)


async def resets(actor: Actor) -> None:
    """A test run that begins anew: its team's world as it was, and a world of its own
    with another seed.
    """
    team = actor.luck.randrange(TEAMS)
    await actor.ask("POST", f"/s/team-{team}/_sandbox/reset")
    if actor.turn % 5 == 0:
        await actor.ask(
            "POST",
            f"/s/seeds-{actor.number}/_sandbox/reset",
            {"seed": actor.luck.randrange(1_000_000)},
        )


async def forks(actor: Actor) -> None:
    """A copy for one test: made, written to, dropped, or left to its time to live."""
    lasting = {"ttl_seconds": 3} if actor.turn % 2 else None
    made = await actor.ask("POST", f"/_sandbox/sandboxes/team-{actor.team}/fork", lasting)
    if made.status != 201:
        return
    world = made.json()["sandbox"]
    token = world["credentials"]["jwt"]
    await actor.ask(
        "POST", f"/s/{world['name']}/v2/orders/pix", order(actor.own, actor.turn), token
    )
    if lasting is None:
        await actor.ask("DELETE", f"/_sandbox/sandboxes/{world['name']}")


async def floods_names(actor: Actor) -> None:
    """A loop that makes up a new name each time: the worlds that nobody uses make room."""
    await actor.ask("GET", f"/s/flood-{actor.luck.getrandbits(40):x}/_sandbox/credentials")
    await actor.ask("GET", f"/s/-{actor.turn}-/_sandbox/health", expected=REFUSED)


async def floods_keys(actor: Actor) -> None:
    """A loop that makes up keys: of requests, of the API, and of merchants."""
    world = f"/s/keys-{actor.number}"
    if actor.turn % 300 == 0:
        await actor.ask("POST", f"{world}/_sandbox/reset")
    token = (await actor.ask("POST", f"{world}/_sandbox/tokens")).json()["token"]
    key = f"{actor.luck.getrandbits(64):x}"
    await actor.ask(
        "POST", f"{world}/v2/orders/pix", order(actor.own, 1), token, Idempotency_Key=key
    )
    await actor.ask("GET", f"{world}/v2/orders", token=f"sk_sandbox_{key * 3}", expected=REFUSED)
    stranger = {"merchant_id": str(UUID(int=actor.luck.getrandbits(128)))}
    await actor.ask("POST", f"{world}/_sandbox/tokens", stranger, expected=(201, 409))


async def is_slow(actor: Actor) -> None:
    """Heads and bodies that come by the byte, and answers that nobody reads."""
    head = f"POST /s/team-{actor.team}/v2/orders/pix HTTP/1.1\r\nHost: localhost\r\n".encode()
    body = b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    pieces = [head, *[b"X-Drip: y\r\n"] * 40] if actor.turn % 2 else [head + body, *[b" "] * 60]
    await actor.client.whisper(pieces, 0.5)


async def is_broken(actor: Actor) -> None:
    """What is no HTTP, and what ends too soon."""
    turn = actor.turn % 4
    if turn == 0:
        await actor.client.whisper([actor.luck.randbytes(2_000)], 0.05)
    elif turn == 1:
        await actor.client.whisper([b"GET / HTTP/1.1\r\nX: " + b"y" * 200_000], 0.05)
    elif turn == 2:
        await actor.client.whisper(
            [b"POST /v2/customers HTTP/1.1\r\nContent-Length: 500\r\n\r\n{"], 0.05
        )
    else:
        await actor.ask("GET", "/\x01", expected=CUT_OFF)
        actor.client.close()


async def is_large(actor: Actor) -> None:
    """Bodies near what is read, and past it; a world of records as large as they get."""
    world = f"/s/large-{actor.number}"
    if actor.turn % 60 == 0:
        await actor.ask("POST", f"{world}/_sandbox/reset")
    token = (await actor.ask("POST", f"{world}/_sandbox/tokens")).json()["token"]
    await actor.ask("POST", f"{world}/v2/orders/pix", order(actor.own, 1, items=100), token, OK)
    await actor.ask(
        "POST", f"{world}/v2/orders/pix", b"[" + b"1," * 500_000 + b"1]", token, REFUSED
    )
    await actor.ask("POST", f"{world}/v2/orders/pix", b" " * 1_100_000, token, (0, 413))
    actor.client.close()


async def judges(actor: Actor) -> None:
    """Somebody who trusts nobody."""
    await actor.here("GET", "/_sandbox/invariants")


async def looks_far(actor: Actor) -> None:
    """Long lists, deep pages, searches."""
    paths = (
        "/v2/orders?page=9999",
        "/v2/customers?name=a&limit=100",
        "/v2/webhooks/logs?limit=100",
        "/openapi.json",
    )
    await actor.here("GET", paths[actor.turn % len(paths)], expected=(*OK, *REFUSED))
    await actor.here("GET", "/_sandbox/events?limit=100")


class Kind(NamedTuple):
    """How many of a kind take part, how long each of them rests (seconds), and what each
    does in a turn.
    """

    clients: int
    pause: float
    turn: Callable[[Actor], Awaitable[None]]


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        GOOD: Kind(24, 0.25, works),
        "refused": Kind(8, 0.25, is_refused),
        "resetting": Kind(4, 2.5, resets),
        "forking": Kind(4, 1.0, forks),
        "flooding names": Kind(4, 0.35, floods_names),
        "flooding keys": Kind(4, 0.35, floods_keys),
        "slow": Kind(4, 0.1, is_slow),
        "broken": Kind(4, 0.5, is_broken),
        "large": Kind(2, 1.0, is_large),
        "judging": Kind(2, 2.0, judges),
        "looking far": Kind(4, 0.5, looks_far),
    }
)
