"""Builds the requests of a chain of journeys from the contract's schemas and examples."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from ...contract.document import Operation
from ...core.record import Body
from .catalogue import Resource, Steps, path_names, pointer_of, role_of
from .learned import Run
from .probes import Probe, costs, placeholder, roles_in
from .variants import CNPJ, Variants, uneven


class Builder:
    """One for each chain of journeys."""

    def __init__(self, run: Run, variants: Variants) -> None:
        self.run = run
        self.variants = variants
        self.catalogue = run.catalogue
        self.document = run.document
        self._of_parts: dict[Steps, str] = {}

    # -- what the contract says of operations

    def may(self, operation: Operation | None) -> TypeGuard[Operation]:
        """Whether there is an operation, and options and credential allow it to succeed."""
        options = self.run.options
        if operation is None or operation.id in self.run.closed:
            return False
        return options.sends(operation) and (options.charges or not costs(operation))

    def resource_of(self, operation: Operation) -> Resource | None:
        """The kind of record that an operation makes, or whose id is in its path."""
        for resource in self.catalogue.resources.values():
            if operation in resource.creates or f"{{{resource.key}}}" in operation.path:
                return resource
        return None

    def changed_by(self, operation: Operation) -> Resource | None:
        """The kind of record that an operation updates."""
        resource = self.resource_of(operation)
        return resource if resource is not None and operation == resource.update else None

    def about(self, resource: Resource) -> list[Operation]:
        """The operations on a record, and on what is below it, such as its statistics."""
        operations = self.document.operations.values()
        return [
            each for each in operations if path_names(each) == [resource.key] and self.may(each)
        ]

    def reads_about(self, resource: Resource) -> list[Operation]:
        """Those of them that read."""
        return [each for each in self.about(resource) if each.method == "GET"]

    def assignable(self) -> list[str]:
        """The scopes that an API key may have."""
        return [scope["name"] for scope in self.document.scopes if scope["assignable"]]

    def kind_of(self, role: str) -> Resource | None:
        """The kind of record that plays a role, such as `the plan more`."""
        for kind in self.catalogue.resources.values():
            if f"{role} ".startswith(f"{kind.role} "):
                return kind
        return None

    def named_by(self, member: str) -> str:
        """The role whose id a member has, such as `projectId`, or whose ids, such as `planIds` and
        `allowed_projects`; empty for other members.
        """
        stem = member.rpartition("_")[2].removesuffix("s").removesuffix("Id")
        kind = self.catalogue.resources.get(f"{stem}Id")
        return kind.role if kind is not None and member.endswith(("Id", "s")) else ""

    def needs(self, operation: Operation) -> list[Resource]:
        """The kinds of records that a request names, each after those that it needs itself."""
        found: list[Resource] = []
        for kind in map(self.kind_of, roles_in([self.path(operation), self.body(operation)])):
            if kind is not None:
                found += [*self.needs(kind.create), kind]
        return [*dict.fromkeys(found)]

    def properties(self, operation: Operation) -> Any:
        """The schemas of the members of a body, by their names."""
        return self.document.resolve(operation.body or {}).get("properties", {})

    def options(self, operation: Operation | None, name: str) -> list[Any]:
        """The values that the contract lists for a member of a body, or for its entries; none
        without an operation.
        """
        members = self.properties(operation) if operation else {}
        node = self.document.resolve(members.get(name, {}))
        return self.variants.options(self.document.resolve(node.get("items", node)))

    # -- bodies

    def body(self, operation: Operation) -> Any:
        """The first example of the contract for an operation, with roles and new values; None
        without a body.
        """
        return None if operation.body is None else self.examples(operation)[0]

    def examples(self, operation: Operation) -> list[Any]:
        """The examples of the contract, with roles and new values."""
        shown = self.document.examples(operation.raw.get("requestBody")) or [{}]
        learned = self.known(operation, self.run.learned[operation.id])
        own = [self._own(each) | learned for each in shown]
        for each in own:
            if len(each.get("document", "")) == CNPJ:  # an update does not say its type
                each |= {"type": "company", "document_type": "cnpj"}
        return own

    def smallest(self, operation: Operation) -> Body:
        """The members of a new body that the contract requires, or the backend demands."""
        body = self.body(operation) or {}
        schema = self.document.resolve(operation.body or {})
        names = {*schema.get("required", ()), *self.run.learned[operation.id]}
        return {name: body[name] for name in body if name in names}

    def plain(self, operation: Operation) -> Any:
        """A small body whose record others can refer to: it is active, but for what is sent."""
        small = self.smallest(operation)
        for name in self.properties(operation):
            if "active" in self.options(operation, name):
                small[name] = "active"
            elif name == "is_active":
                small[name] = False
        return small

    def known(self, operation: Operation, body: Body) -> Body:
        """The members of a body that an operation takes too."""
        names = self.properties(operation)
        return {name: value for name, value in body.items() if name in names}

    def _own(self, value: Any, place: Steps = ()) -> Any:
        """A value of an example with roles in place of ids, and new values.

        A part of a body, such as the customer of an order, is always the same: it need not be
        created often.
        """
        name = place[-1] if place else ""
        role = self.named_by(name)
        is_list = isinstance(value, list)
        if role and is_list is name.endswith("s"):
            return [placeholder(role)] if is_list else placeholder(role)
        if isinstance(value, Mapping):
            return {inner: self._own(other, (*place, inner)) for inner, other in value.items()}
        if is_list:
            return [self._own(inner, (*place, "")) for inner in value]
        if isinstance(value, float):
            return uneven(value)
        own = self.variants.value(name, value) if isinstance(value, str) else None
        if own is not None and len(place) > 1:
            own = self._of_parts.setdefault(place, own)
        return value if own is None else own

    def _harmless(self, operation: Operation, body: Any) -> Any:
        """The body with a webhook that, if it is active, hears only the run's own project."""
        is_webhook = {"is_active", "url", "projectId"} <= self.properties(operation).keys()
        if not is_webhook or not isinstance(body, dict):
            return body
        if body.get("projectId", "") is None:
            return body | {"is_active": False}
        if operation.method == "POST" or body.get("is_active") is True:
            return {"projectId": "{the project}"} | body
        return body

    # -- requests

    def path(self, operation: Operation, **others: str) -> str:
        """The path with roles for ids; `others` are values of path parameters, percent-encoded."""
        names = path_names(operation)
        return operation.at_ids({name: placeholder(role_of(name)) for name in names} | others)

    def probe(
        self,
        operation: Operation,
        group: str,
        learns: str,
        pointer: str = "",
        *,
        path: str = "",
        about: Operation | None = None,
        body: Any = None,
        **more: Any,
    ) -> Probe:
        """A request to an operation, with roles in its path.

        Without a pointer, it is about the whole operation.
        """
        return Probe(
            operation,
            group,
            learns,
            pointer or pointer_of(operation),
            about or operation,
            path or self.path(operation),
            body=self._harmless(operation, body),
            **more,
        )
