"""Exchanges as reports show them: without secrets, and without values of records that the run did
not make.
"""

import re
from dataclasses import replace
from typing import Any

import orjson

from ...contract.document import Document, Operation
from ...contract.pointers import below
from ...contract.redaction import Redactor
from ...contract.secrets import REDACTED, SECRET_HEADERS
from ...contract.source import fixture, unescaped
from ...server.curl import MADE_ANEW, command
from .catalogue import queried
from .exchange import Answer, Exchange, Headers, Request, code_of
from .findings import GROUPS, LONGEST, Finding, Said, Shown, Words, cut

_LARGEST_SENT = 4_096  # bytes of a body that a command repeats
_SHORTEST = 6  # characters of a credential that is looked for in texts
_KINDS = {
    type(None): "null",
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}
_SECRET = frozenset((*SECRET_HEADERS, "set-cookie"))
_NOT_REPEATED = MADE_ANEW | {"accept", "authorization", "cookie", "user-agent"}
_NO_REQUEST = Request("GET", "/")
_IS_NAME = re.compile(r"v[0-9]+|[^0-9]*").fullmatch
_PLAIN = frozenset(("integer", "number", "boolean"))

_SECRETS_OF_BACKENDS: list[str] = fixture("verify.yaml")["secrets"]


class Showing:
    """Shows the exchanges of one target."""

    def __init__(
        self, document: Document, base_url: str = "https://target.example", *, values: bool = True
    ) -> None:
        """`base_url` is used in commands. Without `values`, a type is shown in place of each value.

        Only values of records that the run made may be shown.
        """
        self._document, self._base_url, self._values = document, base_url, values
        self._redactor = Redactor(document, further_names=_SECRETS_OF_BACKENDS)
        self.credentials = [""]
        """Those of the run. Commands call the first `$TOKEN`; another one is `$OTHER_KEY`."""

    def redacted(self, exchange: Exchange) -> Exchange:
        """The exchange without secrets, and without the credentials of its request
        wherever they occur.
        """
        request, answer = exchange
        own, redactor = self._own(request), self._redactor

        def line(text: str, name: str = "") -> str:
            if name.lower() in _SECRET:
                return REDACTED
            return redactor.line(text.encode("latin-1", "replace"), own).decode("latin-1")

        def without(headers: Headers) -> Headers:
            return tuple((name, line(value, name)) for name, value in headers)

        sent, said = redactor.messages(request.body, answer.body, further=own)
        path, query = line(request.path), redactor.query(request.query, own)
        return Exchange(
            Request(request.method, path, query, without(request.headers), sent or b""),
            answer._replace(headers=without(answer.headers), body=said or b""),
        )

    def _own(self, request: Request) -> list[str]:
        """What must not be shown of a request: its credentials and those of the run, each also
        without the name of its scheme, and in lower case; the longest first.
        """
        own = {*self.credentials}
        own |= {value for name, value in request.headers if name.lower() in _SECRET}
        own |= {value.partition(" ")[2].strip() for value in own}
        own |= {value.lower() for value in own}
        return sorted((part for part in own if len(part) >= _SHORTEST), key=len, reverse=True)

    def _shown(self, request: Request, operation: Operation | None) -> Shown:
        """The request as a report shows it, with a command that sends it again; `BODY` stands for a
        body that is not shown.
        """
        method, path, query, headers, body = self.redacted(Exchange(request, Answer(0))).request
        if not self._values:
            path = operation.path if operation is not None else outlined(path)
            query = "&".join(self._member(each, operation) for each in query.split("&") if each)
        if body and (len(body) > _LARGEST_SENT or not self._values):
            body = b"BODY"
        repeated, url, more = {}, self._base_url + path, ""
        for (name, value), (_, sent) in zip(headers, request.headers, strict=True):
            if name.lower() == "authorization":  # a variable, which a shell reads
                variable = "TOKEN" if sent.endswith(self.credentials[0]) else "OTHER_KEY"
                more = f' -H "Authorization: Bearer ${variable}"'
            elif name.lower() not in _NOT_REPEATED and value.isprintable():
                repeated[name.lower()] = value
        curl = command(method, "", query, repeated, body, base_url=url, has_admin_key=False)
        return Shown(method, path, curl + more if curl else "")

    def finding(
        self, found: Finding, exchange: Exchange, operation: Operation | None, group: str
    ) -> Finding:
        """A finding with the exchange of an operation as a report shows it. The target may have
        chosen any part of it, so credentials are removed from each.
        """
        request, got, own = exchange.request, found.got, self._own(exchange.request)

        def clean(text: str) -> str:
            return self._redactor.text(text, own)

        said = self.said(exchange.answer, request)
        if got is not None:
            said = Said(said.status, cut(clean(f"{got.name}: {self.value(*got)}")))
            got = got if self._values and clean(str(got.value)) == str(got.value) else None
        return replace(
            found,
            pointer=found.pointer and below("#", *map(clean, unescaped(found.pointer))),
            place=clean(found.place),
            tries=clean(found.tries),
            title=cut(clean(found.title), 2 * LONGEST),  # which may have two values
            expected=Said(found.expected.status, cut(clean(found.expected.excerpt))),
            operation=found.operation or (operation.id if operation is not None else ""),
            # what makes the records that others need must be accepted too
            group=group if group in GROUPS else "accepts",
            got=got,
            request=self._shown(request, operation),
            target=said,
        )

    def said(self, answer: Answer, request: Request = _NO_REQUEST) -> Said:
        """The answer as a report shows it. Credentials of `request` are removed from it."""
        answer = self.redacted(Exchange(request, answer)).answer
        text = answer.body.decode("utf-8", "replace")
        if not self._values and answer.status:  # without an answer, the body is our own text
            text = code_of(answer.json()) or ""
        return Said(answer.status, cut(text))

    def value(self, name: str, value: Any) -> str:
        """A part of a body as a report shows it, or its type. Secrets are known by their names."""
        if isinstance(value, Words):
            return value
        try:
            text = orjson.dumps({name.rpartition(".")[2]: value})
        except (TypeError, ValueError):  # nested too deep to be written
            text = b""
        if not text or not self._values:
            return f"<{_KINDS[type(value)]}>"
        shown = (self._redactor.messages(text)[0] or b"").decode()
        return cut(shown.partition(":")[2][:-1])

    def _member(self, member: str, operation: Operation | None) -> str:
        """A member of a query; its value is shown if it is a number, or one that the
        contract lists.
        """
        name, known = member.partition("=")[0], {} if operation is None else queried(operation)
        schema = self._document.resolve(known[name][1]) if name in known else {}
        is_plain = schema.get("type") in _PLAIN or "enum" in schema
        return member if is_plain else f"{name}=…"


def outlined(path: str) -> str:
    """A path outside the contract, without segments that may be ids."""
    return "/".join(
        segment if _IS_NAME(segment) and len(segment) <= 30 else "…" for segment in path.split("/")
    )
