"""Validation: reads the body, and checks it and the parameters against the contract, with every
violation at once.

Parameters and body are one value, checked against one compiled schema.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from time import perf_counter_ns
from typing import Any
from urllib.parse import parse_qsl

import orjson

from ...contract.document import Operation
from ...contract.formats import is_uuid
from ...contract.schema import LONGEST_KEY, Validator, described, prune
from ...contract.source import Json, nodes
from ...core.problem import (
    BadRequest,
    Conflict,
    Detail,
    Invalid,
    NotBuilt,
    NotFound,
    Unsupported,
    detail,
)
from ...core.record import (
    Body,
    has_more_lists,
    has_more_values,
    is_deeper_than,
    may_have_more_values,
)
from ...core.text import did_you_mean, warning_of
from ...domain.documents import checks_digits
from ..reply import Answer, Answering
from .endpoint import Endpoint
from .shapes import is_relied_on, shape_of, validated_parameters
from .violations import MOST_GUESSED, details_of, field_name, shown, unread
from .way import Layer, Way

DEEPEST = 32
# Of a body that may have more values only the first violation is listed: finding all would delay
# other requests.
WIDEST, MOST_VALUES = 1_000, 20_000
_MOST_WRONG = 100
_LONGEST_KNOWN = 1_000  # bytes of a query that is remembered
_LONG = 16 * 1024  # bytes of a body that takes some tenths of a millisecond or more
LARGEST_FILE = 256 * 1024 * 1024  # bytes
_CHARSET = re.compile(rb";\s*charset\s*=\s*\"?([^\";\s]+)", re.IGNORECASE)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)").fullmatch
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?").fullmatch
_LONGEST_INTEGER = 4_000  # digits: Python reads no more
CODE, _BAD_JSON = "metadata_key_invalid", "malformed_json"
_KEY_ADVICE = f"A key has 1 to {LONGEST_KEY} characters and no NUL."


class Validation:
    """Reads the body, and passes on the arguments of the handler."""

    def __init__(self, app: Layer) -> None:
        self.app = app.__call__
        self._uploading = asyncio.Lock()  # one file at a time is read and imported
        self._requests_of = cache(OperationRequests)  # compiled for the first of an operation

    def __call__(self, way: Way) -> Answering:
        way.trace.validate_at = perf_counter_ns()
        checks = way.sandbox.settings.check_digits
        if checks_digits.get() is not checks:
            checks_digits.set(checks)
        requests = self._requests_of(way.endpoint)
        if requests.has_body:
            return self._with_body(requests, way)
        requests.read(way, b"")
        if requests.uploads:
            return self._with_file(requests.uploads, way)
        return self.app(way)

    async def _with_body(self, requests: "OperationRequests", way: Way) -> Answer:
        body = way.trace.body = await way.read()
        if len(body) > _LONG:
            await way.sandbox.status.requests.next()
        requests.read(way, body)
        return await self.app(way)

    async def _with_file(self, media: Sequence[str], way: Way) -> Answer:
        """Read a file of one of these media types. Raises Unsupported, and a 413."""
        sent = way.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if sent.decode("latin-1") not in media:
            raise Unsupported(f"Send the file with Content-Type: {media[0]}.")
        _check_coding(way)
        async with self._uploading:
            way.upload = await way.request.read(way.receive, LARGEST_FILE)
            try:
                return await self.app(way)
            finally:
                del way.upload


class OperationRequests:
    """The compiled validation of one operation's requests."""

    def __init__(self, endpoint: Endpoint) -> None:
        operation = endpoint.operation
        named = inspect.signature(endpoint.handler).parameters
        self._takes_query, self._takes_body = "query" in named, "body" in named
        self.has_body, self.uploads = operation.body is not None, operation.uploads
        self._path, self._query = PathIds(endpoint), QueryReader(endpoint)
        self._needs_body = operation.body_required
        self._prune: Callable[[Any], Any] | None = None
        if endpoint.ignore_unknown and not endpoint.base:
            self._prune = partial(prune, schema=operation.body, resolve=endpoint.document.resolve)
        headers = validated_parameters(operation, "header")
        self._header_names = {header.name: header.name.lower().encode() for header in headers}
        shape = shape_of(operation)
        self._validator = endpoint.schemas.compile(shape, request=True)
        self._schema_at = partial(endpoint.document.schema_at, shape)
        self._shipped: Validator | None = None
        if endpoint.made_for is not None and endpoint.shipped is not None:
            handled = shape_of(endpoint.made_for)
            self._shipped = endpoint.shipped.schemas.compile(handled, request=True)
            self._shipped_at = partial(endpoint.shipped.document.schema_at, handled)
        self._takes_nothing = not shape["properties"] and self._shipped is None
        # keys of free maps, such as metadata: then the contract lists the code of invalid ones
        self._stores_keys = CODE in _codes(operation, 409)

    def read(self, way: Way, body: bytes) -> None:
        """Find the handler's arguments: the path's ids, and query and body where it takes them.

        Raises BadRequest, Unsupported, Invalid, NotBuilt, Conflict, then NotFound for a malformed
        id.
        """
        named = way.named = {}
        value: Body = {}
        if not self._takes_nothing or way.request.query:
            value = self._checked(way, body)
        if self._takes_query:
            named["query"] = {**self._query.defaults, **value.get("query", {})}
        if self._takes_body:
            named["body"] = value.get("body", {})  # one that may be left out is empty then
        if way.values:
            way.values = self._path.checked(way.values)

    def _checked(self, way: Way, body: bytes) -> Body:
        """Query, headers and body, which the contract accepts."""
        value, shipped = self._value(way, body), self._shipped
        if not self._takes_nothing and not self._validator.is_valid(value):
            raise self._refusal(body, value)
        if shipped is not None and not shipped.is_valid(value):
            for error in shipped.iter_errors(value):
                if is_relied_on(error, self._shipped_at):
                    raise NotBuilt(
                        "The corrected contract allows this, but the sandbox has no behaviour"
                        f" for it (request{described(error)})"
                    )
        if self._stores_keys:
            check_names(value.get("body") or {})
        return value

    def _value(self, way: Way, raw: bytes) -> Body:
        value: Body = {}
        if way.request.query:
            value["query"] = self._query.read(way)
        elif self._query.casts:
            value["query"] = {}
        if self._header_names:
            sent = value["header"] = {}
            for name, key in self._header_names.items():
                if key in way.headers:
                    sent[name] = way.headers[key].decode("latin-1")
        if self.has_body and (raw or self._needs_body):
            body = _read_body(way, raw)
            value["body"] = body if self._prune is None else self._prune(body)
        return value

    def _refusal(self, body: bytes, value: Body) -> Invalid:
        """The violations of the contract."""
        validator = self._validator
        if may_have_more_values(body, WIDEST):
            errors = iter([validator.first_error(value)])
        else:
            errors = validator.iter_errors(value)
        found: dict[tuple[object, ...], Detail] = {}  # each once
        for error in errors:
            for entry in details_of(error, self._schema_at):
                found[tuple(entry.values())] = entry
            if len(found) >= _MOST_WRONG:  # to describe a thousand would delay other requests
                break
        return _invalid([*found.values()])


