"""Whether a contract is valid: OpenAPI 3.0, and its own tables. For contracts that an overlay has changed."""

from .document import Document
from .source import ContractError, json_path


def check(document: Document) -> None:
    """Hold a contract to OpenAPI 3.0 and to its table of scopes. Raises ContractError with the JSONPath of a fault."""
    # Read only when needed: a contract without overlays was checked by the tests, and these are slow to import.
    from jsonschema import Draft4Validator
    from jsonschema.exceptions import best_match
    from openapi_spec_validator import OpenAPIV30SpecValidator
    from openapi_spec_validator.schemas import schema_v30

    for error in OpenAPIV30SpecValidator(document.raw).iter_errors():
        # Of a choice that nothing fits the validator tells only that; the best match is the member that is wrong.
        found = best_match(Draft4Validator(dict(schema_v30)).iter_errors(document.raw)) or error
        raise ContractError(f"{json_path(list(found.absolute_path))}: {found.message[:400]}")
    known = {scope["name"] for scope in document.scopes}
    for operation in document.operations.values():
        for scope in sorted(operation.scopes - known):
            where = json_path(["paths", operation.path, operation.method.lower(), "x-scopes"])
            raise ContractError(f"{where}: {scope} is no scope of this contract")
