"""Requests that the contract gives rise to, the same in every run: valid and invalid paths,
methods, queries, headers, credentials and bodies of every operation.
"""

import copy
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from stub_server.contract.document import Document, Operation

from .wire import Request

SEED = 20_261_128
DRAWN = 4  # of each operation by schemathesis, valid and as many invalid
MOST = 130  # bodies of an operation that are sent, of all that its schema gives rise to
DEEPEST = 4
UUID = "3f1c9a52-7b64-4d0e-8a21-5c6de0b7f913"
JSON = "application/json"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "get", "LINK")
MEDIA = (
    *(
        "text/plain",
        "application/xml",
        "application/jsonx",
        "x",
        "",
        JSON,
        "Application/JSON",
        "application/JSON",
    ),
    *(
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json; charset=latin-1",
    ),
    *(
        "application/json ; charset=utf-8",
        "application/json;charset=foo",
        "application/*",
        "*/*",
        f"{JSON}, {JSON}",
    ),
)
ANYTHING: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    2**53,
    "",
    "x",
    "1",
    "null",
    [],
    [None],
    {},
    {"x": 1},
)
STRINGS: Mapping[str, tuple[str, ...]] = {
    "uuid": (UUID, UUID.upper(), UUID[:-1], f"{{{UUID}}}", UUID.replace("-", ""), f"{UUID}\n"),
    "date-time": (
        *(
            "2026-01-31T10:00:00Z",
            "2026-01-31T10:00:00.123-03:00",
            "2026-01-31T10:00:00",
            "2026-02-30T10:00:00Z",
        ),
        *(
            "2026-01-31",
            "2026-01-31 10:00:00Z",
            "9999-12-31T23:59:59Z",
            "2026-12-31T23:59:60Z",
            "2026-01-31T24:00:00Z",
        ),
    ),
    "email": ("a@example.com", "a@", "@", "a b@example.com", "a@example.com\n", "é@example.com"),
    "uri": (
        "https://example.com/a?b=c",
        "http://127.0.0.1:99999/",
        "example.com",
        "//example.com",
        "https://",
        "a b",
    ),
    "document": (
        "39053344705",
        "390.533.447-05",
        "39053344704",
        "12.ABC.345/01DE-35",
        "AB123456",
        "1",
    ),
    "ip-network": ("10.0.0.0/8", "10.0.0.1", "::1/128", "10.0.0.0/33", "10.0.0.0/08", "a"),
}
TEXTS = (
    "%20",
    "a%20b",
    "a%2Fb",
    "%00",
    "%0A",
    "%C3%A9",
    "..%2F",
    "x" * 300,
    "0",
    "-",
    "%7Bid%7D",
    "a+b",
    ".",
)


def all_requests(contract: dict[str, Any], credentials: Mapping[str, str]) -> list[Request]:
    """Every request of a run; `credentials` are Authorization headers by what they are, `full` with
    every right.
    """
    document = Document(contract)
    made: list[Request] = []
    for operation in document.operations.values():
        of_one = OfOperation(document, operation, credentials["full"])
        made += of_one.paths_and_methods()
        made += of_one.by_credentials(credentials)
        made += of_one.queries()
        made += of_one.headers()
        made += of_one.bodies()
    return [*made, *drawn(contract, credentials["full"])]


