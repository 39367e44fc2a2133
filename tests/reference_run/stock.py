"""Connexion as it comes: its own routing, security, binding and validation of the contract that the
sandbox serves.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema_rs
from connexion import AsyncApp
from connexion.exceptions import NonConformingResponse
from connexion.lifecycle import ConnexionResponse
from connexion.middleware import ConnexionMiddleware, MiddlewarePosition
from connexion.middleware.response_validation import ResponseValidationMiddleware
from connexion.middleware.routing import RoutingMiddleware
from connexion.resolver import Resolver
from jsonschema import Draft4Validator

from stub_server.contract.formats import is_date_time, is_ip_network, is_uuid
from stub_server.domain.documents import is_document

from .wire import Decision, Request, send

SCOPES_OF: dict[str, dict[str, str]] = {}
"""The scopes of each known credential, by the security scheme that takes it."""


def _info(scheme: str) -> Callable[[str], dict[str, str] | None]:
    def find(token: str) -> dict[str, str] | None:
        scopes = SCOPES_OF[scheme].get(token)
        return None if scopes is None else {"sub": token, "scope": scopes}

    return find


jwt, bearer, publicBearer = map(_info, ("jwt", "bearer", "publicBearer"))


def with_native_scopes(contract: dict[str, Any]) -> dict[str, Any]:
    """The contract with its scopes where Connexion enforces them: in oauth2 schemes, in
    place of `x-scopes`.
    """
    changed = copy.deepcopy(contract)
    schemes = changed["components"]["securitySchemes"]
    operations = [operation for item in changed["paths"].values() for operation in item.values()]
    scopes = sorted({scope for operation in operations for scope in operation.get("x-scopes", ())})
    for name in schemes:
        flow = {"tokenUrl": "/token", "scopes": dict.fromkeys(scopes, "")}
        schemes[name] = {
            "type": "oauth2",
            "flows": {"clientCredentials": flow},
            "x-tokenInfoFunc": f"{__name__}.{name}",
        }
    for operation in operations:
        for requirement in operation["security"]:
            for name in requirement:
                requirement[name] = operation.get("x-scopes", [])
    return changed


def _of_library(name: str) -> Callable[[str], bool]:
    return jsonschema_rs.Draft4Validator({"format": name}, validate_formats=True).is_valid


FORMATS: dict[str, Callable[[str], bool]] = {
    "uuid": lambda text: is_uuid(text) is not None,
    "date-time": is_date_time,
    "ip-network": is_ip_network,
    "document": is_document,
    **{name: _of_library(name) for name in ("email", "uri", "uri-reference")},
}


@contextmanager
def formats_known() -> Iterator[None]:
    """Have Connexion's validators check the contract's formats: its dialect of JSON Schema knows
    few of them itself.
    """
    checker = Draft4Validator.FORMAT_CHECKER
    before = dict(checker.checkers)
    for name, accepts in FORMATS.items():
        checker.checks(name)(
            lambda value, accepts=accepts: not isinstance(value, str) or accepts(value)
        )
    try:
        yield
    finally:
        checker.checkers = before


class _Noting:
    """A layer after Connexion's routing, which notes the operation."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["noted"].operation = scope["extensions"]["connexion_routing"]["operation_id"]
        await self.app(scope, receive, send)


class Stock:
    """AsyncApp with a handler for every operation that answers nothing: what reaches it
    was accepted.
    """

    def __init__(self, contract: dict[str, Any]) -> None:
        self._reached: list[str] = []
        self._app = AsyncApp(__name__)
        self._app.add_middleware(_Noting, MiddlewarePosition.BEFORE_SECURITY)
        self._app.add_api(with_native_scopes(contract), resolver=Resolver(self._handler))

    def _handler(self, operation: str) -> Callable[..., Any]:
        async def accept(**arguments: Any) -> ConnexionResponse:
            self._reached.append(operation)
            return ConnexionResponse(status_code=200, content_type="application/json", body="{}")

        return accept

    async def decide(self, request: Request) -> Decision:
        """What Connexion makes of a request."""
        self._reached.clear()
        noted = Decision()
        noted.status = await send(self._app, request, noted=noted)
        noted.is_accepted = self._reached == [noted.operation]
        return noted


class Responses:
    """Connexion's routing and validation of responses, with an application behind them that answers
    what it is told.
    """

    def __init__(self, contract: dict[str, Any]) -> None:
        self._answer = (0, [("", "")], b"")
        self._app = ConnexionMiddleware(
            self._tell, middlewares=[RoutingMiddleware, ResponseValidationMiddleware]
        )
        self._app.add_api(
            contract, resolver=Resolver(lambda _operation: self._tell), validate_responses=True
        )

    async def _tell(self, scope: Any, receive: Any, send: Any) -> None:
        status, headers, body = self._answer
        told = [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
        ]
        await send({"type": "http.response.start", "status": status, "headers": told})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def fault(
        self, method: str, path: str, answer: tuple[int, list[tuple[str, str]], bytes]
    ) -> str | None:
        """What is wrong with an answer to a request; None for one that the contract has."""
        self._answer = answer
        try:
            status = await send(self._app, Request(method, path))
        except NonConformingResponse as error:
            return f"{method} {path}: {error.detail}"
        return None if status == answer[0] else f"{method} {path} answered {status}"
