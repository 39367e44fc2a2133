"""Checks a contract that overlays have changed, against OpenAPI 3.0 and its own extension tables."""

from collections.abc import Sequence
from pathlib import Path

from . import followed, known, names, references
from .bundle import name_overlays, path_to
from .document import Document
from .extensions import check_shapes
from .source import ContractError, json_path


def check(document: Document, overlays: Sequence[Path] = (), shipped: Document | None = None) -> None:
    """Check a contract against OpenAPI 3.0, and its tables against each other.

    Raises ContractError with the files of `overlays` and the JSONPath of a fault; where `shipped`, the contract without
    them, is known, with the file and line of the action that brought it.
    """
    try:
        _check_openapi(document)
    except ContractError as error:
        raise name_overlays(overlays, error, None if shipped is None else shipped.raw) from None
    check_tables(document, overlays, shipped)


def check_tables(document: Document, overlays: Sequence[Path] = (), shipped: Document | None = None) -> None:
    """Check the tables of a valid OpenAPI document against each other. Raises ContractError like `check`."""
    try:
        check_shapes(document.raw)
        references.check(document)
        if "x-names-from" not in document.raw:
            names.check(document.raw, names.Names(document.raw))
            references.check_answers(document)
    except ContractError as error:
        raise name_overlays(overlays, error, None if shipped is None else shipped.raw) from None


def check_known(document: Document, shipped: Document, overlays: Sequence[Path] = ()) -> None:
    """Check that a contract with overlays keeps what the server's rules need. Raises ContractError like `check`.

    An overlay may add states, sets of states and unique keys, and remove moves, events and scopes. It may not remove a
    state, a set, the member that holds the state, or a unique key by which the server finds records.
    """
    try:
        known.check_states(document, shipped)
        known.check_unique(document, shipped)
        known.check_payloads(document, shipped)
        known.check_answers(document, shipped)
        followed.check(document, shipped)
    except ContractError as error:
        raise name_overlays(overlays, error, shipped.raw) from None


def _check_openapi(document: Document) -> None:
    # Imported here because they are slow to import and a start without overlays does not need them.
    from jsonschema import Draft4Validator
    from jsonschema.exceptions import best_match
    from openapi_spec_validator import OpenAPIV30SpecValidator
    from openapi_spec_validator.schemas import schema_v30

    for error in OpenAPIV30SpecValidator(document.raw).iter_errors():
        # For a choice without a match the validator only says so; the best match is the member that is wrong.
        found = best_match(Draft4Validator(dict(schema_v30)).iter_errors(document.raw)) or error
        # A default is checked by itself: where its schema is, is looked up.
        place = list(found.absolute_path) or path_to(found.schema, document.raw) or []
        raise ContractError(f"{json_path(place)}: {found.message[:400]}")
