"""The same seed, clock and requests give the same bytes, wherever the sandboxes are stored."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import httpx2
import pytest

from ..support.live import FROZEN, NO_TLS, Live, running
from ..support.recordings import Session

pytestmark = [pytest.mark.check, pytest.mark.turn]
SHOWN = "http://127.0.0.1:4600"
# By the machine's clock: when sandboxes were made, tokens, keys of controls, and how far a
# sandbox's clock is off.
OF_THE_MOMENT = re.compile(
    rb'"(created_at|last_used_at|expires_at|jwt|token|control_key|offset_seconds)":("[^"]*"|-?[0-9.]+)'
)
SETTINGS = replace(FROZEN, base_url=SHOWN, seed=31)


class Exchange(NamedTuple):
    """A request and its answer: status, headers, body."""

    request: httpx2.Request
    answer: tuple[int, dict[str, str], bytes]


def told(answer: httpx2.Response) -> tuple[int, dict[str, str], bytes]:
    """An answer without what is of the moment."""
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in ("date", "content-length")
    }
    return answer.status_code, headers, OF_THE_MOMENT.sub(rb'"\1":*', answer.read())


@contextmanager
def client(live: Live, path: str, token: str = "") -> Iterator[httpx2.Client]:
    """A client of a server."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx2.Client(
        base_url=live.url + path, headers=headers, timeout=60, verify=NO_TLS
    ) as made:
        yield made


def session(live: Live) -> list[Exchange]:
    """A session of many kinds of requests."""
    kept: list[Exchange] = []
    with client(live, "/s/one/_sandbox") as control:
        jwt = control.get("/credentials").json()["jwt"]
        control.event_hooks = {
            "response": [lambda answer: kept.append(Exchange(answer.request, told(answer)))]
        }
        with client(live, "/s/one", jwt) as api:
            api.event_hooks = control.event_hooks
            Session(api, control, "https://shop.example/hook", seed=7).run(250)
            api.get("/v2/orders", params={"limit": 100})
        for path in ("/events?limit=100", "/sandboxes", "/clock", "/check", "/steps?limit=100"):
            control.get(path)
    return kept


def again(
    live: Live, kept: list[Exchange]
) -> Iterator[tuple[Exchange, tuple[int, dict[str, str], bytes]]]:
    """The same requests, with the answers of another server."""
    with client(live, "") as asked:
        asked.get("/s/one/_sandbox/credentials")
        for exchange in kept:
            request = exchange.request
            headers = [
                (name, value) for name, value in request.headers.raw if name.lower() != b"host"
            ]
            url = live.url + request.url.raw_path.decode()
            yield (
                exchange,
                told(asked.request(request.method, url, headers=headers, content=request.read())),
            )


@pytest.mark.parametrize("store", [None, "tmp_path", "database"])
def test_a_session_is_answered_as_it_is_in_memory(
    store: str | None, request: pytest.FixtureRequest
) -> None:
    with running(SETTINGS) as live:
        kept = session(live)
    assert {200, 201, 400, 401, 404, 409, 422} <= {exchange.answer[0] for exchange in kept}
    with running(replace(SETTINGS, store=store and request.getfixturevalue(store))) as live:
        for exchange, answer in again(live, kept):
            assert exchange.answer == answer, f"{exchange.request.method} {exchange.request.url}"