class OfOperation:
    """The requests about one operation: each changes one thing of a request that the
    contract takes.
    """

    def __init__(self, document: Document, operation: Operation, full: str) -> None:
        self._document = document
        self._operation = operation
        self._full = full
        self._random = random.Random(f"{SEED}/{operation.id}")
        self._ids = {
            p.name: self._id(document.resolve(p.schema))
            for p in operation.parameters
            if p.place == "path"
        }
        self._body: Any = None if operation.body is None else self._example()

    def _example(self) -> Any:
        """The contract's own example of a body."""
        raw = self._document.raw["paths"][self._operation.path][self._operation.method.lower()]
        content = self._document.resolve(raw["requestBody"])["content"][JSON]
        if "example" in content:
            return content["example"]
        return self._document.resolve(next(iter(content["examples"].values())))["value"]

    @staticmethod
    def _id(schema: dict[str, Any]) -> str:
        return UUID if schema.get("format") == "uuid" else f"pk_sandbox_{'0' * 24}"

    def _request(self, about: str, **changes: Any) -> Request:
        """The valid request, with changes."""
        path = self._operation.path.format_map(changes.pop("ids", self._ids))
        whole: dict[str, Any] = {"method": self._operation.method, "path": path, "about": about}
        headers = {"authorization": self._full}
        if self._body is not None:
            headers["content-type"] = JSON
            whole["body"] = json.dumps(self._body).encode()
        headers |= changes.pop("headers", {})
        whole["headers"] = tuple(
            (name, value) for name, value in headers.items() if value is not None
        )
        return Request(**(whole | changes))

    def paths_and_methods(self) -> Iterator[Request]:
        """Other methods, paths that are nearly this one, and ids of every kind."""
        yield self._request("valid")
        for method in METHODS:
            yield self._request(f"method {method}", method=method)
        path = self._operation.path.format_map(self._ids)
        for other in (
            f"{path}/",
            f"{path}//",
            f"{path}/x",
            f"/{path}",
            path.upper(),
            f"/v3{path}",
            path[:-1],
        ):
            yield self._request("path", path=other)
        for name in self._ids:
            for text in (*TEXTS, *(quote(value) for value in STRINGS["uuid"])):
                yield self._request(f"id {text[:20]}", ids=self._ids | {name: text})

    def by_credentials(self, credentials: Mapping[str, str]) -> Iterator[Request]:
        for name, value in credentials.items():
            yield self._request(f"credential {name}", headers={"authorization": value})
        wrong = (
            None,
            "",
            "Bearer",
            "Bearer ",
            "Basic YTpi",
            "x",
            self._full.lower(),
            f"{self._full}x",
        )
        for header in wrong:
            yield self._request(
                f"authorization {str(header)[:12]}", headers={"authorization": header}
            )
        yield self._request(
            "scheme in capitals", headers={"authorization": self._full.replace("Bearer", "BEARER")}
        )

    def queries(self) -> Iterator[Request]:
        """Each parameter with values of every kind; and what the contract does not have."""
        for parameter in self._operation.parameters:
            if parameter.place != "query":
                continue
            for value in values_of(self._document, parameter.schema):
                text = value if isinstance(value, str) else json.dumps(value)
                yield self._request(
                    f"query {parameter.name}", query=urlencode({parameter.name: text})
                )
            for pair in ("page=1", f"{parameter.name}="):
                yield self._request(f"query {parameter.name} twice", query=f"{pair}&{pair}")
        for query in ("unknown=1", "a", "&&", "=1", "page=1&unknown=2"):
            yield self._request(f"query {query}", query=query)

    def headers(self) -> Iterator[Request]:
        for parameter in self._operation.parameters:
            if parameter.place != "header":
                continue
            for value in (*ANYTHING, "k" * 255, "k" * 256, "a b", "\xe9", "a,b"):
                text = value if isinstance(value, str) else json.dumps(value)
                yield self._request(
                    f"header {parameter.name}", headers={parameter.name.lower(): text}
                )

    def bodies(self) -> Iterator[Request]:
        """Each member with values of every kind, left out, or beside one that does not exist; and
        what is no JSON.
        """
        if self._operation.body is None:
            yield self._request(
                "body that is not asked for", body=b'{"x": 1}', headers={"content-type": JSON}
            )
            return
        changed = [*changes_of(self._document, self._operation.body, self._body)]
        for about, body in self._random.sample(changed, min(MOST, len(changed))):
            yield self._request(f"body {about}", body=json.dumps(body).encode())
        name = next(iter(self._body))
        whole = json.dumps(self._body)[1:-1]
        for text in (
            "NaN",
            "Infinity",
            "1e400",
            "1" * 5_000,
            r'"\ud800"',
            '"' + r"\u0000" + '"',
            "[" * 40 + "]" * 40,
            "01",
            "'x'",
        ):
            yield self._request(f"JSON {text[:10]}", body=f'{{{whole}, "{name}": {text}}}'.encode())
        for raw in (
            b"",
            b"{",
            b"nul",
            b"null",
            b"[]",
            b'"x"',
            b"1",
            b'{"a": 1,}',
            b"\xff",
            b"{}",
            b" ",
            b"\xef\xbb\xbf{}",
        ):
            yield self._request(f"raw {raw!r}", body=raw)
            yield self._request(f"raw {raw!r} untyped", body=raw, headers={"content-type": None})
        for media in MEDIA:
            yield self._request(f"media type {media}", headers={"content-type": media})
            yield self._request(f"media type {media}", headers={"content-type": media}, body=b"[]")


# -- values out of schemas


