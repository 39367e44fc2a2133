"""Typed views of a bundled contract: operations, parameters, responses, lifecycles,
events and scopes.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

import orjson

from ..core.record import UniqueKey
from .lifecycles import Changes, Lifecycle, Names, lifecycle_of
from .source import Json, JsonObject, Place, error_at, operations_in, unescaped, value_at

JSON = "application/json"
_PARAMETER = re.compile(r"\{([^}]+)\}")


class Parameter(NamedTuple):
    """A parameter, and where the document has it."""

    name: str
    place: str
    required: bool
    schema: Json
    at: Place


class Response(NamedTuple):
    """One documented response: its body's schema by media type, its headers, and the error codes it
    may carry.
    """

    status: int
    media: Mapping[str, Json]
    headers: Mapping[str, Json]
    codes: Names


class Operation(NamedTuple):
    """One operation as the contract describes it. `scheme` is None if it needs no credential.

    `uploads` are the media types of a body that is a file and no JSON. One that `takes_key` has an
    Idempotency-Key.
    """

    id: str
    method: str
    path: str
    tag: str
    scheme: str | None
    scopes: frozenset[str]
    emits: Names
    parameters: tuple[Parameter, ...]
    body: Json | None
    body_required: bool
    uploads: tuple[str, ...]
    takes_key: bool
    responses: Mapping[int, Response]
    raw: Json

    @property
    def at(self) -> Place:
        """The place of the operation in the document."""
        return ["paths", self.path, self.method.lower()]

    def at_ids(self, values: Mapping[str, str]) -> str:
        """Its path with values in place of parameters."""
        path = self.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", value)
        return path

    @property
    def body_at(self) -> Place:
        """The place of the schema of its JSON body."""
        return [*self.at, "requestBody", "content", JSON, "schema"]

    @property
    def successes(self) -> list[int]:
        """The statuses of its successes: of the shipped contract one."""
        return [status for status in self.responses if 200 <= status < 300]

    @property
    def schemas(self) -> list[Json]:
        """The schemas of its parameters, of its body, and of its successes."""
        found = [self.body or {}]
        found += [parameter.schema for parameter in self.parameters]
        for status in self.successes:
            found += self.responses[status].media.values()
        return found

    def success_like(self, shipped: "Operation") -> int | None:
        """The status in place of the one with which the shipped operation succeeds; None
        if it is unclear.
        """
        old, new = shipped.successes[0], self.successes
        if old in new:
            return old
        if len(new) == 1:
            return new[0]
        return None

    @property
    def basis(self) -> dict[str, str]:
        """For each part, whether it is documented or assumed.

        Without `x-basis`, as in an overlay, it is assumed.
        """
        known: dict[str, str] = self.raw.get("x-basis", {})
        return dict.fromkeys(("method", "path", "request", "response"), "assumed") | known

    @property
    def is_documented(self) -> bool:
        """Whether the source document shows every part."""
        return set(self.basis.values()) == {"documented"}


class Document:
    """One bundled contract."""

    def __init__(self, raw: Json) -> None:
        """`raw` is a contract as `bundle.contracts` makes it."""
        self.raw = raw

    def resolve(self, node: Json) -> Json:
        """The target of a `$ref` inside the document; any other node as it is."""
        while isinstance(node, dict) and "$ref" in node:
            node = value_at(self.raw, unescaped(node["$ref"]))
        return node

    def schema_at(self, schema: Json, path: Sequence[str | int]) -> Json:
        """The part of a schema that is for a place of a value; an empty one where it has none."""
        for step in path:
            schema = _inside(self.resolve(schema), step)
            if not isinstance(schema, dict):
                return {}
        return self.resolve(schema)

    def examples(self, message: Json) -> list[Any]:
        """The examples of the JSON body of a request or a response."""
        content = self.resolve(message or {}).get("content", {}).get(JSON, {})
        found = []
        for named in content.get("examples", {}).values():
            example = self.resolve(named)
            if "value" in example:
                found.append(example["value"])
        if "example" in content:
            found.append(content["example"])
        return found

    @cached_property
    def operations(self) -> dict[str, Operation]:
        """Every operation by its id, in the document's order."""
        found: dict[str, Operation] = {}
        for path, method, raw in operations_in(self.raw):
            operation = self._operation(path, method, raw)
            if operation.id in found:
                raise error_at(operation.at, f"operationId {operation.id} appears twice")
            found[operation.id] = operation
        return found

    def _operation(self, path: str, method: str, raw: Json) -> Operation:
        where: Place = ["paths", path, method]
        if not raw.get("operationId") or not raw.get("tags"):
            raise error_at(where, "an operation needs an operationId and a tag")
        body = self.resolve(raw.get("requestBody", {}))
        content = body.get("content", {})
        has_json = JSON in content
        parameters = []
        for number, node in enumerate(raw.get("parameters", ())):
            place: Place = [*where, "parameters", number]
            if "$ref" in node:
                place = [*unescaped(node["$ref"])]
            about = self.resolve(node)
            parameters.append(
                Parameter(
                    about["name"], about["in"], bool(about.get("required")), about["schema"], place
                )
            )
        sent = [(each.place, each.name.lower()) for each in parameters]
        return Operation(
            id=raw["operationId"],
            method=method.upper(),
            path=path,
            tag=raw["tags"][0],
            scheme=self._scheme(raw, where),
            scopes=frozenset(raw.get("x-scopes", ())),
            emits=tuple(raw.get("x-emits", ())),
            parameters=tuple(parameters),
            body=content[JSON].get("schema", {}) if has_json else None,
            body_required=has_json and bool(body.get("required")),
            uploads=() if has_json else tuple(content),
            takes_key=("header", "idempotency-key") in sent,
            responses=self._responses(raw["responses"], where),
            raw=raw,
        )

    def _scheme(self, operation: Json, where: Place) -> str | None:
        """The security scheme of an operation. Raises ContractError for several."""
        names = [*chain.from_iterable(operation.get("security", self.raw.get("security", [])))]
        if len(names) > 1:
            raise error_at(where, f"one security scheme per operation, not {', '.join(names)}")
        return names[0] if names else None

    def _responses(self, nodes: Json, where: Place) -> dict[int, Response]:
        """The responses of an operation by status. Raises ContractError."""
        found = {}
        for code, node in nodes.items():
            if code == "default" and "x-names-from" in self.raw:
                continue  # an inbox answers what was set, whatever it is
            if not code.isdigit():
                raise error_at(
                    [*where, "responses"], f"{code}: name every status that can occur by its number"
                )
            raw = self.resolve(node)
            media, headers = {}, {}
            for name, content in raw.get("content", {}).items():
                media[name] = content.get("schema", {})
            for name, header in raw.get("headers", {}).items():
                headers[name] = self.resolve(header)
            found[int(code)] = Response(int(code), media, headers, tuple(raw.get("x-codes", ())))
        return found

    @cached_property
    def _routes(self) -> list[tuple[re.Pattern[str], list[str], dict[str, Operation]]]:
        """Each path as a pattern, with the names of its parameters and its operations by method,
        literal ones first.
        """
        paths: dict[str, dict[str, Operation]] = {}
        for operation in self.operations.values():
            paths.setdefault(operation.path, {})[operation.method] = operation
        found = []
        for path in sorted(paths, key=lambda path: [part[:1] == "{" for part in path.split("/")]):
            pattern = re.compile(_PARAMETER.sub("([^/]+)", path))
            found.append((pattern, _PARAMETER.findall(path), paths[path]))
        return found

    def routed(self, path: str) -> tuple[dict[str, Operation], dict[str, str]]:
        """The operations of a path by method, and the values of its parameters; of an unknown path
        there are none.

        A literal segment wins over a parameter.
        """
        for pattern, names, operations in self._routes:
            found = pattern.fullmatch(path)
            if found is not None:
                return operations, dict(zip(names, found.groups(), strict=True))
        return {}, {}

    @cached_property
    def identity(self) -> dict[str, str]:
        """Which contract this is: its version, and the digest of the whole document."""
        return {
            "version": str(self.raw["info"]["version"]),
            "digest": sha256(orjson.dumps(self.raw, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        }

    def schema(self, name: str) -> Json:
        """A schema of the components. Raises ContractError where there is none."""
        try:
            return self.raw["components"]["schemas"][name]
        except KeyError:
            raise error_at(["components", "schemas"], f"there is no {name}") from None

    @cached_property
    def lifecycles(self) -> dict[str, Lifecycle]:
        """The lifecycle of each resource that has one, by schema name."""
        found = {}
        for name, schema in self.raw["components"]["schemas"].items():
            if schema.get("x-lifecycle"):
                found[name] = lifecycle_of(name, schema["x-lifecycle"])
        return found

    @cached_property
    def unique(self) -> dict[str, tuple[UniqueKey, ...]]:
        """The unique keys of each resource (`x-unique`), by schema name."""
        found = {}
        for name, schema in self.raw["components"]["schemas"].items():
            if "x-unique" in schema:
                found[name] = tuple(map(_unique_key, schema["x-unique"]))
        return found

    @cached_property
    def changes(self) -> Changes:
        """The events of changes (`x-change`)."""
        found: Changes = {}
        for name, event in self.events.items():
            if event["change"] is not None:
                change = event["record"], event["change"]
                found[change] = (*found.get(change, ()), name)
        return found

    @cached_property
    def events(self) -> JsonObject:
        """The event catalogue by type, from the path items of `x-webhooks` (OpenAPI 3.1 calls them
        `webhooks`).

        `record` is the schema's name of the record in the payload, None for a payload without a
        record.
        """
        found = {}
        for name, item in self.raw.get("x-webhooks", {}).items():
            post = item["post"]
            media = post["requestBody"]["content"][JSON]
            members = self.schema_at(media["schema"], ["data"]).get("properties", {})
            record = str(members.get(post["x-payload-key"], {}).get("$ref", ""))
            found[name] = {
                "summary": post["summary"],
                "description": post["description"],
                "payload_key": post["x-payload-key"],
                "change": post.get("x-change", {}).get("name"),
                "emitted_by": post.get("x-emitted-by", []),
                "schema": media["schema"],
                "example": media["example"],
                "record": record.rpartition("/")[2] or None,
            }
        return found

    @cached_property
    def scopes(self) -> list[Json]:
        """The closed table of scopes (`x-scopes`)."""
        return list(self.raw.get("x-scopes", ()))

    def defaults(self, name: str) -> JsonObject:
        """The initial value of each member of a resource: default, null, {} or [], in contract
        order.

        A required member without any of these is null until a rule sets it; an optional one is
        absent.
        """
        result: JsonObject = {}
        root = self.schema(name)
        for member, node in root.get("properties", {}).items():
            schema = self.resolve(node)
            if "default" in schema:
                result[member] = schema["default"]
            elif schema.get("nullable"):
                result[member] = None
            elif schema.get("type") == "object":
                result[member] = {}
            elif schema.get("type") == "array":
                result[member] = []
            elif member in root.get("required", ()):
                result[member] = None
        return result


def _inside(schema: Json, step: str | int) -> Json:
    """The schema of a member or of the items of a value; None where it has none."""
    if isinstance(step, int):
        return schema.get("items")
    return schema.get("properties", {}).get(step, schema.get("additionalProperties"))


def _unique_key(raw: Json) -> UniqueKey:
    scope = None if raw["scope"] == "merchant" else raw["scope"]
    return UniqueKey(tuple(raw["members"]), scope, tuple(raw.get("ignores", ())), raw.get("code"))
