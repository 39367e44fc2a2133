"""Where the sandbox decides otherwise than Connexion, on purpose: why, and how such
requests are known.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from .wire import Decision, Request

JSON = "application/json"
_IS_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch


class Difference(NamedTuple):
    """A kind of request that Connexion and the sandbox decide differently."""

    name: str
    why: str
    stock: bool
    """Whether Connexion accepts it."""
    ours: bool
    applies: Callable[[Request, Decision, Decision], bool]


def _media(request: Request) -> str | None:
    return dict(request.headers).get("content-type")


def _is_no_json_literal(request: Request, *_: Decision) -> bool:
    sent = parse_qsl(request.query, keep_blank_values=True)
    if len(sent) != 1 or request.body:
        return False
    text = sent[0][1]
    return text not in ("true", "false") and _IS_NUMBER(text) is None


def _has_lone_surrogate(request: Request, *_: Decision) -> bool:
    try:
        json.dumps(json.loads(request.body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except ValueError:
        return False
    return False


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    for member in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _numbers(member)


def _has_amount_beyond_floats(request: Request, *_: Decision) -> bool:
    """Such as 19.99, which divided by 0.01 is 1998.9999999999998."""
    numbers = _numbers(json.loads(request.body))
    return any(
        round(number, 2) == number and not (number / 0.01).is_integer() for number in numbers
    )


DIFFERENCES = (
    Difference(
        "spelling of a query",
        "Connexion reads numbers and booleans of a query with Python's int(), float() and bool"
        " words, so that `1_0`, `+1` and `TRUE` pass. The sandbox takes what JSON takes.",
        stock=True,
        ours=False,
        applies=_is_no_json_literal,
    ),
    Difference(
        "repeated query parameter",
        "Connexion takes the last of several; the sandbox says that the client contradicts itself.",
        stock=True,
        ours=False,
        applies=lambda request, *_: request.about.endswith(" twice"),
    ),
    Difference(
        "lone surrogate",
        "Connexion's parser makes text of it that cannot be stored or sent. RFC 8259 warns of it;"
        " the sandbox refuses.",
        stock=True,
        ours=False,
        applies=_has_lone_surrogate,
    ),
    Difference(
        "media type in capitals",
        "Connexion finds no schema for `Application/JSON`, and so checks no body of that type at"
        " all.",
        stock=True,
        ours=False,
        applies=lambda request, *_: _media(request) != JSON == (_media(request) or "").lower(),
    ),
    Difference(
        "charset of JSON",
        "JSON is UTF-8 (RFC 8259): in latin-1 the same bytes would be another text. Connexion"
        " decodes as asked.",
        stock=True,
        ours=False,
        applies=lambda request, *_: "charset=latin-1" in (_media(request) or ""),
    ),
    Difference(
        "space before a parameter of the media type",
        "RFC 9110 allows it; Connexion takes it for another media type and answers 415.",
        stock=False,
        ours=True,
        applies=lambda request, *_: (_media(request) or "").startswith(f"{JSON} ;"),
    ),
    Difference(
        "optional body left out",
        "The contract says that it may be; Connexion answers 400.",
        stock=False,
        ours=True,
        applies=lambda request, *_: not request.body,
    ),
    Difference(
        "body without a media type",
        "Connexion validates it as JSON and then gives the handler bytes; the sandbox answers 415.",
        stock=True,
        ours=False,
        applies=lambda request, *_: bool(request.body) and not _media(request),
    ),
    Difference(
        "names of a map",
        "OpenAPI 3.0 cannot say which names a map may have. The contract says it in words, and"
        " lists this 409.",
        stock=True,
        ours=False,
        applies=lambda _request, _stock, ours: ours.status == 409,
    ),
    Difference(
        "multiples of 0.01",
        "Connexion divides floating-point numbers; the sandbox compares decimals.",
        stock=False,
        ours=True,
        applies=_has_amount_beyond_floats,
    ),
    Difference(
        "slash in a segment",
        "`%2F` is a letter of a segment (RFC 3986), so the sandbox finds the operation and no such"
        " record. Connexion decodes it first, and finds no operation.",
        stock=False,
        ours=False,
        applies=lambda request, *_: "%2f" in request.path.lower(),
    ),
    Difference(
        "literal path, method of a template",
        "`PUT /api-keys/info` is no operation: a literal path wins over `/api-keys/{apiKeyId}` for"
        " every method, so the sandbox answers 405. Connexion takes `info` for an id, and refuses"
        " that.",
        stock=False,
        ours=False,
        applies=lambda _request, _stock, ours: ours.status == 405,
    ),
    Difference(
        "line break in a path",
        "Connexion's route does not match it; the sandbox finds the operation, and no record with"
        " such an id.",
        stock=False,
        ours=False,
        applies=lambda request, *_: "%0A" in request.path,
    ),
)


def difference_of(request: Request, stock: Decision, ours: Decision) -> Difference | None:
    """The known difference that two decisions show; None for one that nobody has explained."""
    for each in DIFFERENCES:
        if (each.stock, each.ours) == (stock.is_accepted, ours.is_accepted) and each.applies(
            request, stock, ours
        ):
            return each
    return None
