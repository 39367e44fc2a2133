"""Exchanges as reports show them: without secrets, and without values of records that the run did
not make.
"""

import re
from dataclasses import replace
from typing import Any

import orjson

from ...contract.document import Document, Operation
from ...contract.redaction import Redactor
from ...contract.secrets import REDACTED, SECRET_HEADERS
from ...server.curl import MADE_ANEW, command
from .catalogue import queried
from .exchange import Answer, Exchange, Headers, Request
from .findings import Finding, Said, Shown, cut

_LARGEST_SENT = 4_096  # bytes of a body that a command repeats
_SHORTEST = 6  # characters of a credential that is looked for in texts
_MOST_MEMBERS = 20  # of an outline
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
_NOT_REPEATED = MADE_ANEW | {"accept", "cookie", "user-agent"}
_TOKEN = "Bearer $TOKEN"  # noqa: S105 - the variable that a shell reads
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}").fullmatch
_IS_NAME = re.compile(r"v[0-9]+|[^0-9]*").fullmatch
_PLAIN = frozenset(("integer", "number", "boolean"))

# A report is passed on, and a backend may answer with members that the contract does not have.
_SECRETS_OF_BACKENDS = (
    "access_token",
    "client_secret",
    "jwt",
    "password",
    "refresh_token",
    "secret",
    "token",
)


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

    def redacted(self, exchange: Exchange) -> Exchange:
        """The exchange without secrets, and without the credentials of its request
        wherever they occur.
        """
        request, answer = exchange
        own, redactor = _credentials(request.headers), self._redactor

        def line(text: str) -> str:
            return redactor.line(text.encode("latin-1", "replace"), own).decode("latin-1")

        def without(headers: Headers) -> Headers:
            return tuple(
                (name, REDACTED if name.lower() in _SECRET else line(value))
                for name, value in headers
            )

        sent, said = redactor.messages(request.body, answer.body, further=own)
        path, query = line(request.path), redactor.query(request.query, own)
        return Exchange(
            Request(request.method, path, query, without(request.headers), sent or b""),
            answer._replace(headers=without(answer.headers), body=said or b""),
        )

    def line(self, request: Request) -> str:
        """Path and query on one line."""
        shown = self.redacted(Exchange(request._replace(body=b""), Answer(0))).request
        return cut(shown.path + (f"?{shown.query}" if shown.query else ""))

    def shown(self, request: Request, operation: Operation | None = None) -> Shown:
        """The request as a report shows it, with a command that sends it again."""
        method, path, query, headers, body = self.redacted(Exchange(request, Answer(0))).request
        if not self._values:
            path = operation.path if operation is not None else _outlined_path(path)
            query = "&".join(self._member(each, operation) for each in query.split("&") if each)
            body = self._outlined(request.body).encode()
        rest = ""
        if len(body) > _LARGEST_SENT:
            body, rest = b"", f"  # and a body of {len(request.body):,} bytes"
        repeated = {}
        for name, value in headers:
            if name.lower() not in _NOT_REPEATED and value.isprintable():
                is_token = name.lower() == "authorization"
                repeated[name.lower()] = _TOKEN if is_token else value
        curl = command(
            method, "", query, repeated, body, base_url=self._base_url + path, has_admin_key=False
        )
        # A shell inserts the value only between double quotes.
        sent = f"Authorization: {_TOKEN}"
        return Shown(method, path, (curl or "").replace(f"'{sent}'", f'"{sent}"', 1) + rest)

    def finding(
        self, found: Finding, exchange: Exchange, operation: Operation | None, group: str
    ) -> Finding:
        """A finding with the exchange of an operation as a report shows it."""
        said, ident = self.said(exchange.answer, exchange.request), operation and operation.id
        return replace(
            found,
            operation=found.operation or ident or "",
            group=group,
            request=self.shown(exchange.request, operation),
            target=Said(said.status, found.got or said.excerpt),
        )

    def said(self, answer: Answer, request: Request | None = None) -> Said:
        """The answer as a report shows it. Credentials of `request` are removed from it."""
        if not self._values and answer.status:  # without an answer, the body is our own text
            return Said(answer.status, cut(self._outlined(answer.body)))
        redacted = self.redacted(Exchange(request or Request("GET", "/"), answer)).answer
        return Said(answer.status, cut(redacted.body.decode("utf-8", "replace")))

    def value(self, value: Any) -> str:
        """A part of a body as a report shows it: as JSON, or its types."""
        try:
            text = orjson.dumps(value if self._values else outline(value))
        except (TypeError, ValueError):  # nested too deep to be written
            return f"<{kind_of(value)}>"
        if self._values and self._redactor.suspects(text):
            text = self._redactor.messages(text)[0] or b""
        return cut(text.decode())

    def name(self, name: str) -> str:
        """A name that the target chose, as a report shows it."""
        return cut(self._redactor.text(name), 60)

    def _outlined(self, body: bytes) -> str:
        if not body:
            return ""
        try:
            return orjson.dumps(outline(orjson.loads(body))).decode()
        except (TypeError, ValueError):
            return f"<{len(body):,} bytes that are not JSON>"

    def _member(self, member: str, operation: Operation | None) -> str:
        """A member of a query; its value is shown if it is a number, or one that the
        contract lists.
        """
        name, _, value = member.partition("=")
        _, node = ("", {}) if operation is None else queried(operation).get(name, ("", {}))
        schema = self._document.resolve(node)
        is_plain = schema.get("type") in _PLAIN or "enum" in schema
        return f"{name}={value if is_plain else '…'}"


def outline(value: Any) -> Any:
    """The types of members in place of their values. A refusal keeps its status and code."""
    if not isinstance(value, dict):
        return f"<{kind_of(value)}>"
    shown = {name: f"<{kind_of(value[name])}>" for name in [*value][:_MOST_MEMBERS]}
    if value.get("error") is True or isinstance(value.get("code"), str):
        kept = {name: value[name] for name in ("error", "status", "code") if name in value}
        shown |= kept if _CODE(str(value.get("code"))) else {}
    return shown


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    return _KINDS[type(value)]


def _credentials(headers: Headers) -> list[str]:
    """The credentials of a request, each also without the name of its scheme; the longest first."""
    values = [value for name, value in headers if name.lower() in _SECRET]
    parts = {
        part
        for value in values
        for part in (value, value.partition(" ")[2].strip())
        if len(part) >= _SHORTEST
    }
    return sorted(parts, key=lambda part: (-len(part), part))


def _outlined_path(path: str) -> str:
    """A path outside the contract, without segments that may be ids."""
    return "/".join(
        segment if _IS_NAME(segment) and len(segment) <= 30 else "…" for segment in path.split("/")
    )
