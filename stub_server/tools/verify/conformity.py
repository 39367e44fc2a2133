"""Compares one exchange with the contract: its status, its headers and its body."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...contract.assumptions import shape
from ...contract.document import JSON, Document, Operation, Response
from ...contract.formats import formats
from ...contract.schema import MOST_EXPLAINED, Schemas, Validator
from ...core.record import has_more_values, is_deeper_than
from ...domain.documents import is_document_unchecked
from .catalogue import below, canonical, pointer_of, within
from .exchange import Answer, Exchange, code_of
from .findings import RANKS, Finding, Got, Said
from .showing import outlined

MOST = 20  # findings of one kind in one exchange
DEEPEST = 100  # levels of a body
_MOST_ERRORS = 1_000  # of a body that are looked at
_UNJUDGED = frozenset(("HEAD", "OPTIONS"))
_ABSENT = frozenset((404, 405, 501))
_NO_ROUTE = frozenset(("route_not_found", "method_not_allowed", "not_implemented"))
_BEFORE_OPERATIONS = frozenset((408, 413, 414, 429, 431))


class Conformity:
    """One per contract."""

    def __init__(self, document: Document) -> None:
        """Compile nothing yet: schemas are compiled when an answer needs them."""
        self._document = document
        self._schemas = Schemas(document.raw, formats(is_document_unchecked, is_document_unchecked))
        self._validators: dict[str, Validator] = {}
        answers = document.raw.get("x-server-answers", {})
        self._of_the_server = {
            int(status): document.resolve(node)["x-codes"] for status, node in answers.items()
        }
        self._beginnings = {path.split("/")[1] for path in document.raw["paths"]}

    def findings(self, exchange: Exchange, operation: Operation | None) -> Iterator[Finding]:
        """In what the answer departs from the contract, in the order of `CLASSES`.

        Usually there is at most one finding. Of `schema`, `undocumented-field` and `missing-header`
        there is one for each place of the contract, at most `MOST`.
        """
        request, status = exchange.request, exchange.answer.status
        at, name = "#/paths", f"{request.method} {outlined(request.path)}"
        expected, response = Said(404, "route_not_found"), None
        if operation is not None:
            at, name = pointer_of(operation), f"{operation.method} {operation.path}"
            expected = Said(next(iter(operation.successes), 200), "an answer of the contract")
            response = operation.responses.get(status)
        if status == 0:
            yield Finding("transport", at, f"{name} has no whole answer.", expected)
        elif operation is not None and _is_missing(exchange.answer, response):
            title = f"{name} does not exist: {status} without an error of the contract."
            yield Finding("missing-operation", at, title, expected)
        elif status >= 500 and response is None:
            yield Finding("server-error", at, f"{name} fails with {status}.", expected)
        elif operation is not None:
            yield from self._compared(exchange.answer, operation, response)
        elif request.method in _UNJUDGED or status in _ABSENT:
            return
        elif self._beginnings & {*request.path.split("/")[1:2]}:
            title = f"{name} is answered {status}, and the contract does not have it."
            yield Finding("undocumented-operation", at, title, expected)

    def _compared(
        self, answer: Answer, operation: Operation, response: Response | None
    ) -> Iterator[Finding]:
        """Compare an answer with the response that the contract has for its status."""
        status, body = answer.status, answer.json()
        code, of_the_server = code_of(body), self._of_the_server.get(status, ())
        at = pointer_of(operation, "responses")
        if response is None:
            if status not in _BEFORE_OPERATIONS and code not in of_the_server:
                title = f"{operation.id} answers {status}, which the contract does not list."
                known = ", ".join(map(str, operation.responses))
                expected = Said(next(iter(operation.responses), status), f"one of {known}")
                yield Finding("undocumented-status", at, title, expected)
            return
        raw = operation.raw["responses"][str(status)]
        at = raw.get("$ref") or below(at, status)
        is_known = code is None or code in (*response.codes, *of_the_server)
        if response.codes and status >= 400 and not is_known:
            title = (
                f"{operation.id} refuses with {status} {code}, which the contract does not list."
            )
            expected = Said(status, f"code: one of {', '.join(response.codes)}")
            yield Finding("error-code", below(at, "x-codes"), title, expected)
            body = {**body, "code": response.codes[0]}
        says = f"{operation.id} answers {status}"
        yield from self._body(says, answer, response, at, body)
        for name, header in response.headers.items():
            # RFC 9110, 15.5.2: a 401 has a challenge.
            is_challenge = status == 401 and name.lower() == "www-authenticate"
            is_due = header.get("required") or is_challenge
            if is_due and answer.header(name) is None:
                node = self._document.resolve(raw)["headers"][name]
                where = node.get("$ref") or below(at, "headers", name)
                title = f"{says} without the header {name}."
                yield Finding("missing-header", where, title, Said(status, f"header {name}"))

    def _body(
        self, says: str, answer: Answer, response: Response, pointer: str, body: Any
    ) -> Iterator[Finding]:
        media = (answer.header("content-type") or "").partition(";")[0].strip().lower()
        wanted, wrong = " or ".join(response.media) or "no body", ""
        at = below(pointer, "content") if response.media else pointer
        if not response.media:
            wrong = "with a body" if answer.body else ""
        elif not answer.body:
            wrong = "without a body"
        elif media not in response.media:
            wrong = f"as {media}" if media else "without a Content-Type"
        elif media == JSON and body is None and answer.body.strip() != b"null":
            wrong = "with a body that is not JSON"
        elif media == JSON:
            where, schema = below(at, JSON, "schema"), response.media[JSON]
            yield from self._content(says, answer.status, where, schema, body)
        if wrong:
            title = f"{says} {wrong}; the contract has {wanted}."
            yield Finding("schema", at, title, Said(answer.status, wanted))

    def _content(
        self, says: str, status: int, pointer: str, schema: Any, body: Any
    ) -> Iterator[Finding]:
        """Compare a body with a schema: what is missing, what does not fit, then members that it
        does not name.

        Titles begin with `says`.
        """
        if pointer not in self._validators:
            self._validators[pointer] = self._schemas.compile(schema, request=False)
        validator, root = self._validators[pointer], schema.get("$ref") or pointer
        is_deep = is_deeper_than(body, DEEPEST)
        if not is_deep and validator.is_valid(body):
            return
        if is_deep or has_more_values(body, MOST_EXPLAINED):
            title = f"{says} with a body that is too deep or too large to be compared."
            yield Finding("schema", root, title, Said(status, "a valid body"))
            return
        found: dict[str, Finding] = {}
        for error in islice(validator.iter_errors(body), _MOST_ERRORS):
            for departure in self._error(says, status, root, error):
                found.setdefault(departure.pointer, departure)
        yield from sorted(found.values(), key=lambda each: RANKS[each.kind])[:MOST]

    def _error(self, says: str, status: int, root: str, error: Any) -> Iterator[Finding]:
        """What one violation departs in."""
        pointer, schema, path = within(self._document, root, error.instance_path)
        keyword, name = error.kind.name, path or "the body"
        above = f"{path}." if path else ""
        if keyword == "required":
            lacking = [each for each in schema.get("required", ()) if each not in error.instance]
            lacking = lacking or [error.kind.property]  # a part of `allOf` requires it
            at = ["properties", *lacking] if len(lacking) == 1 else ["required"]
            where = canonical(self._document, below(pointer, *at))
            names = ", ".join(above + each for each in lacking)
            yield Finding("schema", where, f"{says} without {names}.", Said(status, names))
        elif keyword == "additionalProperties":
            for unknown in error.kind.unexpected:
                shown, got = above + unknown, Got(above + unknown, error.instance[unknown])
                title = f"{says} with the member {shown}, which the contract does not have."
                where = canonical(self._document, below(pointer, "properties", unknown))
                yield Finding("undocumented-field", where, title, Said(status, f"no {shown}"), got)
        else:
            wanted, limit = shape(schema, self._document), schema.get(keyword)
            if isinstance(limit, (str, int, float)) and keyword not in ("type", "format"):
                wanted = f"{wanted} ({keyword}: {limit})"
            title = f"{says} with {name} that is not {wanted}."
            expected, got = Said(status, f"{name}: {wanted}"), Got(name, error.instance)
            yield Finding("schema", below(pointer, keyword), title, expected, got)


def _is_missing(answer: Answer, response: Response | None) -> bool:
    """Whether an answer says that the operation does not exist, and not the record."""
    status, code = answer.status, code_of(answer.json())
    if status not in _ABSENT or (response is not None and status != 404):
        return False
    return status == 405 or code is None or code in _NO_ROUTE
