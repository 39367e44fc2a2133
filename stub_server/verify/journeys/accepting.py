"""What an operation accepts and refuses: its parameters and its body, one limit at a time."""

from __future__ import annotations

from ...contract.document import Operation
from ..building import Builder
from ..places import body_of, pointer_of
from ..probe import Probe, Steps
from ..resources import Resource
from ..roles import placeholder, roles_in
from .parts import NOWHERE_ID, SAYS_NO, SAYS_YES, replaced


def accepts(builder: Builder, operation: Operation) -> Steps:
    """What an operation accepts and refuses: its parameters and its body, one limit at a time."""
    resource = builder.resource_of(operation)
    if not builder.may_make(operation):
        return
    yield from ready(builder, operation)
    body = builder.body(operation)
    path = builder.path(operation)
    where = pointer_of(operation)
    if body is None and operation.method in ("GET",):
        yield Probe(operation, operation.method, path, SAYS_YES, "ask", where)
    yield from _parameters(builder, operation, path)
    if body is None:
        return
    schema = operation.body or {}
    pointer = body_of(operation)
    changes = resource is not None and operation not in resource.creates
    is_first = True  # of the records that are changed: a second one may not have what it has
    for variant in builder.variants.of_body(schema, pointer, body, builder.fresh):
        value = variant.value if changes and is_first else builder.fresh.renewed(variant.value, variant.places)
        value = builder.harmless(operation, value)
        group = SAYS_YES if variant.is_accepted else SAYS_NO
        makes = "" if resource is None or changes else f"{resource.role} more"
        seen = yield Probe(
            operation,
            operation.method,
            path,
            group,
            variant.tries,
            variant.pointer,
            body=value,
            makes=makes,
            keeps=False,
        )
        if changes and not seen.is_alike:
            is_first = False
            yield from ready(builder, operation)
        elif resource is not None and makes and resource.delete is not None and 200 <= seen.twin.status < 300:
            yield away(builder, resource, makes)
    for role in sorted(set(roles_in(body))):
        learns = f"{role} that does not exist"
        other = replaced(body, placeholder(role), NOWHERE_ID)
        yield Probe(operation, operation.method, path, SAYS_NO, learns, pointer, body=other, keeps=False)
    for media, sent, tries in (
        ("text/plain", b"verify", "a body that is no JSON"),
        ("application/json", b'{"name": ', "JSON that breaks off"),
        ("application/json", b"[]", "a list for an object"),
    ):
        content = f"{where}/requestBody/content"
        yield Probe(operation, operation.method, path, SAYS_NO, tries, content, body=sent, media=media, keeps=False)


def away(builder: Builder, resource: Resource, role: str) -> Probe:
    """Deletes a record that is needed no more: some kinds are limited in number."""
    delete = resource.delete
    assert delete is not None
    path = builder.path(delete, **{resource.key: placeholder(role)})
    return Probe(delete, delete.method, path, "setup", f"delete {role}", pointer_of(delete), keeps=False)


def ready(builder: Builder, operation: Operation) -> Steps:
    """Make what an operation needs."""
    yield from builder.setup(builder.needs(operation, builder.body(operation)))
    yield from _log(builder, operation)


def _log(builder: Builder, operation: Operation) -> Steps:
    """A delivery, where an operation names one: a test of the webhook makes it."""
    if "{logId}" not in operation.path:
        return
    test = builder.catalogue.document.operations.get("sendTestWebhook")
    if test is None or not builder.may(test):
        return
    yield from builder.setup(builder.needs(test, builder.body(test)))
    yield Probe(
        test, test.method, builder.path(test), "setup", "send a test", pointer_of(test), body={}, makes="the log"
    )


def _parameters(builder: Builder, operation: Operation, path: str) -> Steps:
    for number, parameter in enumerate(operation.parameters):
        where = pointer_of(operation, "parameters", number, "schema")
        if parameter.place != "query":
            continue
        for variant in builder.variants.of_parameter(parameter.schema, where, parameter.name, builder.fresh):
            value = str(variant.value).lower() if isinstance(variant.value, bool) else str(variant.value)
            group = SAYS_YES if variant.is_accepted else SAYS_NO
            query, method = {parameter.name: value}, operation.method
            keeps = method != "GET"
            yield Probe(operation, method, path, group, variant.tries, variant.pointer, query=query, keeps=keeps)
