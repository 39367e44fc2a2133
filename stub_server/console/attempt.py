"""One call of an operation as a form: filled with what works, or with what was sent."""

import re
from collections.abc import Mapping
from functools import cached_property
from shlex import quote
from typing import NamedTuple
from urllib.parse import urlencode

from ..contract.document import JSON
from ..contract.secrets import KEY_HEADERS
from ..server.layers.inside import Question
from .sheet import Sheet
from .snippets import Snippet, snippets

_NOT_ASKED = frozenset(KEY_HEADERS)  # the session has the key
_ENDLESS = "text/event-stream"


class Input(NamedTuple):
    """A value that the form asks for. `field` is its name in the form."""

    field: str
    name: str
    place: str
    value: str
    required: bool
    options: tuple[str, ...]
    hint: str


class Attempt:
    """A form, and the request that it stands for."""

    def __init__(self, sheet: Sheet, sent: Mapping[str, str] | None = None) -> None:
        """`sent` are values of the form; the others are those that work."""
        self.sheet, self._sent = sheet, sent or {}

    @property
    def is_offered(self) -> bool:
        """Whether a form can make the call: neither one that takes a file, nor one whose answer has
        no end.
        """
        operation = self.sheet.operation
        answers = [media for each in operation.responses.values() for media in each.media]
        return not operation.uploads and _ENDLESS not in answers

    @property
    def inputs(self) -> list[Input]:
        """The parameters of the contract."""
        found = []
        for place, rows in self.sheet.parameters:
            for row in rows:
                if row.name.lower() in _NOT_ASKED or place == "cookie":
                    continue
                field = f"{place}.{row.name}"
                working = row.example if row.required and row.example is not None else ""
                is_switch = row.type.startswith("true or false")
                options = row.allowed or (("true", "false") if is_switch else ())
                hint = "" if row.required else row.example or row.default or ""
                value = self._value(field, working)
                found.append(Input(field, row.name, place, value, row.required, options, hint))
        return found

    @property
    def authorization(self) -> str:
        """The header that carries the credential."""
        return self._value(
            "authorization", f"Bearer {self.sheet.credential}" if self.sheet.credential else ""
        )

    @property
    def body(self) -> str:
        """The JSON, or whatever was written in its place."""
        return self._value("body", self.sheet.body)

    @cached_property
    def question(self) -> Question:
        """The request."""
        return self._question(self.inputs, self.authorization.strip())

    @property
    def blanks(self) -> list[str]:
        """The placeholders of `curl`: neither the contract nor the sandbox has a
        value for these.
        """
        blank = [_blank(each.name) for each in self.inputs if each.required and not each.value]
        return [*blank, *(["FILE"] if self.sheet.operation.uploads else [])]

    @property
    def code(self) -> list[Snippet]:
        """The request in three languages, with ids and a key of this sandbox; placeholders
        are in capitals.
        """
        filled = []
        for each in self.inputs:
            is_blank = each.required and not each.value
            filled.append(each._replace(value=_blank(each.name)) if is_blank else each)
        token = "" if "authorization" in self._sent else "Bearer TOKEN"
        asked = self._question(filled, self.authorization or token)
        found = snippets(asked, self.sheet.url, has_key=self.sheet.has_admin_key)
        return [found[0]._replace(text=found[0].text + self._files(asked.path)), *found[1:]]

    def _files(self, path: str) -> str:
        """The options of curl for a file that is sent or answered."""
        operation = self.sheet.operation
        if operation.uploads:
            return f" -H {quote(f'Content-Type: {operation.uploads[0]}')} --data-binary @FILE"
        for status in operation.successes[:1]:
            media = operation.responses[status].media
            if media and not any(map(is_text, media)):
                return f" -o {quote(path.rpartition('/')[2])}"
        return ""

    def _question(self, inputs: list[Input], authorization: str) -> Question:
        operation, path, query = self.sheet.operation, self.sheet.path, list[tuple[str, str]]()
        headers = {"authorization": authorization} if operation.scheme else {}
        for each in inputs:
            if each.place == "path":
                path = path.replace(f"{{{each.name}}}", each.value)
            elif each.place == "query" and each.value:
                query.append((each.name, each.value))
            elif each.place == "header" and each.value:
                headers[each.name.lower()] = each.value
        body = self.body.encode("utf-8", "replace") if operation.body is not None else b""
        if body:
            headers["content-type"] = JSON
        return Question(operation.method, path, urlencode(query), headers, body)

    def _value(self, field: str, working: str) -> str:
        return self._sent.get(field, working).replace("\r\n", "\n")


def _blank(name: str) -> str:
    """`snapshotName` -> `SNAPSHOT_NAME`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).upper()


def is_text(media: str) -> bool:
    """Whether an answer of a media type can be read as it is."""
    return media.startswith("text/") or media.endswith(("json", "xml", "yaml"))
