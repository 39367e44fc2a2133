"""The way of a request through the files: which functions of the package are called, in
their order.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from stub_server.app import PACKAGE, create_app

from ..support.live import FROZEN
from ..support.make import order_body

WARM = 3  # times that a request is sent before it is looked at


def files_of(action: Callable[[], Any]) -> list[str]:
    """The file of each call of a function of the package, while something is done."""
    start = f"{PACKAGE}{Path('/')}"
    found = list[str]()

    def note(frame: Any, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(start):
            found.append(frame.f_code.co_filename.removeprefix(start))

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


def ways() -> dict[str, list[str]]:
    """The ways of a PIX order and of a list, through a server that has answered such
    requests before.
    """
    app = create_app(FROZEN)
    transport = httpx2.ASGITransport(app)
    loop = asyncio.new_event_loop()
    client = httpx2.AsyncClient(transport=transport, base_url=FROZEN.url)
    try:
        made = loop.run_until_complete(client.get("/_sandbox/credentials")).json()
        headers = {"authorization": f"Bearer {made['jwt']}"}
        body = order_body(made["sample"]["projectId"], made["sample"]["planId"])
        order = client.build_request("POST", "/v2/orders/pix", json=body, headers=headers)
        listed = client.build_request("GET", "/v2/orders?limit=20", headers=headers)
        found = {}
        for name, request in (("a PIX order", order), ("a list of orders", listed)):
            for _ in range(WARM):
                answer = loop.run_until_complete(client.send(request))
                assert answer.is_success, answer.text

            def once(request: Any = request) -> None:
                loop.run_until_complete(client.send(request))

            found[name] = files_of(once)
    finally:
        loop.run_until_complete(client.aclose())
        loop.close()
    return found
