"""One operation for its page: what the contract says of it, and a call of it as a form, filled with
what works, or with what was sent.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from shlex import quote
from typing import NamedTuple
from urllib.parse import quote as encoded
from urllib.parse import urlencode

from flask import render_template

from ..contract.document import JSON, Document, Operation
from ..contract.secrets import KEY_HEADERS
from ..contract.source import Json
from ..core.text import SAFE_IN_PATHS
from ..server.curl import command
from ..server.layers.inside import Question
from .fields import Row, row, rows
from .filters import in_one_line, pretty
from .snippets import as_code

_SANDBOX_NAME = "sandboxName"
_PLACES = ("path", "query", "header", "cookie")
_NOT_ASKED = frozenset(KEY_HEADERS)  # the session has the key
_ENDLESS = "text/event-stream"


class Part(NamedTuple):
    """A body of a request or an answer: its media type, what it is as a whole, its fields, and its
    examples, of a refusal by their codes.
    """

    media: str
    whole: Row
    fields: list[Row]
    examples: dict[str, Json]


class Input(NamedTuple):
    """A value that the form asks for. `field` is its name in the form."""

    field: str
    place: str
    row: Row
    value: str


@dataclass(frozen=True, eq=False)
class Sheet:
    """One operation that a page shows, of a contract with the examples that the reader may see.

    `base` is what stands before its path, `name` the sandbox at `url`. Readers who may not see the
    credentials have none. `sent` are values of the form; the others are those that work.
    """

    operation: Operation
    base: str
    document: Document
    name: str
    url: str
    has_admin_key: bool
    credentials: Mapping[str, str]
    sent: Mapping[str, str] = field(default_factory=dict)

    # -- what the contract says

    @property
    def path(self) -> str:
        """The path as it is called in the sandbox."""
        return (self.base + self.operation.path).rstrip("/") or "/"

    @cached_property
    def parameters(self) -> list[tuple[str, list[Row]]]:
        """The parameters by place: path, query, header."""
        found: dict[str, list[Row]] = {place: [] for place in _PLACES}
        for raw in map(self.document.resolve, self.operation.raw.get("parameters", ())):
            texts = raw | ({"example": self._value_of(raw)} if raw["in"] == "path" else {})
            found[raw["in"]].append(self._row(raw["name"], raw, texts))
        return [(place, listed) for place, listed in found.items() if listed]

    @cached_property
    def request(self) -> list[Part]:
        """The bodies that it takes, one for each media type."""
        return self.parts(self.operation.raw.get("requestBody") or {})

    def answer(self, status: int) -> Json:
        """What the contract says of an answer."""
        return self.document.resolve(self.operation.raw["responses"][str(status)])

    def parts(self, message: Json) -> list[Part]:
        """The bodies of a request or an answer."""
        found, message = [], self.document.resolve(message)
        for media, content in message.get("content", {}).items():
            whole = self._row("", content | {"required": message.get("required")})
            fields = rows(self.document, content.get("schema", {}))
            found.append(Part(media, whole, fields, dict(self._examples(content))))
        return found

    @property
    def headers(self) -> list[Row]:
        """The headers of all answers."""
        found: dict[str, Row] = {}
        for status in sorted(self.operation.responses):
            for name, header in self.operation.responses[status].headers.items():
                found.setdefault(name, self._row(name, header, header))
        return list(found.values())

    def _row(self, name: str, raw: Json, texts: Json | None = None) -> Row:
        """The row of what has a schema."""
        required = bool(raw.get("required"))
        schema = raw.get("schema", {})
        return row(self.document, name, schema, required=required, texts=texts)

    def _examples(self, content: Json) -> Iterator[tuple[str, Json]]:
        shown = content.get("examples", {})
        if "example" in content:
            shown = {"": {"value": content["example"]}}
        for name, node in shown.items():
            example = self.document.resolve(node)
            if "value" in example:
                yield name, example

    def _value_of(self, raw: Json) -> str | None:
        """A value of a parameter in this sandbox.

        What ends a sandbox names none: it may be the one that is read.
        """
        schema = self.document.resolve(raw["schema"])
        shown = [example["value"] for example in raw.get("examples", {}).values()]
        example = shown[0] if shown else raw.get("example", schema.get("example"))
        if example is None and raw["name"] == _SANDBOX_NAME and self.operation.method != "DELETE":
            return self.name
        return None if example is None else in_one_line(example)

    # -- a call

    @property
    def is_offered(self) -> bool:
        """Whether a form can make the call: neither one that takes a file, nor one whose answer has
        no end.
        """
        answers = [media for each in self.operation.responses.values() for media in each.media]
        return not self.operation.uploads and _ENDLESS not in answers

    @cached_property
    def inputs(self) -> list[Input]:
        """The parameters that a form asks for."""
        found = []
        for place, listed in self.parameters:
            for each in listed:
                if each.name.lower() in _NOT_ASKED or place == "cookie":
                    continue
                named = f"{place}.{each.name}"
                working = (each.example or "") if each.required else ""
                found.append(Input(named, place, each, self._value(named, working)))
        return found

    @property
    def authorization(self) -> str:
        """The header that carries the credential; callers who may not read the token and the keys
        have none.
        """
        kind = "jwt" if self.operation.scheme == "jwt" else "private_key"
        known = self.credentials.get(kind)
        return self._value("authorization", f"Bearer {known}" if known else "")

    @property
    def working_body(self) -> str:
        """A body that works, empty where none is needed."""
        for part in self.request:
            for example in part.examples.values():
                return pretty(example["value"])
        return "{}" if self.operation.body_required else ""

    @property
    def body(self) -> str:
        """The JSON, or whatever was written in its place."""
        return self._value("body", self.working_body)

    @cached_property
    def question(self) -> Question:
        """The request."""
        return self._question(self.inputs, self.authorization.strip())

    @property
    def blanks(self) -> list[str]:
        """The placeholders of `curl`: neither the contract nor the sandbox has a value for
        these.
        """
        found = [_blank(each) for each in self.inputs if each.row.required and not each.value]
        return found + (["FILE"] if self.operation.uploads else [])

    @cached_property
    def code(self) -> dict[str, str]:
        """The request as a command for a shell, in Python with httpx and in TypeScript with fetch,
        with ids and a key of this sandbox; placeholders are in capitals.

        A key of the controls is read from the environment, where they need one.
        """
        filled = []
        for each in self.inputs:
            is_blank = each.row.required and not each.value
            filled.append(each._replace(value=_blank(each)) if is_blank else each)
        token = "" if "authorization" in self.sent else "Bearer TOKEN"
        asked = self._question(filled, self.authorization or token)
        headers = {name: value for name, value in asked.headers.items() if value}
        needs_key = self.has_admin_key and self.base != ""
        shell = command(
            asked.method,
            asked.path,
            asked.query,
            headers,
            asked.body,
            base_url=self.url,
            has_admin_key=needs_key,
        )
        shell = shell or "A shell command cannot contain this body."
        found = {"curl": shell + self._files(asked.path)}
        url = self.url + encoded(asked.path, safe=SAFE_IN_PATHS)
        text, literal = as_code(asked.body)
        for language in ("Python", "TypeScript"):
            found[language] = render_template(
                f"code/{language.lower()}.txt",
                method=asked.method,
                headers=headers,
                url=f"{url}?{asked.query}" if asked.query else url,
                needs_key=needs_key,
                text=text,
                literal=literal,
            )
        return found

    def _files(self, path: str) -> str:
        """The options of curl for a file that is sent or answered."""
        operation = self.operation
        if operation.uploads:
            return f" -H {quote(f'Content-Type: {operation.uploads[0]}')} --data-binary @FILE"
        for status in operation.successes[:1]:
            media = operation.responses[status].media
            if media and not any(map(is_text, media)):
                return f" -o {quote(path.rpartition('/')[2])}"
        return ""

    def _question(self, inputs: list[Input], authorization: str) -> Question:
        operation, path, query = self.operation, self.path, dict[str, str]()
        headers = {"authorization": authorization} if operation.scheme else {}
        for each in inputs:
            name = each.row.name
            if each.place == "path":
                path = path.replace(f"{{{name}}}", each.value)
            elif each.place == "query" and each.value:
                query[name] = each.value
            elif each.value:
                headers[name.lower()] = each.value
        body = self.body.encode("utf-8", "replace") if operation.body is not None else b""
        if body:
            headers["content-type"] = JSON
        return Question(operation.method, path, urlencode(query), headers, body)

    def _value(self, named: str, working: str) -> str:
        return self.sent.get(named, working).replace("\r\n", "\n")


def _blank(asked: Input) -> str:
    """`snapshotName` -> `SNAPSHOT_NAME`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "_", asked.row.name).upper()


def is_text(media: str) -> bool:
    """Whether an answer of a media type can be read as it is."""
    return media.startswith("text/") or media.endswith(("json", "xml", "yaml"))
