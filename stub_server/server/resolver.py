"""Finds the function of each operation: tag -> module, operationId -> function."""

import importlib
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from connexion.operations import AbstractOperation
from connexion.resolver import Resolution, Resolver

from ..contract.document import Document, Operation
from ..core.problem import NotBuilt
from .work import Work

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake(name: str) -> str:
    """`createPixOrder` -> `create_pix_order`."""
    return _WORD.sub("_", name).lower()


def not_built(work: Work, *ids: str) -> Any:
    """The handler of an operation that an overlay added: its answer is 501."""
    raise NotBuilt(
        f"The contract lists {work.trace.operation}, but this sandbox has no behaviour for it."
    )


class Handlers(Resolver):
    """Connexion's resolver for one contract, whose handlers are in one package."""

    def __init__(self, shipped: Document, package: str) -> None:
        """`shipped` is what the handlers are written for: the contract without overlays."""
        super().__init__()
        self._shipped, self._package = shipped, package

    def resolve(self, operation: AbstractOperation) -> Resolution:
        """What finds the function of an operation: its module is imported at the first request."""
        ident = operation.operation_id
        return Resolution(partial(self.function, self._shipped.operations.get(ident)), ident)

    def function(self, operation: Operation | None) -> Callable[..., Any] | None:
        """The handler of a shipped operation, or None. An overlay names no handler."""
        if operation is None:
            return None
        # `API keys` -> `stub_server.operations.api_keys`
        name = f"{self._package}.{operation.tag.lower().replace(' ', '_')}"
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            return None
        found: Callable[..., Any] | None = getattr(module, snake(operation.id), None)
        return found
