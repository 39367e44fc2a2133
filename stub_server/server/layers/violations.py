"""Turns validation errors into details: one per violation, with what to send instead."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from ...contract.formats import UUID
from ...core.problem import Detail, detail
from ...core.record import Body
from ...core.text import counted, did_you_mean, shortened
from ...domain.documents import kind as kind_of

SHOWN = 80  # characters of a value in a message
MOST_GUESSED = 20  # unknown names that are compared with known ones, as that is slow
_MOST_OPTIONS = 20
_DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,6})?").fullmatch
# The code of each keyword of JSON Schema that a value may break.
_CODES = {
    "required": "required",
    "type": "type",
    "format": "format",
    "pattern": "format",
    "enum": "enum",
    "minimum": "min",
    "exclusiveMinimum": "min",
    "minLength": "min",
    "minItems": "min",
    "minProperties": "min",
    "maximum": "max",
    "exclusiveMaximum": "max",
    "maxLength": "max",
    "maxItems": "max",
    "maxProperties": "max",
    "multipleOf": "multiple_of",
    "uniqueItems": "unique",
    "additionalProperties": "unknown_field",
}
_TYPES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}
_BEGINS_WELL = re.compile(r"https?://[^\s\0/]", re.IGNORECASE).match
_WEB = "is not a web address. Begin with http:// or https://, and encode spaces."
_FORMATS = {
    "uri": _WEB,
    "email": "is not an e-mail address, such as marina@example.com.",
    "date-time": "is not a date-time with an offset, such as 2026-11-20T14:32:05Z.",
    "ip-network": "is neither an address nor a network, such as 203.0.113.7 or 203.0.113.0/24.",
}
_PATTERNS = {
    UUID: "is not a UUID, such as 0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55.",
    r"^[^\u0000]*$": "contains the character NUL (U+0000). Leave it out.",
    "^[A-Z]{2}$": "is not two capital letters, such as BR or SP.",
}

_BOUNDS = {
    "minimum": "is less than the minimum of",
    "maximum": "is greater than the maximum of",
    "exclusiveMinimum": "must be greater than",
    "exclusiveMaximum": "must be less than",
    "multipleOf": "is not a multiple of",
}
_COUNTED = {
    "minLength": ("is shorter than", "character"),
    "maxLength": ("is longer than", "character"),
    "minItems": ("has less than", "item"),
    "maxItems": ("has more than", "item"),
    "maxProperties": ("has more than", "field"),
}
_SENTENCES = {
    "required": "This field is required.",
    "uniqueItems": "{} has the same item twice.",
    "not": "The contract does not allow these fields together. Leave one of them out.",
}

SchemaAt = Callable[[Sequence[str | int]], Body]
"""Returns the contract's schema at a place of the request, empty where it has none."""


def details_of(error: Any, schema_at: SchemaAt) -> list[Detail]:
    """A validator's error as details; an object with three unknown members gives three."""
    kind = error.kind.name
    path = list(error.instance_path)
    place, inside = str(path[0]) if path else "body", path[1:]
    code = _CODES.get(kind, "invalid")
    if path and any(getattr(error.kind, "context", ())):
        return _details_of_branches(error, schema_at)
    if kind == "additionalProperties":
        known = list(schema_at(path).get("properties", ()))
        return [
            detail(field_name([*inside, name]), code, advice, place)
            for name, advice in _unknown(error.kind.unexpected, known)
        ]
    if kind == "required":
        inside = [*inside, error.kind.property]
    field = field_name(inside)
    if not path:
        return [detail(field or "body", code, "A body is required.", "body")]
    if kind == "format" and error.kind.format == "document":
        return [detail(field, "invalid_document", document_advice(error.instance), place)]
    return [detail(field or place, code, _message(error, schema_at(path)), place)]


def _details_of_branches(error: Any, schema_at: SchemaAt) -> list[Detail]:
    """Details of a value that satisfies none of several schemas: what the nearest one demands."""
    path = list(error.instance_path)
    branches: Sequence[Sequence[Any]] = error.kind.context
    details = []
    for each in min(branches, key=lambda errors: _distance(errors, path)):
        details += details_of(each, schema_at)
    return details


def unread(body: bytes, error: ValueError) -> str:
    """Why a body could not be read as JSON, and what to do if that is known."""
    try:
        body.decode()
    except UnicodeDecodeError as wrong:
        return (
            f"The body is not UTF-8, as JSON is: byte {wrong.start + 1} is"
            f" 0x{body[wrong.start]:02X}."
        )
    return f"The body is not JSON: {str(error)[:200]}."


