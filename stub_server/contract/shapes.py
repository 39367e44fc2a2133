"""Checks the shapes of a contract's extension tables, by `extensions.yaml`, before anything is generated from them."""

import re
from pathlib import Path

from .source import Json, Place, error_at, read

_JSON = "application/json"
_SHAPES = Path(__file__).with_name("extensions.yaml")
# A webhook subscribes to `resource.*`, and payloads contain the name without escaping.
_EVENT_NAME = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+").fullmatch


def check_shapes(raw: Json) -> None:
    """Check the shape of every extension table of a document. Raises ContractError with the JSONPath of a fault."""
    from jsonschema import Draft4Validator  # slow to import, and only needed with overlays
    from jsonschema.exceptions import best_match
    from openapi_spec_validator.schemas import schema_v30

    def match(shape: Json, value: Json, place: Place) -> None:
        error = best_match(Draft4Validator(shape).iter_errors(value))
        if error is not None:
            raise error_at([*place, *error.absolute_path], error.message[:400])

    match(read(_SHAPES), raw, [])
    # OpenAPI 3.0 has no webhooks, so its validator does not check payload schemas that are written in place.
    payload = {"$ref": "#/definitions/Schema", "definitions": schema_v30["definitions"]}
    for name, item in raw.get("x-webhooks", {}).items():
        if _EVENT_NAME(name) is None:
            raise error_at(["x-webhooks", name], "call an event resource.past_tense")
        schema = item["post"]["requestBody"]["content"][_JSON]["schema"]
        if "$ref" not in schema:
            match(payload, schema, ["x-webhooks", name, "post", "requestBody", "content", _JSON, "schema"])
