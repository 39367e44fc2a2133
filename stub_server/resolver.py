"""Finds the function of each operation (tag -> module, operationId -> function), and the arguments that it takes."""

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

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


class Handlers:
    """The handlers of one contract, in the modules of one package: each is imported with the first request to it."""

    def __init__(self, document: Document, package: str) -> None:
        self.document, self._package = document, package

    def handler(self, operation: Operation) -> Callable[..., Any]:
        """The handler of an operation, or one that raises NotBuilt: an operation that an overlay added has none."""
        return self.function(operation) or _not_built(operation.id)

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


def _not_built(ident: str) -> Callable[..., Any]:
    def handler(*_: Any, **__: Any) -> Any:
        raise NotBuilt(f"The contract lists {ident}, but this sandbox has no behaviour for it.")

    return handler


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
    named = {parameter.name: str(parameter.annotation) for parameter in parameters[1:]}
    body, query = named.pop("body", None), named.pop("query", None)
    return Takes(len(named), query is not None, body is not None, body is not None and "None" not in body)