class QueryReader:
    """Reads the query of one operation's requests.

    `casts` has by name what makes of a text what the contract says, None for a text itself.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        operation = endpoint.operation
        self._is_api = not endpoint.base
        schemas = _schemas_of(endpoint, "query")
        self.casts = {name: cast_of(schema) for name, schema in schemas.items()}
        self.defaults = {
            name: schema["default"] for name, schema in schemas.items() if "default" in schema
        }
        self._repeated = {name for name, schema in schemas.items() if schema.get("type") == "array"}
        # A member of a control that is misspelt, or belongs into the body, would change more than
        # is meant.
        self._narrows = operation.method != "GET" and 422 in operation.responses
        # lists are asked with the same query again and again
        self._parsed = lru_cache(maxsize=32)(self._parse)

    def read(self, way: Way) -> Body:
        """The parameters by name. Raises Invalid."""
        query = way.request.query
        parse = self._parsed if len(query) <= _LONGEST_KNOWN else self._parse
        found, odd = parse(query)
        if not odd:
            return found
        rejects = way.sandbox.settings.unknown_query == "reject" if self._is_api else self._narrows
        wrong = list[Detail]()
        for name in dict.fromkeys(odd):
            if len(wrong) >= _MOST_WRONG:
                break
            if name in self.casts:
                wrong.append(detail(name, "duplicate", "Send it once.", "query"))
            elif rejects:
                wrong.append(
                    detail(name[:200], "unknown_parameter", self._advice(name, len(wrong)), "query")
                )
            else:
                way.trace.warn([warning_of("unknown_query_parameter", name)])
        if wrong:
            raise _invalid(wrong)
        return found

    def _parse(self, query: bytes) -> tuple[Body, list[str]]:
        """The parameters of a query, and names that are unknown or that it has again."""
        found: Body = {}
        odd: list[str] = []
        for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            if name in self._repeated:
                found.setdefault(name, []).append(text)
                continue
            if name in found or name not in self.casts:
                odd.append(name)
            if name in self.casts:
                cast = self.casts[name]
                found[name] = text if cast is None else cast(text)
        return found, odd

    def _advice(self, name: str, before: int) -> str:
        names = sorted(self.casts)
        hint = did_you_mean(name, names) if before < MOST_GUESSED else ""
        return (
            f"There is no such query parameter here.{hint} This operation takes"
            f" {', '.join(names) or 'none'}."
        )


class PathIds:
    """Reads the ids in the path of one operation's requests."""

    def __init__(self, endpoint: Endpoint) -> None:
        schemas = _schemas_of(endpoint, "path")
        self._ids: list[tuple[str, str, Validator | None]] = []  # none of UUIDs
        for name in re.findall(r"\{([^}]+)\}", endpoint.operation.path):
            pattern, validator = schemas[name].get("pattern", ""), None
            if schemas[name].get("format") != "uuid":
                # Python would search an overlay's pattern for hours
                validator = Validator({"pattern": pattern}, {})
            self._ids.append((name, pattern, validator))
        self._not_found_code = next(iter(_codes(endpoint.operation, 404)), None)

    def checked(self, values: Sequence[str]) -> tuple[str, ...]:
        """The ids of a path, UUIDs in lower case. Raises NotFound for one that no record has."""
        checked = []
        for value, (name, pattern, validator) in zip(values, self._ids, strict=True):
            if validator is None:
                if is_uuid(value) is None:
                    raise self._not_found("The id in the path is not a UUID, so no record has it.")
                checked.append(value.lower())
                continue
            text = value.encode(errors="replace").decode()
            if not validator.is_valid(text):
                raise self._not_found(f"{shown(text)} cannot exist: every {name} matches {pattern}")
            checked.append(value)
        return tuple(checked)

    def _not_found(self, message: str) -> NotFound:
        return NotFound(message, code=self._not_found_code)


