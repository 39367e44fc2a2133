"""Validation: reads the body, and checks it and the parameters against the contract, with every violation at once.

Parameters and body are one value, checked against one compiled schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from time import perf_counter_ns
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

import orjson
from connexion.middleware.abstract import ROUTING_CONTEXT, SpecMiddleware
from connexion.spec import Specification
from jsonschema_rs import Draft4Validator
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, Call
from ..contract.document import Document, Operation
from ..contract.formats import READ, is_uuid
from ..contract.schema import Schemas, Validator, prune
from ..contract.source import Json
from ..domain.documents import checks_digits
from ..kernel.problem import BadRequest, Detail, Invalid, NotBuilt, NotFound, Unsupported, detail
from ..kernel.record import has_more_values, is_deeper_than
from ..kernel.text import nearest, warning_of
from ..resolver import Takes, relied_on, takes_of
from .connection import Uploads, compressed
from .maps import kept_maps
from .violations import MOST_GUESSED, details_of, schema_of, shown, unread

# Said for the API only: overlays do not apply to the control contract.
_OVERLAYS = " An overlay (--overlay) adds one; --unknown-fields ignore drops it."
DEEPEST = 32
# Past so many commas only the first violation is told: finding all of a wide body's would hold up everybody else.
WIDEST, MOST_VALUES = 1_000, 20_000
_MOST_WRONG = 100
_UNCHECKED = " A sandbox that was started with --check-digits off accepts any."
_SEVERAL = "The request has {} violations of the contract."
_JSON_TYPE = re.compile(rb"application/json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL).fullmatch
_CHARSET = re.compile(rb";\s*charset\s*=\s*\"?([^\";\s]+)", re.IGNORECASE)
# Headers that the middleware reads; handlers do not get them.
_FRAME_HEADERS = frozenset(("authorization", "x-sandbox-admin-key"))
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)").fullmatch
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?").fullmatch
# Larger integers of a query are read as this, which is refused as they would be: no maximum is that large.
_LARGEST = 10**18
_SHOWN = 80  # characters of a number


class Validation(SpecMiddleware):
    """Passes on the arguments of the handler."""

    def __init__(
        self, app: ASGIApp, schemas: Mapping[str, Schemas], shipped: Document | None, *, ignore_unknown: bool
    ) -> None:
        """`schemas` by base path; `shipped` is the API's contract without overlays, if any."""
        self.app, self._schemas, self._shipped, self._ignore_unknown = app, schemas, shipped, ignore_unknown
        self._uploads = Uploads()
        self._apis: dict[str, tuple[Document, Any]] = {}
        self._requests: dict[str, dict[str, OperationRequests]] = {}

    def add_api(self, specification: Specification, base_path: str | None = None, **options: Any) -> None:
        """Take the operations of an API. Each is compiled at its first request: a start has no time for all."""
        base = specification.base_path if base_path is None else base_path
        self._apis[base], self._requests[base] = (options["documents"][base], options["resolver"]), {}

    def _compile(self, base: str, ident: str) -> OperationRequests:
        document, resolver = self._apis[base]
        operation: Operation = document.operations[ident]
        takes = takes_of(resolver.handler(operation))
        compiled = OperationRequests(
            operation,
            document,
            self._schemas[base],
            takes,
            ignore_unknown=self._ignore_unknown,
            may_reject_query=not base,
            further="" if base else _OVERLAYS,
        )
        made_for = self._shipped.operations.get(ident) if self._shipped is not None and not base else None
        if self._shipped is not None and made_for is not None:
            compiled.rely_on(
                OperationRequests(made_for, self._shipped, self._schemas[base], takes, ignore_unknown=False)
            )
        self._requests[base][ident] = compiled
        return compiled

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        routed = scope["extensions"][ROUTING_CONTEXT]
        base, ident = routed["api_base_path"], routed["operation_id"]
        requests = self._requests[base].get(ident) or self._compile(base, ident)
        call.trace.validate_at = perf_counter_ns()
        if checks_digits.get() is not call.sandbox.settings.check_digits:
            checks_digits.set(call.sandbox.settings.check_digits)
        if requests.has_body:
            return self._with_body(requests, scope, receive, send)
        call.values, call.arguments = requests.read(call)
        if requests.uploads:
            return self._with_file(requests.uploads, scope, receive, send)
        return self.app(scope, receive, send)

    async def _with_body(self, requests: OperationRequests, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        call.body_bytes = bytes(await call.read(receive))
        call.values, call.arguments = requests.read(call)
        await self.app(scope, receive, send)

    async def _with_file(self, media: Sequence[str], scope: Scope, receive: Receive, send: Send) -> None:
        async with self._uploads.taken(scope[CALL], receive, media):
            await self.app(scope, receive, send)


class OperationRequests:
    """The compiled validation of one operation's requests."""

    def __init__(
        self,
        operation: Operation,
        document: Document,
        schemas: Schemas,
        takes: Takes,
        *,
        ignore_unknown: bool,
        may_reject_query: bool = False,
        further: str = "",
    ) -> None:
        """`takes` is what the handler is called with.

        `ignore_unknown` drops body members that the contract does not name instead of refusing them. With
        `may_reject_query` the sandbox decides about query parameters that it does not name. `further` is added to the
        refusal of a body member that it does not name.
        """
        self._document, self._schemas, self._takes = document, schemas, takes
        self._may_reject_query, self._further = may_reject_query, further
        self._relied_on: Draft4Validator | None = None
        self.has_body, self.uploads = operation.body is not None, operation.uploads
        self._gives_body = takes.body or (self.has_body and takes.anything)
        self.body_required = operation.body_required
        self._id_names = [p.name for p in self._in_path_order(operation)]
        ids = [document.resolve(p.schema) for p in self._in_path_order(operation)]
        self._ids_are_uuids = [schema.get("format") == "uuid" for schema in ids]
        self._patterns = [re.compile(schema.get("pattern", "")) for schema in ids]
        self._has_one_uuid = self._ids_are_uuids == [True]
        query = [p for p in operation.parameters if p.place == "query"]
        headers = [p for p in operation.parameters if p.place == "header" and p.name.lower() not in _FRAME_HEADERS]
        self.query_names = frozenset(p.name for p in query)
        self.takes_query = bool(query)
        self._gives_query = takes.query or (takes.anything and self.takes_query)
        asked = {p.name: document.resolve(p.schema) for p in query}
        self._defaults = {name: schema["default"] for name, schema in asked.items() if "default" in schema}
        self._casts = {name: _cast_of(schema) for name, schema in asked.items()}
        self._header_names = {p.name: p.name.lower().encode() for p in headers}
        self._media: dict[bytes, bool] = {}
        self._body_schema = operation.body if ignore_unknown else None
        members: dict[str, Json] = {}
        for place, parameters in (("query", query), ("header", headers)):
            if parameters:
                required = [p.name for p in parameters if p.required]
                members[place] = {"type": "object", "properties": {p.name: p.schema for p in parameters}} | (
                    {"required": required} if required else {}
                )
        if operation.body is not None:
            members["body"] = operation.body
        required_places = [place for place, schema in members.items() if schema.get("required") and place != "body"]
        if self.body_required:
            required_places.append("body")
        self._shape: Json = {"type": "object", "properties": members} | (
            {"required": required_places} if required_places else {}
        )
        self._nothing = not members
        self._maps = tuple(kept_maps(operation, document.resolve))
        missing = operation.responses.get(404)
        self._missing_code = missing.codes[0] if missing and missing.codes else None

    @staticmethod
    def _in_path_order(operation: Operation) -> list[Any]:
        by_name = {p.name: p for p in operation.parameters if p.place == "path"}
        return [by_name[name] for name in re.findall(r"\{([^}]+)\}", operation.path)]

    @cached_property
    def validator(self) -> Validator:
        """The compiled schema, made at the first request."""
        return self._schemas.compile(self._shape, request=True, names=bool(self._maps))

    def rely_on(self, shipped: OperationRequests) -> None:
        """Also refuse what overlays allow but the handler, made for the shipped contract, cannot process."""
        schema = relied_on(shipped._shape, shipped._document.resolve)
        if schema != relied_on(self._shape, self._document.resolve):
            self._relied_on = Draft4Validator(schema, validate_formats=True, formats=dict(READ))

    def read(self, call: Call) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The handler's arguments: the path's ids, and query and body where the operation has them.

        Raises Malformed, Unsupported, Invalid, NotBuilt, then Missing for a malformed id.
        """
        arguments: dict[str, Any] = {}
        value = _EMPTY
        if not self._nothing or call.query_string:
            value = self._value(call)
            if not self._nothing and not self.validator.is_valid(value):
                self._refuse(call, value)
                call.has_odd_names = True  # nothing else is wrong with it
            if self._relied_on is not None:
                _check_known(self._relied_on, value)
        if self._gives_query:
            arguments["query"] = {**self._defaults, **value.get("query", _EMPTY)}
        if self._gives_body:
            body = value.get("body")
            if body is None and self._takes.body_needed:
                raise NotBuilt("This sandbox has no behaviour for the operation without a body.")
            if self._body_schema is not None and body is not None:
                body = prune(body, self._body_schema, self._document.resolve)
            arguments["body"] = body
        values = call.path_values
        return (self._ids(values) if values else values), arguments

    def _value(self, call: Call) -> dict[str, Any]:
        value: dict[str, Any] = {}
        if call.query_string:
            value["query"] = self._query(call)
        elif self.takes_query:
            value["query"] = {}
        if self._header_names:
            headers = call.headers
            value["header"] = {n: headers[k].decode("latin-1") for n, k in self._header_names.items() if k in headers}
        if self.has_body:
            raw = call.body_bytes
            if raw or self.body_required:
                if call.head.is_coded:
                    raise compressed()
                value["body"] = self._body(call.headers.get(b"content-type"), raw)
        return value

    def _query(self, call: Call) -> dict[str, Any]:
        found: dict[str, Any] = {}
        wrong: list[Detail] = []
        for part in call.query_string.decode("latin-1").split("&"):
            if not part:
                continue
            if len(wrong) >= _MOST_WRONG:
                break
            name, _, text = part.partition("=")
            if "%" in part or "+" in part or not part.isascii():
                name, text = unquote_plus(name, errors="replace"), unquote_plus(text, errors="replace")
            if name not in self.query_names:
                if self._may_reject_query and call.sandbox.settings.unknown_query == "reject":
                    wrong.append(detail(name[:200], "unknown_parameter", self._query_advice(name, len(wrong)), "query"))
                else:
                    call.warn(warning_of("unknown_query_parameter", name))
                continue
            if name in found:
                wrong.append(detail(name, "duplicate", "Send it once.", "query"))
            cast = self._casts[name]
            found[name] = text if cast is None else cast(text)
        if wrong:
            details = list({entry["field"]: entry for entry in wrong}.values())
            first = details[0]
            told = f"{first['field']}: {first['message']}" if len(details) == 1 else _SEVERAL.format(len(details))
            raise Invalid(told, details=details)
        return found

    def _query_advice(self, name: str, before: int) -> str:
        names = sorted(self.query_names)
        meant = nearest(name, names) if before < MOST_GUESSED else None
        hint = f" Did you mean {meant}?" if meant else ""
        return f"There is no such query parameter here.{hint} This operation takes {', '.join(names) or 'none'}."

    def _body(self, media: bytes | None, raw: bytes) -> Any:
        if not raw:
            if media is not None and not self._is_json(media):
                raise _unsupported()
            raise Invalid(
                "This operation needs a JSON body.", details=[detail("body", "required", "Send a JSON object.")]
            )
        if media is None or not self._is_json(media):
            raise _unsupported()
        try:
            value = orjson.loads(raw)
        except ValueError as error:
            raise BadRequest(unread(raw, error)) from None
        if raw.count(b",") > MOST_VALUES and has_more_values(value, MOST_VALUES):
            told = f"The body has more than {MOST_VALUES:,} values, the most that is read."
            raise Invalid(told, details=[detail("body", "max", told)])
        if raw.count(b"{") + raw.count(b"[") > DEEPEST and is_deeper_than(value, DEEPEST):
            raise BadRequest(f"The body is nested deeper than {DEEPEST} levels.")
        return value

    def _is_json(self, media: bytes) -> bool:
        known = self._media.get(media)
        if known is None:
            charset = _CHARSET.search(media)
            # JSON is UTF-8 (RFC 8259); in another charset the same bytes would mean other text.
            fits = charset is None or charset[1].lower() in (b"utf-8", b"utf8", b"us-ascii")
            known = _JSON_TYPE(media.strip()) is not None and fits
            if len(self._media) < 64:
                self._media[media] = known
        return known

    def _refuse(self, call: Call, value: dict[str, Any]) -> None:
        """Raises Invalid with the violations of the contract's own schema, if there are any."""
        if call.body_bytes.count(b",") > WIDEST:
            first = self.validator.first_error(value)
            errors = iter(() if first is None else (first,))
        else:
            errors = self.validator.iter_errors(value)
        unchecked = _UNCHECKED if call.server.loopback else ""
        found = [d for error in errors for d in details_of(error, self._schema_at, self._further, unchecked, value)]
        details = [_as_sent(entry, call.query_string) for entry in {tuple(d.values()): d for d in found}.values()]
        if len(details) == 1:
            raise Invalid(f"{details[0]['field']}: {details[0]['message']}", details=details)
        if details:
            raise Invalid(_SEVERAL.format(len(details)), details=details[:_MOST_WRONG])

    def _schema_at(self, path: Sequence[str | int]) -> Mapping[str, Any]:
        return schema_of(self._shape, path, self._document.resolve)

    def _ids(self, values: tuple[str, ...]) -> tuple[str, ...]:
        if self._has_one_uuid and is_uuid(values[0]):  # mostly
            return (values[0].lower(),)
        checked = []
        for place, (value, is_id, pattern) in enumerate(zip(values, self._ids_are_uuids, self._patterns, strict=True)):
            if is_id:
                if is_uuid(value) is None:
                    raise NotFound("The path's id is not a UUID, so nothing can have it.", code=self._missing_code)
                value = value.lower()
            elif pattern.search(value) is None:
                value = shown(value.encode(errors="replace").decode())
                told = f"Nothing is called {value}: every {self._id_names[place]} matches {pattern.pattern}"
                raise NotFound(told, code=self._missing_code)
            checked.append(value)
        return tuple(checked)


_EMPTY: dict[str, Any] = {}


def _check_known(relied_on: Draft4Validator, value: dict[str, Any]) -> None:
    error = next(iter(relied_on.iter_errors(value)), None)
    if error is not None:
        where = ".".join(str(step) for step in error.instance_path) or "the request"
        raise NotBuilt(
            f"The corrected contract allows this, but the sandbox has no behaviour for it: {where}: "
            f"{error.message[:300]}"
        )


def _unsupported() -> Unsupported:
    return Unsupported("Send the body as JSON, with Content-Type: application/json (UTF-8).")


def _cast_of(schema: Json) -> Callable[[str], Any] | None:
    """How to convert a query text to its schema's type. Text that cannot be converted is kept, and refused later."""
    kind = schema.get("type")
    if kind == "integer":
        return _integer
    if kind == "number":
        return lambda text: float(text) if _NUMBER(text) else text
    if kind == "boolean":
        return lambda text: {"true": True, "false": False}.get(text, text)
    return None


def _integer(text: str) -> int | str:
    if _INTEGER(text) is None:
        return text
    if len(text) > 18:
        return -_LARGEST if text[0] == "-" else _LARGEST
    return int(text)


def _as_sent(entry: Detail, query: bytes) -> Detail:
    """A violation that repeats a number as the query has it, if it was read as another."""
    number, _, rest = entry["message"].partition(" ")
    if entry["in"] != "query" or number not in (str(_LARGEST), str(-_LARGEST)):
        return entry
    sent = dict(parse_qsl(query.decode("latin-1"))).get(entry["field"], number)
    return entry | {"message": f"{sent if len(sent) <= _SHOWN else sent[:_SHOWN] + '…'} {rest}"}
