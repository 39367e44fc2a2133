"""Compares one exchange with the contract: its status, its headers and its body."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from ...contract.assumptions import shape
from ...contract.document import JSON, Document, Operation, Response
from ...contract.formats import formats
from ...contract.schema import MOST_EXPLAINED, Schemas, Validator
from ...core.record import has_more_values, is_deeper_than
from ...domain.documents import is_document_unchecked
from .catalogue import Place, Places, Unnamed, below, pointer_of
from .exchange import Answer, Exchange, code_of
from .findings import Finding, Said
from .showing import Showing, kind_of

MOST = 20  # findings of one kind in one exchange
DEEPEST = 100  # levels of a body
_MOST_ERRORS = 1_000  # of a body that are looked at
_ABSENT = frozenset((404, 405, 501))
_NO_ROUTE = frozenset(("route_not_found", "method_not_allowed", "not_implemented"))
# Answers of the server that belong to no operation: `info` of the contract describes them.
_OF_THE_SERVER: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        400: ("malformed_request",),
        403: ("host_not_allowed", "delivery_not_allowed"),
        408: ("request_timeout",),
        409: ("step_not_kept",),
        413: ("payload_too_large",),
        414: ("uri_too_long",),
        429: ("rate_limited",),
        431: ("headers_too_large",),
    }
)
_BEFORE_OPERATIONS = frozenset((408, 413, 414, 429, 431))
_KINDS = MappingProxyType(
    {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false", "null": "null",
     "array": "a list", "object": "an object"}
)  # fmt: skip
_ERROR = "#/components/schemas/Error"
_UNREAD = object()
# Ids, instants and numbers. Whoever reads a word without a digit does not read it again from its second letter.
_VARIES = re.compile(rb"(?<![0-9A-Za-z_:.+-])[A-Za-z_:.+-]*+[0-9][0-9A-Za-z_:.+-]*")


class _Departure(NamedTuple):
    """In what an answer departs. Without `said`, the whole answer is shown."""

    kind: str
    pointer: str
    cause: str
    title: str
    expected: Said
    said: Said | None = None


class Conformity:
    """One per contract."""

    def __init__(self, document: Document, showing: Showing | None = None) -> None:
        """Compile nothing yet: schemas are compiled when an answer needs them."""
        self._document = document
        self._showing = showing or Showing(document)
        self._schemas = Schemas(document.raw, formats(is_document_unchecked, is_document_unchecked))
        self._places = Places(document)
        self._validators: dict[str, Validator] = {}
        self._beginnings = [path.split("/")[1:2] for path in document.raw["paths"]]
        self.knows_nowhere = False
        """Whether `learn_nowhere` was called."""
        self._nowhere: bytes | None = None

    def operation_of(self, method: str, path: str) -> Operation | None:
        """The operation of a request by its path below the base address, without query. HEAD is that of GET."""
        return self._document.routed(path)[0].get("GET" if method == "HEAD" else method)

    def is_of_api(self, path: str) -> bool:
        """Whether a path begins as those of the contract do."""
        return path.split("/")[1:2] in self._beginnings

    def findings(self, exchange: Exchange, operation: Operation | None, group: str) -> list[Finding]:
        """In what the answer departs from the contract, in the order of `CLASSES`.

        Usually there is at most one finding. Of `schema`, `undocumented-field` and `missing-header` there is one for
        each place of the contract, at most `MOST`. Without an operation, only a failure of the server is a finding.
        """
        found = list(self._departures(exchange, operation))
        if not found:
            return []
        request = self._showing.shown(exchange.request, operation)
        said = self._showing.said(exchange.answer, exchange.request)
        name = "" if operation is None else operation.id
        return [
            Finding(kind, name, group, pointer, cause, title, request, own or said, expected)
            for kind, pointer, cause, title, expected, own in found
        ]

    def learn_nowhere(self, exchange: Exchange) -> None:
        """Learn from the answer to a path that does not exist: any other 404 comes from an operation."""
        self.knows_nowhere = True
        self._nowhere = _answer_to_path(exchange) if exchange.answer.status == 404 else None

    def _departures(self, exchange: Exchange, operation: Operation | None) -> Iterator[_Departure]:
        request, answer = exchange
        status = answer.status
        if status == 0:
            title = f"{request.method} {self._showing.shown(request, operation).path} has no whole answer."
            at = "#/paths" if operation is None else pointer_of(operation)
            expected = Said(0, "an answer") if operation is None else _success(operation)
            yield _Departure("transport", at, "no answer", title, expected)
            return
        if operation is None:
            if status >= 500:
                title = f"An unknown path is answered {status}."
                yield _Departure("server-error", "#/paths", str(status), title, Said(404, "route_not_found"))
            elif status not in _ABSENT and self.is_of_api(request.path):
                shown = self._showing.shown(request).path
                title = f"{request.method} {shown} is answered {status}, and the contract does not have it."
                cause = f"{request.method} {shown}"
                yield _Departure("undocumented-operation", "#/paths", cause, title, Said(404, "route_not_found"))
            return
        at, name = pointer_of(operation), f"{operation.method} {operation.path}"
        is_head = request.method == "HEAD"
        body = _UNREAD if is_head else _read(answer)
        response = operation.responses.get(status)
        is_missing = _is_missing(status, response, body, is_head=is_head)
        if is_missing and (status != 404 or code_of(body) or self._nowhere in (None, _answer_to_path(exchange))):
            title = f"{name} does not exist: {status} without an error of the contract."
            yield _Departure("missing-operation", at, "missing", title, _success(operation))
        elif response is not None:
            pointer, _ = self._places.followed(below(at, "responses", status), operation.raw["responses"][str(status)])
            yield from self._compared(exchange, operation, response, pointer, body)
        elif status >= 500:
            yield _Departure("server-error", at, str(status), f"{name} fails with {status}.", _success(operation))
        elif status in _OF_THE_SERVER and (status in _BEFORE_OPERATIONS or code_of(body) in _OF_THE_SERVER[status]):
            general = Response(status, {JSON: {"$ref": _ERROR}}, {}, _OF_THE_SERVER[status])
            yield from self._compared(exchange, operation, general, "#/info/description", body)
        else:
            title = f"{operation.id} answers {status}, which the contract does not list."
            expected = Said(_like(status, operation), f"one of {', '.join(map(str, operation.responses))}")
            yield _Departure("undocumented-status", below(at, "responses"), str(status), title, expected)

    def _compared(
        self, exchange: Exchange, operation: Operation, response: Response, pointer: str, body: Any
    ) -> Iterator[_Departure]:
        """Compare an answer with the response that the contract has for its status, at `pointer`."""
        status = exchange.answer.status
        if exchange.request.method != "HEAD":
            code, listed = code_of(body), (*response.codes, *_OF_THE_SERVER.get(status, ()))
            is_other = code is not None and response.codes and status >= 400 and code not in listed
            if is_other:
                named = self._showing.name(str(code))
                title = f"{operation.id} refuses with {status} {named}, which the contract does not list for {status}."
                expected = Said(status, f"code: one of {', '.join(response.codes)}")
                yield _Departure("error-code", below(pointer, "x-codes"), f"{status} code", title, expected)
                body = {**body, "code": response.codes[0]}
            for each in self._body(exchange.answer, operation, response, pointer, body):
                if not is_other or each.kind != "schema":
                    yield each
        for name, header in response.headers.items():
            # RFC 9110, 15.5.2: a 401 has a challenge.
            is_due = header.get("required") or (status == 401 and name.lower() == "www-authenticate")
            if is_due and exchange.answer.header(name) is None:
                raw = self._document.resolve(operation.raw["responses"][str(status)])["headers"][name]
                where = self._places.followed(below(pointer, "headers", name), raw)[0]
                title = f"{operation.id} answers {status} without the header {name}."
                yield _Departure("missing-header", where, name, title, Said(status, f"header {name}"))

    def _body(
        self, answer: Answer, operation: Operation, response: Response, pointer: str, body: Any
    ) -> Iterator[_Departure]:
        status, media = answer.status, _media(answer)
        is_general = not pointer.startswith(("#/paths", "#/components"))
        content = pointer if is_general else below(pointer, "content")
        wanted = Said(status, " or ".join(response.media) or "no body")
        cause = title = ""
        if not response.media:
            if answer.body:
                title = f"{operation.id} answers {status} with a body, and the contract has none."
                yield _Departure("schema", pointer, "body", title, wanted)
            return
        if not answer.body:
            cause, title = "no body", "without a body"
        elif media not in response.media:
            form = f"as {self._showing.name(media)}" if media else "without a Content-Type"
            cause, title = "media type", f"{form} and not as {wanted.excerpt}"
        elif media == JSON and body is _UNREAD:
            cause, title = "not JSON", "with a body that is not JSON"
        if cause:
            yield _Departure("schema", content, cause, f"{operation.id} answers {status} {title}.", wanted)
        elif media == JSON:
            where = _ERROR if is_general else below(content, JSON, "schema")
            yield from self._content(f"{operation.id} answers {status}", status, where, response.media[JSON], body)

    def _content(self, says: str, status: int, pointer: str, schema: Any, body: Any) -> Iterator[_Departure]:
        """Compare a body with a schema: first the members that it names, then those that it does not.

        Titles begin with `says`.
        """
        root = self._places.of(pointer, schema)
        if is_deeper_than(body, DEEPEST):
            title = f"{says} with a body of more than {DEEPEST} levels."
            yield _Departure("schema", root[0].inner, "depth", title, Said(status, "a valid body"))
            return
        unnamed: dict[str, Unnamed] = {}
        known = self._places.named_only(body, root, unnamed)
        yield from self._errors(says, status, root, schema, known)
        for where, each in islice(unnamed.items(), MOST):
            name = self._showing.name(each.path)
            title = f"{says} with the member {name}, which the contract does not have."
            said = Said(status, f"{name}: {self._showing.value(each.value)}")
            cause = f"{name}: undocumented"
            yield _Departure("undocumented-field", where, cause, title, Said(status, f"no {name}"), said)

    def _errors(self, says: str, status: int, root: Sequence[Place], schema: Any, body: Any) -> Iterator[_Departure]:
        pointer = root[0].pointer
        if pointer not in self._validators:
            self._validators[pointer] = self._schemas.compile(schema, request=False)
        validator = self._validators[pointer]
        if validator.is_valid(body):
            return
        if has_more_values(body, MOST_EXPLAINED):
            title = f"{says} with an invalid body of more than {MOST_EXPLAINED:,} values."
            yield _Departure("schema", root[0].inner, "large", title, Said(status, "a valid body"))
            return
        lacking: dict[tuple[str, str], list[str]] = {}
        found: dict[str, tuple[str, str, Any, Place]] = {}
        error: Any  # its kinds have members of their own
        for error in islice(validator.iter_errors(body), _MOST_ERRORS):
            places, path = self._places.at(root, list(error.instance_path))
            kind = type(error.kind).__name__.rpartition("_")[2]
            if kind == "Required":
                place = next((p for p in places if "properties" in p.schema), places[0])
                lacked = lacking.setdefault((place.inner, path), [])
                if error.kind.property not in lacked:
                    lacked.append(error.kind.property)
            else:
                where = places[0].pointer if error.instance_path else places[0].inner
                found.setdefault(where, (kind, path, error.instance, places[0]))
        departures = [*_lacking(says, status, lacking), *self._unfit(says, status, found)]
        yield from departures[:MOST]

    def _unfit(self, says: str, status: int, found: Mapping[str, tuple[str, str, Any, Place]]) -> Iterator[_Departure]:
        """Values that do not match their schemas."""
        for pointer, (kind, path, value, place) in found.items():
            name = path or "the body"
            wanted = _wanted(kind, place.schema) or shape(place.schema, self._document)
            what = f"{name} as {_KINDS[kind_of(value)]}, not" if kind == "Type" else f"{name} that is not"
            expected, said = Said(status, f"{name}: {wanted}"), Said(status, f"{name}: {self._showing.value(value)}")
            yield _Departure("schema", pointer, f"{name}: {kind}", f"{says} with {what} {wanted}.", expected, said)


def _lacking(says: str, status: int, lacking: Mapping[tuple[str, str], list[str]]) -> Iterator[_Departure]:
    """Members that are missing: those of one object have one cause."""
    seen: set[str] = set()
    for (inner, path), names in lacking.items():
        pointer = below(inner, "properties", names[0]) if len(names) == 1 else below(inner, "required")
        if pointer in seen:
            continue
        seen.add(pointer)
        shown, where = ", ".join(f"{path}.{name}" if path else name for name in names), path or "the body"
        expected = Said(status, f"{where} with {', '.join(names)}")
        said = Said(status, f"{where} has no {', '.join(names)}")
        yield _Departure("schema", pointer, f"lacks {shown}", f"{says} without {shown}.", expected, said)


def _is_missing(status: int, response: Response | None, body: Any, *, is_head: bool) -> bool:
    """Whether an answer says that the operation does not exist, and not the record."""
    if status not in _ABSENT or (response is not None and (is_head or status != 404)):
        return False
    code = code_of(body)
    return status == 405 or code in _NO_ROUTE or (code is None and not (is_head and status == 404))


def _answer_to_path(exchange: Exchange) -> bytes:
    """The body without what differs from request to request."""
    request, answer = exchange
    return _VARIES.sub(b"", answer.body.replace(request.path.encode(), b"").replace(request.method.encode(), b""))


def _read(answer: Answer) -> Any:
    """The body as JSON, `_UNREAD` if it is not JSON."""
    try:
        return orjson.loads(answer.body)
    except ValueError:
        return _UNREAD


def _media(answer: Answer) -> str:
    return (answer.header("content-type") or "").partition(";")[0].strip().lower()


def _success(operation: Operation) -> Said:
    return Said(next(iter(operation.successes), 200), "an answer of the contract")


def _wanted(kind: str, schema: Any) -> str | None:
    """What a schema asks for by a keyword that `shape` has no words for."""
    texts = {
        "Pattern": f"text like {schema.get('pattern')}",
        "MultipleOf": f"a multiple of {schema.get('multipleOf')}",
        "UniqueItems": "a list without repetitions",
    }
    return texts.get(kind)


def _like(status: int, operation: Operation) -> int:
    """The documented status that is most like one."""
    return min(operation.responses, key=lambda known: (known // 100 != status // 100, known), default=status)
