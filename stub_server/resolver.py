"""Finds the function of each operation (tag -> module, operationId -> function), and the arguments that it takes."""

import importlib
import inspect
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from connexion.operations import AbstractOperation
from connexion.resolver import Resolution, Resolver

from .contract.document import Document, Operation
from .contract.source import ContractError, json_path
from .kernel.problem import NotBuilt

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake(name: str) -> str:
    """`createPixOrder` -> `create_pix_order`."""
    return _WORD.sub("_", name).lower()


def module_of(package: str, tag: str) -> str:
    """`API keys` -> `stub_server.operations.api_keys`."""
    return f"{package}.{tag.lower().replace(' ', '_')}"


class _Found(Resolution):
    """Imports the module of a handler at the first request, for Validation and Dispatch."""

    def __init__(self, find: Callable[[], Callable[..., Any]], operation_id: str) -> None:
        self._find, self.operation_id = find, operation_id

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The handler."""
        return self._find()


class Handlers(Resolver):
    """Connexion's resolver for one contract, whose handlers are in one package."""

    def __init__(self, document: Document, package: str) -> None:
        super().__init__()
        self._document, self._package = document, package

    def resolve(self, operation: AbstractOperation) -> Resolution:
        """The function of an operation; an operation that an overlay added has none, and its answer is 501."""
        view = self._document.operations[operation.operation_id]
        return _Found(lambda: self.handler(view), view.id)

    def handler(self, operation: Operation) -> Callable[..., Any]:
        """The handler of an operation, or one that raises NotBuilt."""

        def not_built(*_: Any, **__: Any) -> Any:
            raise NotBuilt(f"The contract lists {operation.id}, but this sandbox has no behaviour for it.")

        return self.function(operation) or not_built

    def function(self, operation: Operation) -> Callable[..., Any] | None:
        """The handler of an operation, or None."""
        name = module_of(self._package, operation.tag)
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            return None
        found: Callable[..., Any] | None = getattr(module, snake(operation.id), None)
        return found


def check_fit(operation: Operation, handler: Callable[..., Any]) -> None:
    """Raise ContractError for an operation that its handler can never serve."""
    takes = takes_of(handler)
    where = f"{json_path(['paths', operation.path, operation.method.lower()])}: {operation.id}"
    ids = operation.path.count("{")
    if not takes.anything and ids != takes.ids:
        raise ContractError(f"{where} works with {takes.ids} ids in its path, and here the path has {ids}")
    if takes.body_needed and operation.body is None:
        raise ContractError(f"{where} cannot do without a request body, and here it has none")


class Takes(NamedTuple):
    """The arguments of a handler: number of path ids, query, body; `body_needed` if the body cannot be None.

    A handler that raises NotBuilt takes `anything`.
    """

    ids: int = 0
    query: bool = False
    body: bool = False
    body_needed: bool = False
    anything: bool = False


def takes_of(handler: Callable[..., Any]) -> Takes:
    """The parameters in a handler's signature."""
    parameters = list(inspect.signature(handler).parameters.values())
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return Takes(anything=True)
    named = {parameter.name: parameter for parameter in parameters[1:]}
    body = named.pop("body", None)
    query = named.pop("query", None)
    return Takes(
        len(named), query is not None, body is not None, body is not None and "None" not in str(body.annotation)
    )
