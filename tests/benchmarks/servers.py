"""The servers, each in a process of its own:

`python -m tests.benchmarks.servers NAME CORE`.
"""

import asyncio
import copy
import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from stub_server.app import create_app
from stub_server.cli.listening import listen, with_port
from stub_server.cli.serving import calm_collector, uvicorn_config
from stub_server.server.layers.routing import Application
from stub_server.server.protocol import ConnectionMonitor, Limits
from stub_server.server.reply import Reply
from stub_server.settings import Settings

from ..support.live import FROZEN
from .world import Handlers, Shot, shots, token


def ours(app: Application) -> ASGIApp:
    """The product as it is."""
    return app


def bare(app: Application) -> ASGIApp:
    """Starlette alone: routes to the same handlers, orjson for bodies, no authentication
    and no validation.
    """
    handlers = Handlers(app)

    async def get(request: Request) -> Response:
        return _plain(handlers.get(request.path_params["id"]))

    async def many(request: Request) -> Response:
        query = {
            "page": int(request.query_params.get("page", 1)),
            "limit": int(request.query_params.get("limit", 20)),
        }
        return _plain(await handlers.list(query))

    async def put(request: Request) -> Response:
        return _plain(handlers.put(request.path_params["id"], orjson.loads(await request.body())))

    async def post(request: Request) -> Response:
        return _plain(handlers.post(orjson.loads(await request.body())))

    return Starlette(
        routes=[
            Route("/v2/customers", many),
            Route("/v2/customers/{id}", get, methods=["GET"]),
            Route("/v2/customers/{id}", put, methods=["PUT"]),
            Route("/v2/orders/pix", post, methods=["POST"]),
        ]
    )


def _plain(reply: Reply) -> Response:
    return Response(b"".join(reply.parts), reply.status, media_type="application/json")


def stock(app: Application) -> ASGIApp:
    """Connexion's AsyncApp as it comes: the same contract and handlers, its own security and
    validation both ways.
    """
    import connexion
    from connexion.lifecycle import ConnexionResponse
    from connexion.resolver import Resolution, Resolver

    logging.getLogger("connexion").setLevel(logging.ERROR)
    handlers = Handlers(app)

    def answer(reply: Reply) -> Any:
        headers = {"X-Request-Id": "req_bench"} | {
            name.decode().title(): text.decode() for name, text in reply.headers
        }
        body = b"".join(reply.parts)
        return ConnexionResponse(
            status_code=reply.status, content_type="application/json", body=body, headers=headers
        )

    # Coroutines, for Connexion would send plain functions to a thread.
    async def get_customer(customerId: str) -> Any:
        return answer(handlers.get(customerId))

    async def list_customers(**query: Any) -> Any:
        return answer(await handlers.list({"page": 1, "limit": 20} | query))

    async def update_customer(customerId: str, body: Any) -> Any:
        return answer(handlers.put(customerId, body))

    async def create_pix_order(body: Any, **_: Any) -> Any:
        return answer(handlers.post(body))

    built: dict[str, Callable[..., Any]] = {
        "getCustomer": get_customer,
        "listCustomers": list_customers,
        "updateCustomer": update_customer,
        "createPixOrder": create_pix_order,
    }

    async def unmeasured(**_: Any) -> Any:
        return ConnexionResponse(status_code=501)

    # Connexion ships no types: to mypy its base class is Any, and so is what it makes.
    class Ours(Resolver):  # type: ignore[misc]
        def resolve(self, operation: Any) -> Resolution:
            return Resolution(built.get(operation.operation_id, unmeasured), operation.operation_id)

    raw = copy.deepcopy(app.server.document.raw)
    for scheme in raw["components"]["securitySchemes"].values():
        scheme["x-bearerInfoFunc"] = "tests.benchmarks.bearer.bearer_info"
    found = connexion.AsyncApp(__name__)
    found.add_api(raw, resolver=Ours(), validate_responses=True)
    served: ASGIApp = found
    return served


def floor(app: Application) -> ASGIApp:
    """No application at all: the bytes that the product would answer, written by hand
    to uvicorn.
    """
    handlers = Handlers(app)
    one, _, put, post = shots(app.sandboxes.default)
    ident = one.path.rpartition("/")[2]
    canned = {
        ("GET", one.path): handlers.get(ident),
        ("GET", "/v2/customers"): asyncio.run(handlers.list({"page": 1, "limit": 20})),
        ("PUT", put.path): handlers.put(ident, put.body or {}),
        ("POST", post.path): handlers.post(post.body or {}),
    }
    answers = {key: (reply.status, b"".join(reply.parts)) for key, reply in canned.items()}

    async def canned_bytes(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, body = answers[scope["method"], scope["path"]]
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return canned_bytes


DELIVERING = "ours, with deliveries"
SERVERS: dict[str, Callable[[Application], ASGIApp]] = {
    "ours": ours,
    DELIVERING: ours,
    "stock Connexion": stock,
    "bare Starlette": bare,
    "floor": floor,
}


def main(name: str, core: int) -> None:
    """Serve on a free port, tell the parent what to ask for, and go on until it ends us."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    settings = replace(FROZEN, port=0) if name == DELIVERING else Settings(port=0)
    with listen(settings) as (listener,):
        settings = with_port(settings, listener)
        app = create_app(settings)
        asked: list[Shot] = shots(app.sandboxes.default)
        print(
            json.dumps(
                {
                    "port": settings.port,
                    "token": token(app),
                    "shots": [asdict(shot) for shot in asked],
                }
            ),
            flush=True,
        )
        served = SERVERS[name](app)
        calm_collector()
        config = uvicorn_config(served, ConnectionMonitor(Limits()))
        if name != DELIVERING:
            config.lifespan = "off"
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
