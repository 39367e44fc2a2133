"""What the validator found, in the words of the contract: one detail per violation."""

from typing import Any

from ..kernel.problem import Detail, detail

_SHOWN = 80
_CODES = {
    "Required": "required",
    "Type": "type",
    "Format": "format",
    "Pattern": "format",
    "Enum": "enum",
    "Constant": "enum",
    "Minimum": "min",
    "ExclusiveMinimum": "min",
    "MinLength": "min",
    "MinItems": "min",
    "MinProperties": "min",
    "Maximum": "max",
    "ExclusiveMaximum": "max",
    "MaxLength": "max",
    "MaxItems": "max",
    "MaxProperties": "max",
    "MultipleOf": "multiple_of",
    "UniqueItems": "unique",
    "AdditionalProperties": "unknown_field",
}


def details_of(error: Any) -> list[Detail]:
    """A validator's error as details; an object with three unknown members gives three."""
    kind = type(error.kind).__name__.rpartition("_")[2]
    path = list(error.instance_path)
    place, inside = str(path[0]) if path else "body", path[1:]
    code = _CODES.get(kind, "invalid")
    if kind == "AdditionalProperties":
        advice = "The contract has no such field. An overlay (--overlay) adds one; --unknown-fields ignore drops it."
        return [detail(field_name([*inside, name]), code, advice, place) for name in error.kind.unexpected]
    if kind == "Required":
        inside = [*inside, error.kind.property]
    if not path:
        return [detail("body" if not inside else field_name(inside), code, "A body is required.", "body")]
    if kind == "Format" and error.kind.format == "document":
        return [detail(field_name(inside), "invalid_document", document_advice(error.instance), place)]
    return [detail(field_name(inside) or place, code, _message(error, kind), place)]


def field_name(path: list[Any]) -> str:
    """`["items", 0, "amount"]` -> `items[0].amount`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else str(step))
    return text[:200]


def document_advice(value: object) -> str:
    """Why a text is no Brazilian document."""
    digits = "".join(c for c in str(value) if c not in ".-/ ")
    if len(digits) == 11 and digits.isdigit():
        return "CPF check digits do not match."
    if len(digits) == 14:
        return "CNPJ check digits do not match."
    return "Send a CPF (11 digits), a CNPJ (14 characters) or a passport (5 to 20 letters A-Z and digits)."


def _message(error: Any, kind: str) -> str:
    value = error.instance
    shown = repr(value) if not isinstance(value, str) else f'"{value}"'
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
    match kind:
        case "Required":
            return "This field is required."
        case "Type":
            return f"{shown} has the wrong type; expected {_types(error.kind)}."
        case "Format":
            return f"{shown} is not a valid {error.kind.format}."
        case "Enum":
            return f"{shown} is not one of {', '.join(map(_plain, error.kind.options))}."
        case "UniqueItems":
            return "The items must differ from each other."
        case "MinProperties":
            return "Send at least one field."
        case "Not":
            return "These fields do not go together. The contract says which do."
    # The value may be a whole object or a megabyte of text: say it shortened.
    return error.message if len(error.message) <= 200 else f"{shown} does not satisfy {kind}."


def _types(kind: Any) -> str:
    types = kind.types
    return types if isinstance(types, str) else " or ".join(map(str, types))


def _plain(option: object) -> str:
    return "null" if option is None else str(option)