def _schemas_of(endpoint: Endpoint, place: str) -> Body:
    """The schemas of the parameters at a place, by name."""
    return {
        each.name: endpoint.document.resolve(each.schema)
        for each in endpoint.operation.parameters
        if each.place == place
    }


def _codes(operation: Operation, status: int) -> tuple[str, ...]:
    """The codes of the refusals of a status, the usual one first."""
    response = operation.responses.get(status)
    return () if response is None else response.codes


@lru_cache(maxsize=64)
def _is_json(media: bytes) -> bool:
    """Whether a media type is JSON in UTF-8 (RFC 8259): in another charset the same bytes would
    mean other text.
    """
    charset = _CHARSET.search(media)
    if charset is not None and charset[1].lower() not in (b"utf-8", b"utf8", b"us-ascii"):
        return False
    return media.partition(b";")[0].strip().lower() == b"application/json"


def _read_body(way: Way, raw: bytes) -> Any:
    """What the bytes of a JSON body say. Raises Unsupported, BadRequest, Invalid."""
    _check_coding(way)
    media = way.headers.get(b"content-type")
    if (raw or media is not None) and not _is_json(media or b""):
        raise Unsupported("Send the body as JSON, with Content-Type: application/json (UTF-8).")
    if not raw:
        raise Invalid(
            "This operation needs a JSON body.",
            details=[detail("body", "required", "Send a JSON object.")],
        )
    if has_more_lists(raw, MOST_VALUES):
        raise _too_many_values()
    try:
        value = orjson.loads(raw)
    except ValueError as error:
        raise BadRequest(unread(raw, error), code=_BAD_JSON) from None
    if may_have_more_values(raw, MOST_VALUES) and has_more_values(value, MOST_VALUES):
        raise _too_many_values()
    if raw.count(b"{") + raw.count(b"[") > DEEPEST and is_deeper_than(value, DEEPEST):
        raise BadRequest(f"The body is nested deeper than {DEEPEST} levels.", code=_BAD_JSON)
    return value


