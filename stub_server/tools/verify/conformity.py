"""Compares one exchange with the contract: its status, its headers and its body."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from ...contract.assumptions import shape
from ...contract.document import JSON, Document, Operation, Response
from ...contract.formats import formats
from ...contract.pointers import below, canonical, located, within
from ...contract.schema import MOST_EXPLAINED, Schemas, Validator
from ...contract.secrets import secret_members
from ...contract.source import fixture
from ...core.record import has_more_values, is_deeper_than
from ...domain.documents import is_document_unchecked
from .catalogue import pointer_of
from .exchange import Answer, Exchange, code_of
from .findings import Finding, Got, Said
from .showing import outlined

MOST = 20  # findings of one kind in one exchange
DEEPEST = 100  # levels of a body
_MOST_ERRORS = 1_000  # of a body that are looked at
_UNJUDGED = ("HEAD", "OPTIONS")
_ABSENT = (404, 405, 501)
_NO_ROUTE = ("route_not_found", "method_not_allowed", "not_implemented")
_BEFORE_OPERATIONS = (408, 413, 414, 429, 431)
_WORD = re.compile(r"[\w.-]+")


class _Departure(NamedTuple):
    """In what an answer departs: class, pointer, the end of a sentence, and what was wanted."""

    kind: str
    pointer: str
    title: str = ""
    wanted: str = "an answer of the contract"
    got: Got | None = None


class Conformity:
    """One per contract."""

    def __init__(self, document: Document) -> None:
        """Compile nothing yet: schemas are compiled when an answer needs them."""
        self._document = document
        self._schemas = Schemas(document.raw, formats(is_document_unchecked, is_document_unchecked))
        self._compiled = cache(self._compile)
        self._beginnings = {path.split("/")[1] for path in document.raw["paths"]}
        self._secrets = {*secret_members(document), *fixture("verify.yaml")["secrets"]}
        self.nowhere: str | None = None
        """The words of a 404 for a path that is unknown, if one was asked for."""

    def _compile(self, pointer: str) -> Validator:
        return self._schemas.compile(located(self._document, pointer)[1], request=False)

    def findings(self, exchange: Exchange, operation: Operation | None) -> Iterator[Finding]:
        """In what the answer departs from the contract.

        Usually there is at most one finding. Of `schema`, `undocumented-field` and `missing-header`
        there is one for each place of the contract, at most `MOST`.
        """
        request, status = exchange.request, exchange.answer.status
        name, due = f"{request.method} {outlined(request.path)}", 404
        if operation is not None:
            name, due = operation.id, next(iter(operation.successes), 200)
            due = status if status in operation.responses else due
        says = f"{name} answers {status}" if status else f"{name} gives no whole answer"
        for kind, pointer, title, wanted, got in self._departures(exchange, operation):
            # what a POST has just made may be shown, also in another place
            is_new = kind == "leaked-secret" and request.method == "POST"
            named = "undocumented-field" if is_new else kind
            yield Finding(named, pointer, f"{says}{title}.", Said(due, wanted), got)

    def _departures(self, exchange: Exchange, operation: Operation | None) -> Iterator[_Departure]:
        (method, path, *_), answer = exchange
        status, at = answer.status, "#/paths"
        response: Response | None = None
        if operation is not None:
            at, response = pointer_of(operation), operation.responses.get(status)
        if status == 0:
            yield _Departure("transport", at)
        elif operation is not None and self._is_missing(exchange):
            title = " without an error of the contract: the operation does not exist"
            yield _Departure("missing-operation", at, title)
        elif status >= 500 and response is None:
            yield _Departure("server-error", at)
        elif operation is None:
            is_judged = method not in _UNJUDGED and status not in _ABSENT
            if is_judged and path.split("/")[1] in self._beginnings:
                title = ", and the contract does not have it"
                yield _Departure("undocumented-operation", at, title, "route_not_found")
        elif response is not None:
            raw = operation.raw["responses"][str(status)]
            place = raw.get("$ref") or below(at, "responses", status)
            yield from self._compared(answer, response, place)
        elif status not in _BEFORE_OPERATIONS:
            wanted = f"one of {', '.join(map(str, operation.responses))}"
            title = ", which the contract does not list"
            yield _Departure("undocumented-status", below(at, "responses"), title, wanted)

    def _compared(self, answer: Answer, response: Response, at: str) -> Iterator[_Departure]:
        """In what an answer departs from a response, which the contract has in a place."""
        body, codes = answer.json(), response.codes
        code = code_of(body)
        if codes and answer.status >= 400 and code not in (None, *codes):
            title = f" with the code {code}, which the contract does not list"
            wanted = f"code: one of {', '.join(codes)}"
            yield _Departure("error-code", below(at, "x-codes"), title, wanted)
            body = {**body, "code": codes[0]}
        media = (answer.header("content-type") or "").partition(";")[0].strip().lower()
        sent, due = (media or "a body") if answer.body else "no body", response.media or ["no body"]
        if sent == JSON and body is None:
            sent = "broken JSON"
        if sent not in due:
            wanted, where = " or ".join(due), below(at, "content")
            yield _Departure("schema", where, f" with {sent}, not {wanted}", wanted)
        elif sent == JSON:
            yield from self._content(below(at, "content", JSON, "schema"), body)
        for name, header in response.headers.items():
            if header.get("required") and answer.header(name) is None:
                title, where = f" without the header {name}", below(at, "headers", name)
                yield _Departure("missing-header", where, title, f"header {name}")

    def _content(self, pointer: str, body: Any) -> Iterator[_Departure]:
        """Compare a body with a schema."""
        validator, is_deep = self._compiled(pointer), is_deeper_than(body, DEEPEST)
        if not is_deep and validator.is_valid(body):
            return
        if is_deep or has_more_values(body, MOST_EXPLAINED):
            title = " with a body that is too deep or too large to be compared"
            yield _Departure("schema", pointer, title, "a valid body")
            return
        found: dict[str, _Departure] = {}
        for error in islice(validator.iter_errors(body), _MOST_ERRORS):
            for each in self._violated(pointer, error):
                found.setdefault(each.pointer, each)
        yield from islice(found.values(), MOST)

    def _violated(self, root: str, error: Any) -> Iterator[_Departure]:
        """In what one violation of a schema departs."""
        pointer, schema, path = within(self._document, root, error.instance_path)
        keyword, name = error.kind.name, path or "the body"
        above = f"{path}." if path else ""
        if keyword == "required":
            lacking = [each for each in schema.get("required", ()) if each not in error.instance]
            lacking = lacking or [error.kind.property]  # a part of `allOf` requires it
            at = ["properties", *lacking] if len(lacking) == 1 else ["required"]
            where = canonical(self._document, below(pointer, *at))
            names = ", ".join(above + each for each in lacking)
            yield _Departure("schema", where, f" without {names}", names)
        elif keyword == "additionalProperties":
            for unknown in error.kind.unexpected:
                shown = above + unknown
                title = f" with the member {shown}, which the contract does not have"
                where = canonical(self._document, below(pointer, "properties", unknown))
                got = Got(shown, error.instance[unknown])
                is_secret = got.value and unknown.lower() in self._secrets
                kind = "leaked-secret" if is_secret else "undocumented-field"
                yield _Departure(kind, where, title, f"no {shown}", got)
        else:
            wanted = shape(schema, self._document)
            where, got = below(pointer, keyword), Got(name, error.instance)
            title = f" with {name} that is not {wanted}"
            yield _Departure("schema", where, title, f"{name}: {wanted}", got)

    def _is_missing(self, exchange: Exchange) -> bool:
        """Whether an answer says that the operation does not exist, and not the record."""
        status, code = exchange.answer.status, code_of(exchange.answer.json())
        if status not in _ABSENT:
            return False
        if status == 405 or str(code).lower() in _NO_ROUTE:
            return True
        return code is None and self.nowhere in (None, said(exchange))


def said(exchange: Exchange) -> str:
    """The words of an answer, without the path that was asked for."""
    text = exchange.answer.body.decode("utf-8", "replace")
    return words(text.replace(exchange.request.path, ""))


def words(text: str) -> str:
    """A text without ids and instants, which no two answers share."""
    return " ".join(word for word in _WORD.findall(text) if not any(map(str.isdigit, word)))
