"""Turns validation errors into details: one per violation, with what to send instead."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import orjson

from ...contract.source import fixture
from ...core.problem import Detail, detail
from ...core.record import Body
from ...core.text import counted, did_you_mean, shortened
from ...domain.documents import kind as kind_of

SHOWN = 80  # characters of a value in a message
MOST_GUESSED = 20  # unknown names that are compared with known ones, as that is slow
_MOST_OPTIONS = 20
_DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,6})?").fullmatch
_BEGINS_WELL = re.compile(r"https?://[^\s\0/]", re.IGNORECASE).match


@cache
def _words(kind: str) -> Body:
    """What is said of `keywords`, `types`, `formats` or `patterns`."""
    found: Body = fixture("violations.yaml")[kind]
    return found


SchemaAt = Callable[[Sequence[str | int]], Body]
"""Returns the contract's schema at a place of the request, empty where it has none."""


def details_of(error: Any, schema_at: SchemaAt) -> list[Detail]:
    """A validator's error as details; an object with three unknown members gives three."""
    kind = error.kind.name
    path = list(error.instance_path)
    place, inside = str(path[0]) if path else "body", path[1:]
    code = _words("keywords").get(kind, {"code": "invalid"})["code"]
    if path and any(getattr(error.kind, "context", ())):  # what the nearest schema demands
        branch = min(error.kind.context, key=_distance)
        return list(chain.from_iterable(details_of(each, schema_at) for each in branch))
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


def _distance(errors: Sequence[Any]) -> tuple[bool, bool, int]:
    """How far a value is from a schema that breaks so: the nearest one says what to mend. One that
    is for values of another type is farthest.
    """
    kinds = [each.kind.name for each in errors]
    count = len(kinds)
    for each in errors:
        if each.kind.name == "additionalProperties":
            count += len(each.kind.unexpected) - 1
    return kinds == ["type"], "enum" in kinds or "not" in kinds, count


def _message(error: Any, schema: Body) -> str:
    """What is wrong with a value, and what to send, in a sentence.

    `schema` is the contract's at its place.
    """
    kind, value = error.kind, shown(error.instance)
    match kind.name:
        case "type":
            return f"{value} has the wrong type: send {_types(error)}."
        case "format":
            return f"{value} {_words('formats').get(kind.format, f'is no valid {kind.format}.')}"
        case "pattern":
            return f"{value} {_form(error, schema)}"
        case "enum":
            return f"{value} is not one of {_options(error.instance, list(kind.options))}"
        case "minProperties":
            return (
                f"Send at least one of {', '.join(schema.get('properties', ())) or 'its fields'}."
            )
    about, count = _words("keywords").get(kind.name), ""
    if about is None:
        return f"{value} does not satisfy {kind.name} of the contract."
    if "noun" in about:
        count = counted(kind.limit, about["noun"])
    return str(about["says"].format(value=value, kind=kind, count=count))


def shown(value: Any) -> str:
    """A value as JSON, cut short."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # orjson knows 64 bits
        text = str(value)
    return shortened(text, SHOWN)


def _types(error: Any) -> str:
    """The types that a value should have had, null last."""
    names = sorted(dict.fromkeys(error.kind.types), key=lambda name: name == "null")
    wanted = " or ".join(_words("types").get(name, name) for name in names)
    if names[0] != "number" or not isinstance(error.instance, str):
        return wanted
    number = error.instance.replace(",", ".")
    return f"{wanted}, such as {number if _DECIMAL(number) else '49.90'}"


def _form(error: Any, schema: Body) -> str:
    """What is wanted of a text in place of one that another pattern has, in the words that the
    contract has for it.
    """
    # the error of one that takes too many steps does not have it
    pattern = str(getattr(error.kind, "pattern", schema.get("pattern")))
    if schema.get("format") == "uri" and not _BEGINS_WELL(str(error.instance)):
        return str(_words("formats")["uri"])
    if pattern in _words("patterns"):
        return str(_words("patterns")[pattern])
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
