"""What the page of one operation shows: all that the contract says of it, and a call of
it that works.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from http.client import responses
from typing import Any, NamedTuple

from ..contract.document import JSON, Document, Operation
from ..contract.lifecycles import Lifecycle, Move
from ..contract.source import Json
from .fields import Row, row, rows
from .filters import in_one_line, pretty

_SANDBOX_NAME = "sandboxName"


class Example(NamedTuple):
    """An example of a body. `name` is the contract's, for a refusal its code."""

    name: str
    summary: str
    value: Any


class Part(NamedTuple):
    """A body of a request or an answer: its media type, what it is as a whole, its fields
    and examples.
    """

    media: str
    whole: Row
    fields: list[Row]
    examples: list[Example]


class Answer(NamedTuple):
    """One documented answer."""

    status: int
    meaning: str
    description: str
    codes: tuple[str, ...]
    headers: list[Row]
    parts: list[Part]

    @property
    def example(self) -> Any:
        """The first JSON that it shows."""
        for part in self.parts:
            if part.media == JSON and part.examples:
                return part.examples[0].value
        return None


@dataclass(frozen=True, eq=False)
class Sheet:
    """One operation that a page shows, of a contract with the examples that the reader may see.

    `base` is what stands before its path, `name` the sandbox at `url`. Readers who may not see the
    credentials have none.
    """

    operation: Operation
    base: str
    document: Document
    name: str
    url: str
    has_admin_key: bool
    credentials: Mapping[str, str]

    @property
    def path(self) -> str:
        """The path as it is called in the sandbox."""
        return (self.base + self.operation.path).rstrip("/") or "/"

    @cached_property
    def parameters(self) -> list[tuple[str, list[Row]]]:
        """The parameters by place: path, query, header."""
        found: dict[str, list[Row]] = {}
        for raw in map(self.document.resolve, self.operation.raw.get("parameters", ())):
            described = raw | ({"example": self._value_of(raw)} if raw["in"] == "path" else {})
            plain = row(
                self.document,
                raw["name"],
                raw["schema"],
                required=bool(raw.get("required")),
                texts=described,
            )
            found.setdefault(raw["in"], []).append(plain)
        return [
            (place, found[place])
            for place in ("path", "query", "header", "cookie")
            if place in found
        ]

    @cached_property
    def request(self) -> list[Part]:
        """The bodies that it takes, one for each media type."""
        return list(self._parts(self.document.resolve(self.operation.raw.get("requestBody")) or {}))

    @cached_property
    def answers(self) -> list[Answer]:
        """The documented answers by status."""
        return [self._answer(status) for status in sorted(self.operation.responses)]

    @property
    def headers(self) -> list[Row]:
        """The headers of all answers."""
        found: dict[str, Row] = {}
        for answer in self.answers:
            for each in answer.headers:
                found.setdefault(each.name, each)
        return list(found.values())

    def moves(self, lifecycles: Mapping[str, Lifecycle]) -> list[tuple[str, Move]]:
        """The moves of states that it may cause, with their resource."""
        ident = self.operation.id
        return [
            (name, move)
            for name, each in lifecycles.items()
            for move in each.moves
            if ident in move.by
        ]

    @property
    def credential(self) -> str | None:
        """The token or key that it is called with, None for callers who may not read them."""
        return self.credentials.get("jwt" if self.operation.scheme == "jwt" else "private_key")

    @property
    def body(self) -> str:
        """A body that works, empty where none is needed."""
        for part in self.request:
            for example in part.examples:
                return pretty(example.value)
        return "{}" if self.operation.body_required else ""

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

    def _answer(self, status: int) -> Answer:
        raw = self.document.resolve(self.operation.raw["responses"][str(status)])
        return Answer(
            status,
            responses.get(status, ""),
            raw.get("description", ""),
            tuple(raw.get("x-codes", ())),
            [
                row(
                    self.document,
                    name,
                    header.get("schema", {}),
                    required=bool(header.get("required")),
                    texts=header,
                )
                for name, header in self.operation.responses[status].headers.items()
            ],
            list(self._parts(raw)),
        )

    def _parts(self, message: Json) -> Iterator[Part]:
        for media, content in message.get("content", {}).items():
            schema = content.get("schema", {})
            whole = row(self.document, "", schema, required=bool(message.get("required")))
            yield Part(media, whole, rows(self.document, schema), list(self._examples(content)))

    def _examples(self, content: Json) -> Iterator[Example]:
        shown = content.get(
            "examples", {"": {"value": content["example"]}} if "example" in content else {}
        )
        for name, node in shown.items():
            example = self.document.resolve(node)
            if "value" in example:
                yield Example(name, example.get("summary", ""), example["value"])
