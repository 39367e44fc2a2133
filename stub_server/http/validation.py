"""Validation: reads the body, and checks it and the parameters against the contract, with every violation at once."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from typing import Any

from connexion.middleware.abstract import ROUTING_CONTEXT, SpecMiddleware
from connexion.spec import Specification
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, Call
from ..contract.document import Document, Operation
from ..contract.schema import Schemas
from ..domain.documents import checks_digits
from .bodies import Uploads, read_body
from .requests import OperationRequests, takes_of

# Said for the API only: overlays do not apply to the control contract.
_OVERLAYS = " An overlay (--overlay) adds one; --unknown-fields ignore drops it."


class Validation(SpecMiddleware):
    """Passes on the arguments of the handler."""

    def __init__(
        self, app: ASGIApp, schemas: Mapping[str, Schemas], shipped: Document | None, *, ignore_unknown: bool
    ) -> None:
        """`schemas` by base path; `shipped` is the API's contract without overlays, if any."""
        self.app, self._schemas, self._shipped, self._ignore_unknown = app, schemas, shipped, ignore_unknown
        self._uploads = Uploads()
        self._apis: dict[str, tuple[Document, Any]] = {}
        self._requests: dict[str, dict[str, OperationRequests]] = {}

    def add_api(self, specification: Specification, base_path: str | None = None, **options: Any) -> None:
        """Take the operations of an API. Each is compiled at its first request: a start has no time for all."""
        base = specification.base_path if base_path is None else base_path
        self._apis[base], self._requests[base] = (options["documents"][base], options["resolver"]), {}

    def _compile(self, base: str, ident: str) -> OperationRequests:
        document, resolver = self._apis[base]
        operation: Operation = document.operations[ident]
        takes = takes_of(resolver.handler(operation))
        compiled = OperationRequests(
            operation,
            document,
            self._schemas[base],
            takes,
            ignore_unknown=self._ignore_unknown,
            may_reject_query=not base,
            further="" if base else _OVERLAYS,
        )
        made_for = self._shipped.operations.get(ident) if self._shipped is not None and not base else None
        if self._shipped is not None and made_for is not None:
            compiled.rely_on(
                OperationRequests(made_for, self._shipped, self._schemas[base], takes, ignore_unknown=False)
            )
        self._requests[base][ident] = compiled
        return compiled

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        routed = scope["extensions"][ROUTING_CONTEXT]
        base, ident = routed["api_base_path"], routed["operation_id"]
        requests = self._requests[base].get(ident) or self._compile(base, ident)
        call.trace.validate_at = perf_counter_ns()
        if checks_digits.get() is not call.sandbox.settings.check_digits:
            checks_digits.set(call.sandbox.settings.check_digits)
        if requests.has_body:
            return self._with_body(requests, scope, receive, send)
        call.values, call.arguments = requests.read(call)
        if requests.upload is not None:
            return self._with_file(requests.upload, scope, receive, send)
        return self.app(scope, receive, send)

    async def _with_body(self, requests: OperationRequests, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        call.body_bytes = await read_body(receive, call.headers.get(b"content-length"))
        call.values, call.arguments = requests.read(call)
        await self.app(scope, receive, send)

    async def _with_file(self, media: str, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._uploads.taken(scope[CALL], receive, media):
            await self.app(scope, receive, send)
