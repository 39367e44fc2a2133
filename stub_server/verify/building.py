"""Builds the requests of a journey: the records that they need first, their paths and their bodies."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ..contract.document import Operation
from ..contract.source import Json
from .places import pointer_of
from .probe import Probe, placeholder, roles_in
from .resources import Catalogue, Resource, role_of
from .variants import NOWHERE, Fresh, Variants

SETUP = "setup"
"""The group of probes that make what others need. They have no column in the report."""
UNKNOWN_ID = "{the unknown id}"


class Builder:
    """One per journey."""

    def __init__(
        self, catalogue: Catalogue, variants: Variants, fresh: Fresh, *, charges: bool, closed: Container[str] = ()
    ) -> None:
        """Without `charges`, nothing is sent that may cost money; `closed` are the operationIds out of reach."""
        self.catalogue, self.variants, self.fresh = catalogue, variants, fresh
        self._charges, self._closed = charges, closed

    def may(self, operation: Operation) -> bool:
        """Whether the options and the credential allow an operation to succeed."""
        return (self._charges or not costs(operation)) and operation.id not in self._closed

    def may_prepare(self, operation: Operation) -> bool:
        """Whether they allow it, and the creation of the records that it needs."""
        return self.may(operation) and all(self.may(resource.creates[0]) for resource in self.needs(operation))

    def resource_of(self, operation: Operation) -> Resource | None:
        """The kind of record that an operation makes, or whose id is in its path."""
        for resource in self.catalogue.resources.values():
            if operation in resource.creates or f"{{{resource.key}}}" in operation.path:
                return resource
        return None

    def path(self, operation: Operation, **others: str) -> str:
        """The path with roles for ids; `others` are values of path parameters, percent-encoded."""
        path = operation.path
        for parameter in operation.parameters:
            if parameter.place == "path":
                value = others.get(parameter.name, placeholder(role_of(parameter.name)))
                path = path.replace(f"{{{parameter.name}}}", value)
        return path

    def needs(self, operation: Operation) -> list[Resource]:
        """The kinds of records that a request names, each after those that it needs itself."""
        named = [p.name for p in operation.parameters if p.place == "path"]
        roles = [role_of(name) for name in named] + list(roles_in(self.body(operation)))
        roles += [resource.role for name in named for resource in self._with_member(name)]
        found: list[Resource] = []
        for resource in self.catalogue.resources.values():
            if resource.role in roles:
                for needed in (*self.needs(resource.creates[0]), resource):
                    if needed not in found:
                        found.append(needed)
        return found

    def _with_member(self, parameter: str) -> Iterator[Resource]:
        """The kinds of records with a member that is the value of a path parameter, such as `publicKey`."""
        member = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in parameter)
        for resource in self.catalogue.resources.values():
            if not parameter.endswith("Id") and member in self.catalogue.document.schema(resource.schema)["properties"]:
                yield resource

    def harmless(self, operation: Operation, body: Any) -> Any:
        """The body with a webhook that reaches nobody and, if it is active, hears only the run's own project."""
        schema = self.catalogue.body(operation) or {}
        if not isinstance(body, dict) or not {"is_active", "url", "projectId"} <= schema.get("properties", {}).keys():
            return body
        url = body.get("url")
        if isinstance(url, str) and "://" in url and not url.startswith(NOWHERE):
            body = {**body, "url": self.fresh.value("url")}
        if body.get("projectId", "") is None:
            return {**body, "is_active": False} if body.get("is_active") is not False else body
        if operation.method == "POST" or body.get("is_active") is True:
            return {"projectId": "{the project}", **body}
        return body

    def body(self, operation: Operation) -> Any:
        """The first example of the contract for an operation, with roles and new values; None without a body."""
        schema = self.catalogue.body(operation)
        if schema is None:
            return None
        shown: Any = next(iter(self.catalogue.examples(operation)), {})
        return self.fresh.renewed(self._with_roles(schema, shown))

    def plain(self, operation: Operation) -> Any:
        """A small body whose record others can refer to: active, and with all values of its lists of options."""
        schema = self.catalogue.body(operation) or {}
        body = self.body(operation)
        properties = {name: self.catalogue.document.resolve(s) for name, s in schema.get("properties", {}).items()}
        small = {name: value for name, value in body.items() if name in schema.get("required", ())}
        for name, node in properties.items():
            items = self.catalogue.document.resolve(node.get("items", {}))
            if name in self.catalogue.resources:
                small[name] = placeholder(role_of(name))
            elif node.get("type") == "array" and "enum" in items and name not in small:
                small[name] = items["enum"]
            elif "active" in node.get("enum", ()):
                small[name] = "active"
            elif name == "is_active":
                small[name] = False
        return small

    def probe(self, operation: Operation, group: str, learns: str, pointer: str = "", **more: Any) -> Probe:
        """A request to an operation, with roles in its path. Without a pointer, it is about the whole operation."""
        more.setdefault("path", self.path(operation))
        return Probe(
            operation, operation.method, group=group, learns=learns, pointer=pointer or pointer_of(operation), **more
        )

    def make(self, resource: Resource, **changes: Any) -> Probe:
        """The creation of a record that plays the resource's role."""
        operation = resource.creates[0]
        body = {**self.plain(operation), **changes}
        return self.probe(operation, SETUP, f"make {resource.role}", body=body, makes=resource.role)

    def delete(self, resource: Resource, role: str) -> Iterator[Probe]:
        """Delete a record that is no longer needed, if that is possible: some kinds are limited in number."""
        if resource.delete is not None:
            path = self.path(resource.delete, **{resource.key: placeholder(role)})
            yield self.probe(resource.delete, SETUP, f"delete {role}", path=path, keeps=False)

    def prepare(self, operation: Operation) -> Iterator[Probe]:
        """Make the records that an operation needs."""
        for resource in self.needs(operation):
            yield self.make(resource)
        test = self.catalogue.document.operations.get("sendTestWebhook")
        if "{logId}" in operation.path and test is not None and self.may(test):
            yield from self.prepare(test)
            yield self.probe(test, SETUP, "send a test", body={}, makes="the log")

    def _with_roles(self, schema: Json, value: Any) -> Any:
        """A body with roles in place of ids; a webhook is inactive and hears the run's own project."""
        if isinstance(value, Mapping):
            made = {name: self._role(name, inner) for name, inner in value.items()}
            properties = schema.get("properties", {})
            if "is_active" in properties and "url" in properties:
                made["is_active"] = False
                made["projectId"] = "{the project}"
            return made
        return value

    def _role(self, name: str, value: Any) -> Any:
        resources = self.catalogue.resources
        if name in resources:
            return placeholder(role_of(name))
        if name.removesuffix("s") in resources and isinstance(value, list):
            return [placeholder(role_of(name.removesuffix("s")))]
        if isinstance(value, Mapping):
            return {inner: self._role(inner, other) for inner, other in value.items()}
        return value


def costs(operation: Operation) -> bool:
    """Whether an operation may cost money or reach somebody: orders, and deliveries of webhooks."""
    return operation.method == "POST" and (
        operation.tag == "Orders" or bool({"test", "retry"} & set(operation.path.split("/")))
    )


def encoded(value: str) -> str:
    """A value as a path contains it."""
    return quote(value, safe="")


def query_text(value: Any) -> str:
    """A value as a query contains it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