def example_of(document: Document, schema: dict[str, Any]) -> Any:
    """A valid value with every member."""
    schema = merged(document, schema)
    if "example" in schema:
        return schema["example"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        members = schema.get("properties", {})
        return {name: example_of(document, member) for name, member in members.items()}
    if kind == "array":
        item = example_of(document, schema["items"])
        return [item] if schema.get("maxItems", 1) else []
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "boolean":
        return True
    return STRINGS.get(schema.get("format", ""), ("x" * max(1, schema.get("minLength", 1)),))[0]


def merged(document: Document, schema: Any) -> dict[str, Any]:
    """A schema with the members of those that it is made of; of alternatives the first."""
    found: dict[str, Any] = dict(document.resolve(schema))
    for part in (*found.pop("allOf", ()), *found.pop("anyOf", ())[:1], *found.pop("oneOf", ())[:1]):
        other = merged(document, part)
        properties = found.get("properties", {}) | other.get("properties", {})
        found = other | found | ({"properties": properties} if properties else {})
    return found


def values_of(document: Document, schema: Any) -> list[Any]:
    """Values at and beyond the bounds of a schema, and of every other kind."""
    schema = merged(document, schema)
    values: list[Any] = [*ANYTHING, *STRINGS.get(schema.get("format", ""), ())]
    if "example" in schema:
        values.append(schema["example"])
    for choice in schema.get("enum", ()):
        values += [choice, f"{choice}x", str(choice).upper()]
    if schema.get("type") in ("integer", "number"):
        values += [
            "1_0",
            "+1",
            "01",
            "\u0661",
            "1e1",
            "1.0",
            "0x1",
            "nan",
            "inf",
            "-0",
            1e1,
            19.99,
            0.001,
        ]
    if schema.get("type") == "boolean":
        values += ["true", "True", "TRUE", "1", "yes", "on", "false", "False"]
    for bound in (schema.get("minLength"), schema.get("maxLength")):
        if bound is not None and bound < 5_000:
            values += ["a" * max(0, bound - 1), "a" * bound, "a" * (bound + 1)]
    for bound in (schema.get("minimum"), schema.get("maximum")):
        if bound is not None:
            values += [
                bound - 1,
                bound,
                bound + 1,
                bound + 0.5,
                str(bound),
                f" {bound}",
                f"{bound}.0",
            ]
    if schema.get("type") == "array":
        item = example_of(document, schema["items"])
        values += [
            [item] * count
            for count in (1, 2, schema.get("maxItems", 3), schema.get("maxItems", 3) + 1)
        ]
    return values


def changes_of(
    document: Document, schema: Any, value: Any, place: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Copies of a value, each changed at one place, and where."""
    for other in values_of(document, schema):
        yield place or "whole", copy.deepcopy(other)
    schema = merged(document, schema)
    if isinstance(value, list) and value and depth < DEEPEST:
        for where, other in changes_of(
            document, schema["items"], value[0], f"{place}[0]", depth + 1
        ):
            yield where, [other, *value[1:]]
    if not isinstance(value, dict) or depth >= DEEPEST:
        return
    for name in value:
        yield f"{place}.{name} left out", {key: kept for key, kept in value.items() if key != name}
    for name, below in schema.get("properties", {}).items():
        member = value[name] if name in value else example_of(document, below)
        for where, other in changes_of(document, below, member, f"{place}.{name}", depth + 1):
            yield where, value | {name: other}
    yield f"{place}.unknown", value | {"unknown": 1}
    yield (
        f"{place} alone",
        {name: value[name] for name in schema.get("required", ()) if name in value},
    )


# -- drawn


def drawn(contract: dict[str, Any], full: str) -> Iterator[Request]:
    """What schemathesis makes of each operation, with a credential that has every right."""
    whole = schemathesis.openapi.from_dict(contract)
    for result in whole.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            for case in _cases(operation.as_strategy(generation_mode=mode)):
                yield _request(case, full, f"drawn {mode.value}")


def _cases(strategy: Any) -> list[Any]:
    found = []

    @settings(
        max_examples=DRAWN,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(strategy)
    def draw(case: Any) -> None:
        found.append(case)

    draw()
    return found


def _request(case: Any, full: str, about: str) -> Request:
    sent = case.as_transport_kwargs(base_url="http://127.0.0.1:4600")
    known = {
        name: sent[name]
        for name in ("method", "url", "headers", "params", "data", "json")
        if name in sent
    }
    prepared = requests.Request(**known).prepare()
    path, _, query = prepared.path_url.partition("?")
    headers = {name.lower(): str(value) for name, value in prepared.headers.items()} | {
        "authorization": full
    }
    # the first is added later, the second is random
    for name in ("content-length", "x-schemathesis-testcaseid"):
        headers.pop(name, None)
    body = prepared.body or b""
    body = body if isinstance(body, bytes) else str(body).encode()
    return Request(case.method, path, query, tuple(headers.items()), body, about)