def _too_many_values() -> Invalid:
    return Invalid.at(
        "body",
        f"The body has more than {MOST_VALUES:,} values, the most that is read.",
        violation="max",
    )


def _invalid(details: list[Detail]) -> Invalid:
    more = " or more" if len(details) >= _MOST_WRONG else ""
    message = f"The request violates the contract in {len(details)} places{more}."
    if len(details) == 1:
        message = f"{details[0]['field']}: {details[0]['message']}"
    return Invalid(message, details=details[:_MOST_WRONG])


def _check_coding(way: Way) -> None:
    """Raises Unsupported for a compressed body."""
    coding = way.headers.get(b"content-encoding")
    if coding is not None and coding.strip().lower() not in (b"", b"identity"):
        raise Unsupported(
            "Send the body uncompressed, without Content-Encoding.",
            headers={"Accept-Encoding": "identity"},
        )  # RFC 9110, 15.5.16


def cast_of(schema: Json) -> Callable[[str], Any] | None:
    """How to convert a query text to its schema's type.

    Text that cannot be converted is kept, and refused later.
    """
    kind = schema.get("type")
    if kind == "integer":
        return lambda text: int(text) if _INTEGER(text) and len(text) <= _LONGEST_INTEGER else text
    if kind == "number":
        return lambda text: float(text) if _NUMBER(text) else text
    if kind == "boolean":
        return lambda text: {"true": True, "false": False}.get(text, text)
    return None


_NESTED = frozenset({dict, list})


def _is_key(text: str) -> bool:
    return 0 < len(text) <= LONGEST_KEY and "\0" not in text


def _has_keys(value: Json) -> bool:
    """Whether all keys in a value can be stored."""
    if type(value) is list:
        return all(map(_has_keys, value))
    if type(value) is not dict:
        return True
    for key, member in value.items():
        if not _is_key(key):
            return False
        if type(member) in _NESTED and not _has_keys(member):
            return False
    return True


def check_names(body: Json) -> None:
    """Raises Conflict for keys that OpenAPI 3.0 cannot forbid: empty, too long, or with NUL."""
    if _has_keys(body):
        return
    wrong = []
    for place, node in nodes(body):
        if isinstance(node, dict) and not all(map(_is_key, node)):
            wrong.append(detail(field_name(place), CODE, _KEY_ADVICE))
    if wrong:
        named = ", ".join(entry["field"] for entry in wrong)
        raise Conflict(
            f"{named}: a key has 1 to {LONGEST_KEY} characters and no NUL.",
            code=CODE,
            details=wrong,
        )
