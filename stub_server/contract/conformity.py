"""Whether a contract is valid: OpenAPI 3.0, and its own tables. For contracts that an overlay has changed."""

from collections.abc import Sequence
from pathlib import Path

from . import known, names, references
from .bundle import told_by
from .document import Document
from .extensions import check_shapes
from .source import ContractError, json_path


def check(document: Document, overlays: Sequence[Path] = ()) -> None:
    """Hold a contract to OpenAPI 3.0 and its tables to each other.

    Raises ContractError with the JSONPath of a fault, behind the files of `overlays`.
    """
    try:
        _check_openapi(document)
    except ContractError as error:
        raise told_by(overlays, error) from None
    check_tables(document, overlays)


def check_tables(document: Document, overlays: Sequence[Path] = ()) -> None:
    """Hold the tables of valid OpenAPI to each other. Raises ContractError like `check`."""
    try:
        check_shapes(document.raw)
        references.check(document)
        if "x-names-from" not in document.raw:
            names.check(document.raw, names.Names(document.raw))
            references.check_answers(document)
    except ContractError as error:
        raise told_by(overlays, error) from None


def check_known(document: Document, shipped: Document, overlays: Sequence[Path] = ()) -> None:
    """Hold a corrected contract to what the rules of the server are written for. Raises ContractError like `check`.

    States and sets of states may be added, and moves, events and scopes may be removed; a state, a set or the member
    that holds the state may not.
    """
    try:
        known.check_states(document, shipped)
        known.check_payloads(document, shipped)
    except ContractError as error:
        raise told_by(overlays, error) from None


def _check_openapi(document: Document) -> None:
    # Read only when needed: a contract without overlays was checked by the tests, and these are slow to import.
    from jsonschema import Draft4Validator
    from jsonschema.exceptions import best_match
    from openapi_spec_validator import OpenAPIV30SpecValidator
    from openapi_spec_validator.schemas import schema_v30

    for error in OpenAPIV30SpecValidator(document.raw).iter_errors():
        # Of a choice that nothing fits the validator tells only that; the best match is the member that is wrong.
        found = best_match(Draft4Validator(dict(schema_v30)).iter_errors(document.raw)) or error
        raise ContractError(f"{json_path(list(found.absolute_path))}: {found.message[:400]}")
