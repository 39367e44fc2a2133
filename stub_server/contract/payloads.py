"""Fills the schemas marked `x-one-of-from` with a choice of all webhook payloads, for clients that parse deliveries."""

from .source import Json

SOURCE = "x-one-of-from"


class Payloads:
    """The generated choices of one document. One that an overlay has changed is not generated again."""

    def __init__(self) -> None:
        self._written: dict[str, Json] = {}

    def insert(self, document: dict[str, Json]) -> None:
        """Generate every choice that no overlay has changed: a schema for each kind of payload."""
        components = document.get("components")
        schemas = components.get("schemas") if isinstance(components, dict) else None
        items = document.get("x-webhooks")
        if not isinstance(schemas, dict) or not isinstance(items, dict):
            return
        for name, schema in schemas.items():
            if not isinstance(schema, dict) or SOURCE not in schema:
                continue
            before = {key: schema[key] for key in ("oneOf", "discriminator") if key in schema}
            if before != self._written.get(name, {}):
                continue
            mapping = {
                event: reference for event, item in items.items() if (reference := payload_reference(item)) is not None
            }
            choice: Json = {
                "oneOf": [{"$ref": reference} for reference in dict.fromkeys(mapping.values())],
                "discriminator": {"propertyName": "type", "mapping": mapping},
            }
            if not mapping:  # an empty choice would accept nothing
                choice = {}
                schema.pop("oneOf", None)
                schema.pop("discriminator", None)
            schema.update(choice)
            self._written[name] = choice


def payload_reference(item: Json) -> str | None:
    """The `$ref` of an event's payload, None if the schema is written in place."""
    try:
        reference = item["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    except (KeyError, TypeError):
        return None
    return reference if isinstance(reference, str) else None
