"""Security: Connexion's security middleware, with one plain check of the credential per operation."""

from time import perf_counter_ns
from typing import Any

from connexion.middleware.abstract import ROUTING_CONTEXT
from connexion.middleware.security import SecurityAPI, SecurityMiddleware, SecurityOperation
from connexion.operations import AbstractOperation
from starlette.types import Receive, Scope, Send

from ..calls.call import CALL, Call
from ..calls.credentials import Gate
from ..contract.document import Document, Operation


class _Operation(SecurityOperation):
    """Connexion reads the security requirement from the contract; our Gate checks it, without a request object."""

    def guard(self, operation: Operation, gate: Gate) -> "_Operation":
        self._operation, self._gate = operation, gate
        return self

    def _get_verification_fn(self) -> None:
        return None

    def admit(self, call: Call) -> None:
        """Let a request to the operation in, if its caller may. Raises Unauthenticated (401) or Forbidden (403)."""
        trace = call.trace
        call.operation = operation = self._operation
        trace.operation = operation.id
        if self.security:
            trace.auth_at = perf_counter_ns()
            self._gate.admit(call, operation)


class _API(SecurityAPI):
    def __init__(self, *args: Any, gate: Gate, documents: dict[str, Document], **kwargs: Any) -> None:
        self._gate, self._documents = gate, documents
        super().__init__(*args, **kwargs)

    def make_operation(self, operation: AbstractOperation) -> _Operation:
        view = self._documents[self.base_path].operations[operation.operation_id]
        guarded = _Operation.from_operation(
            operation, next_app=self.next_app, security_handler_factory=self.security_handler_factory
        )
        assert isinstance(guarded, _Operation)
        return guarded.guard(view, self._gate)


class Security(SecurityMiddleware):
    """Connexion's security middleware with our check in it."""

    api_cls = _API

    # Nothing is looked up that Routing has found.
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        routed = scope["extensions"][ROUTING_CONTEXT]
        (api,) = self.apis[routed["api_base_path"]]
        api.operations[routed["operation_id"]].admit(scope[CALL])
        return self.app(scope, receive, send)