def field_name(path: list[Any]) -> str:
    """`["items", 0, "amount"]` -> `items[0].amount`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif text:
            text += f".{step}"
        else:
            text = str(step)
    return text[:200]


def document_advice(value: object) -> str:
    """Why a text is not a CPF, CNPJ or passport."""
    digits = "".join(c for c in str(value) if c not in ".-/")
    if any(c.isdigit() and not c.isascii() for c in digits):
        return "Write the document in digits 0 to 9."
    if len(digits) == 11 and digits.isdigit():
        return "CPF check digits do not match."
    if len(digits) == 14 and " " not in digits:
        return "CNPJ check digits do not match."
    for kind, length in (("cpf", 11), ("cnpj", 14)):
        if len(digits) < length and digits.isdigit() and kind_of(digits.zfill(length)) == kind:
            return (
                f"A {kind.upper()} has {length} digits; leading zeros may have been lost:"
                f" {digits.zfill(length)}."
            )
    return (
        "Send a CPF (11 digits), a CNPJ (14 characters) or a passport (5 to 9 letters A-Z and"
        " digits, one of them a letter; any other, of up to 20, needs document_type passport)."
    )


def _unknown(found: Sequence[str], known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each unknown name, with what may have been meant: fields that are known, where there are
    few.
    """
    listed = ""
    if 0 < len(known) <= _MOST_OPTIONS:
        listed = f" Known are {', '.join(known)}."
    for number, name in enumerate(found):
        hint = ""
        if number < MOST_GUESSED:
            hint = did_you_mean(name, known) or listed
        yield name, f"The contract has no such field here.{hint}"


def _distance(errors: Sequence[Any], path: list[Any]) -> tuple[bool, bool, int]:
    """How far the value at a path is from a schema that breaks so: the nearest one says what to
    mend. One that is for values of another type is farthest.
    """
    count, is_of_another_type, excludes = 0, False, False
    for each in errors:
        is_unknown = each.kind.name == "additionalProperties"
        count += len(each.kind.unexpected) if is_unknown else 1
        if each.kind.name == "type" and list(each.instance_path) == path:
            is_of_another_type = True
        if each.kind.name in ("enum", "not"):
            excludes = True
    return is_of_another_type, excludes, count


def _message(error: Any, schema: Body) -> str:
    """What is wrong with a value, and what to send, in a sentence.

    `schema` is the contract's at its place.
    """
    kind, value = error.kind, shown(error.instance)
    match kind.name:
        case "type":
            return f"{value} has the wrong type: send {_types(_names(error), error.instance)}."
        case "format":
            return f"{value} {_FORMATS.get(kind.format, f'is no valid {kind.format}.')}"
        case "pattern":
            return f"{value} {_form(error, schema)}"
        case "enum":
            return f"{value} is not one of {_options(error.instance, list(kind.options))}"
    if kind.name in _COUNTED:
        comparison, noun = _COUNTED[kind.name]
        return f"{value} {comparison} {counted(kind.limit, noun)}."
    if kind.name == "minProperties":
        return f"Send at least one of {', '.join(schema.get('properties', ())) or 'its fields'}."
    if kind.name in _BOUNDS:
        bound = kind.multiple_of if kind.name == "multipleOf" else kind.limit
        return f"{value} {_BOUNDS[kind.name]} {bound}."
    return _SENTENCES.get(kind.name, "{} does not satisfy {} of the contract.").format(
        value, kind.name
    )


def shown(value: Any) -> str:
    """A value as JSON, cut short."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # orjson knows 64 bits
        text = str(value)
    return shortened(text, SHOWN)


def _names(error: Any) -> list[str]:
    """The types that a value should have had; none for an error of another kind."""
    types = getattr(error.kind, "types", ())
    return [types] if isinstance(types, str) else list(types)


def _types(types: Sequence[str], value: Any) -> str:
    names = sorted(dict.fromkeys(types), key=lambda name: name == "null")
    wanted = " or ".join(_TYPES.get(name, name) for name in names)
    if names[0] != "number" or not isinstance(value, str):
        return wanted
    number = value.replace(",", ".")
    return f"{wanted}, such as {number if _DECIMAL(number) else '49.90'}"


def _form(error: Any, schema: Body) -> str:
    """What is wanted of a text in place of one that another pattern has, in the words that the
    contract has for it.
    """
    pattern = error.kind.pattern
    if schema.get("format") == "uri" and not _BEGINS_WELL(str(error.instance)):
        return _WEB
    if pattern in _PATTERNS:
        return _PATTERNS[pattern]
    text = "does not fit"
    described = " ".join(str(schema.get("description", "")).split()).partition(". ")[0].rstrip(".")
    if described:
        text += f": {described}"
    if "example" in schema:
        text += f", such as {schema['example']}"
    if len(pattern) <= SHOWN:
        text += f" ({pattern})"
    return f"{text}."


def _options(value: Any, options: list[Any]) -> str:
    texts = [option if isinstance(option, str) else shown(option) for option in options]
    hint = did_you_mean(value, texts) if isinstance(value, str) else ""
    if len(texts) > _MOST_OPTIONS:
        return f"the {len(texts)} that the contract lists.{hint}"
    return f"{', '.join(texts)}.{hint}"
