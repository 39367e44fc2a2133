"""The records of a sandbox: the kinds with their counts, lists, and one record with its
history and actions.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple
from urllib.parse import quote

from flask import abort, g, render_template, request

from ..contract.document import Document, Operation
from ..contract.lifecycles import Lifecycle
from ..contract.source import JsonObject
from ..server.request import CONTROL
from .actions import journaled, pay_page
from .api_pages import try_page
from .filters import Change, changes, pretty, words
from .forms import Field, listed
from .room import fits
from .site import contracts, pages

_LISTED, _VERSIONS = 25, 10
_FIRST = ("search", "status", "name", "email", "code")
"""The filters that are in sight."""


class Resource(NamedTuple):
    """A kind of records: its schema, the operation that lists it, the parameter of its ids, the
    columns of a list.
    """

    schema: str
    listing: str
    parameter: str
    columns: tuple[str, ...]


def _kind(schema: str, columns: str) -> Resource:
    """One whose operation and ids are named after its schema."""
    return Resource(
        schema, f"list{schema}s", f"{schema[0].lower()}{schema[1:]}Id", tuple(columns.split())
    )


RESOURCES = {
    "orders": _kind("Order", "code status customer.name totalAmount paymentMethod createdAt"),
    "subscriptions": _kind(
        "Subscription", "code status customer.name plan.name amount next_billing_at"
    ),
    "customers": _kind("Customer", "name email document type createdAt"),
    "plans": _kind("Plan", "name status amount interval subscribers_count createdAt"),
    "products": _kind("Product", "name status type sku createdAt"),
    "projects": _kind(
        "Project", "name status orders_count total_revenue active_subscribers createdAt"
    ),
    "webhooks": _kind(
        "Webhook", "name is_active url last_delivery_status consecutive_failures createdAt"
    ),
    "webhook_logs": Resource(
        "WebhookLogEntry",
        "listWebhookLogs",
        "logId",
        ("event_type", "status", "url", "attempt_count", "response_status", "next_attempt_at"),
    ),
    "api_keys": _kind("ApiKey", "name is_active public_key usage_count last_used_at created_at"),
}
"""In the order in which they are shown."""
_NAMED = ("name", "code", "event_type", "url", "public_key")
"""Members by which a record is called."""
_REFERENCES = {each.parameter: name for name, each in RESOURCES.items()} | {"lastOrderId": "orders"}
_CERTIFIES = "Sandbox certificates"
_ONLY_IF = {"resumeSubscription": "cancel_at_period_end"}
"""Operations that no move of the contract allows, and the member that must be true."""
_PLAIN = ("string", "number", "integer", "boolean")


class Action(NamedTuple):
    """What a click does with a record, by the members of `body`; without these also what a form of
    `fields` does.
    """

    operation: Operation
    label: str
    body: dict[str, str]
    fields: list[Field]


# -- pages


@pages.get("/data")
def data() -> str:
    """The kinds of records, with their counts."""
    found = []
    for name, resource in kinds().items():
        rows, pagination = listed_in(g.client.get(listing_of(resource).path, {"limit": 1}))
        found.append(
            {"name": name, "total": pagination["total"], "newest": rows[0] if rows else None}
        )
    return render_template("console/data.html", resources=found)


@pages.get("/data/<name>")
def records(name: str) -> str:
    """A list with the filters of the contract."""
    resource = _resource(name)
    listing = listing_of(resource)
    found = listed(listing.path, listing.id, _LISTED, first=_FIRST, records=[])
    rows, pagination = listed_in(found)
    shown = found | {"rows": rows, "pagination": pagination}
    return render_template(
        "console/records.html", name=name, resource=resource, listing=listing, **shown
    )


@pages.get("/data/<name>/<ident>/edit")
def edit_record(name: str, ident: str) -> str:
    """The form of the operation that changes a record, with the record as it is; of one that is
    too long for a page no member is filled in.
    """
    resource = _resource(name)
    updater = _item(resource, "PUT")
    if updater is None:
        abort(404)
    # the projects of an API key are read as one text and sent as a list
    body = _recorded(name, ident)["body"] | {"allowed_projects": None}
    known = contracts().api.resolve(updater.body or {}).get("properties", {})
    text = pretty({member: body[member] for member in known if body.get(member) is not None})
    shown = text if fits(text) else "{}"
    return try_page(updater.id, {f"path.{resource.parameter}": ident, "body": shown})


@pages.get("/data/<name>/<ident>")
def one_record(name: str, ident: str) -> str:
    """One record with its history; of a deleted one, what it was."""
    resource = _resource(name)
    past = _recorded(name, ident)
    now = {} if past["is_gone"] else _now(resource, ident, past["body"])
    shown = past | now
    body = shown["body"]
    return render_template(
        "console/record.html",
        name=name,
        ident=ident,
        parameter=resource.parameter,
        kinds=kinds(),
        references=_REFERENCES,
        title=title_of(body, ident),
        state=_state(resource, body),
        names=dict(_names(now.get("inspected") or body)),
        **shown,
    )


def _recorded(name: str, ident: str) -> JsonObject:
    """What is stored of a record: its versions, its events, its jobs, and the last that it was."""
    path = f"{CONTROL}/records/{name}/{quote(ident, safe='')}/history"
    history = g.client.get(path, {"limit": _VERSIONS, "page": request.args.get("page")})
    versions, about = history["versions"], {"resource_id": ident, "limit": 10}
    return {
        "whole": path,
        "history": history,
        "versions": list(_past(versions)),
        "is_gone": bool(versions) and versions[0]["body"] is None,
        "body": next((each["body"] for each in versions if each["body"] is not None), {}),
        "events": g.client.control("events", about)["events"],
        "timers": g.client.control("timers", about)["timers"],
    }


def _now(resource: Resource, ident: str, stored: JsonObject) -> JsonObject:
    """What a page shows of a record that there is: as it is read, and what can be done with it."""
    at, getter = quote(ident, safe=""), _item(resource, "GET")
    path = None if getter is None else _filled(getter, resource, ident)
    read = g.client.find(path) if path else None
    found: JsonObject = {"body": _record(read), "whole": path} if read else {"body": stored}
    if resource.schema == "Order":
        found["inspected"] = g.client.find(f"{CONTROL}/orders/{at}")
        found["pay_page"] = pay_page(found["inspected"])
    if resource.schema == "Customer":
        found["behaviour"] = g.client.find(f"{CONTROL}/customers/{at}/behaviour")
    actions = list(_actions(resource, found["body"], found.get("inspected")))
    is_own = path is None or read is not None
    return found | {"actions": actions, "updater": is_own and _item(resource, "PUT")}


# -- what they show


def _names(body: JsonObject) -> Iterator[tuple[str, str]]:
    """What the records that one names are called, by their ids; of those that the merchant sees."""
    for member, kind in _REFERENCES.items():
        resource, ident = RESOURCES[kind], str(body.get(member) or "")
        getter = _item(resource, "GET") if ident and kind in kinds() else None
        found = getter and g.client.find(_filled(getter, resource, ident))
        if found:
            yield ident, title_of(_record(found) or {}, ident)


def _past(versions: list[JsonObject]) -> Iterator[tuple[JsonObject, list[Change], str]]:
    """Versions with what each changed; of one that looks as the one before, what a control was
    told.
    """
    for version, before in zip_longest(versions, versions[1:]):
        found = [] if before is None else changes(before["body"], version["body"])
        is_silent = before is not None and not found and version["change"] == "updated"
        by_control = is_silent and version["cause"]["kind"] == "control"
        yield version, found, _said(version["cause"]) if by_control else ""


def _said(cause: JsonObject) -> str:
    """The body of the request to a control, in words; empty where the journal no longer
    has the request.
    """
    kept = journaled(cause["id"])
    body = kept["request"]["body"] if kept else None
    return (
        ", ".join(f"{words(name)}: {value}" for name, value in body.items())
        if isinstance(body, dict)
        else ""
    )


def title_of(body: JsonObject, ident: str) -> str:
    return str(next((body[name] for name in _NAMED if body.get(name)), ident))


def _state(resource: Resource, body: JsonObject) -> str | None:
    lifecycle = _lifecycle(resource)
    found = body.get(lifecycle.field) if lifecycle is not None else body.get("status")
    if isinstance(found, bool):
        return "active" if found else "inactive"
    return found


# -- the contract


def kinds() -> dict[str, Resource]:
    """The kinds that the served contract lists: an overlay may have taken one away."""
    known = contracts().api.operations
    return {name: resource for name, resource in RESOURCES.items() if resource.listing in known}


def _resource(name: str) -> Resource:
    if name not in kinds():
        abort(404)
    return RESOURCES[name]


def listing_of(resource: Resource) -> Operation:
    return contracts().api.operations[resource.listing]


def _lifecycle(resource: Resource) -> Lifecycle | None:
    return contracts().api.lifecycles.get(resource.schema)


def _item(resource: Resource, method: str) -> Operation | None:
    """The operation of a method on the path of one record."""
    path = f"{listing_of(resource).path}/{{{resource.parameter}}}"
    every = contracts().api.operations.values()
    return next((each for each in every if each.method == method and each.path == path), None)


def _actions(
    resource: Resource, body: JsonObject, inspected: JsonObject | None
) -> Iterator[Action]:
    """What can be done with a record as it is.

    `inspected` is what the control of orders says.
    """
    known = contracts()
    for document in (known.control, known.api):
        for operation in document.operations.values():
            if not _is_about(operation, resource):
                continue
            if not _is_allowed(resource, operation, body, inspected):
                continue
            label = _label(operation, resource)
            inputs = _inputs(document, operation)
            if not operation.body_required:
                yield Action(operation, label, {}, inputs)
            for value in (
                inputs[0].schema.get("enum", ()) if operation.body_required and inputs else ()
            ):
                yield Action(operation, f"{label}: {value}", {inputs[0].name: value}, inputs)


def _is_about(operation: Operation, resource: Resource) -> bool:
    """Whether an operation does something to one record of a kind, by its id alone, that has no
    form of its own.
    """
    places = [each.name for each in operation.parameters if each.place == "path"]
    is_update = operation.method == "PUT" or operation.id.startswith(("update", "set"))
    return (
        operation.method not in ("GET", "HEAD")
        and places == [resource.parameter]
        and not is_update
        and operation.tag != _CERTIFIES
    )


def _is_allowed(
    resource: Resource, operation: Operation, body: JsonObject, inspected: JsonObject | None
) -> bool:
    """Whether an operation is possible now, by the moves of the contract and what the control of
    orders says.
    """
    condition = _ONLY_IF.get(operation.id)
    if condition is not None and not body.get(condition):
        return False
    lifecycle = _lifecycle(resource)
    moves = (
        [] if lifecycle is None else [move for move in lifecycle.moves if operation.id in move.by]
    )
    control = _label(operation, resource).lower().replace(" ", "_")
    # others are what it brings about beside
    own = [move for move in moves if move.control == control]
    states = {move.from_ for move in own or moves}
    if states and _state(resource, body) not in states:
        return False
    return not own or inspected is None or control in inspected["allowed"]


def _inputs(document: Document, operation: Operation) -> list[Field]:
    """The fields of a form for a body: its members that are plain values."""
    members = document.resolve(operation.body or {}).get("properties", {})
    schemas = {name: document.resolve(member) for name, member in members.items()}
    return [Field(name, schema) for name, schema in schemas.items() if schema.get("type") in _PLAIN]


def _label(operation: Operation, resource: Resource) -> str:
    """`payOrder` -> `Pay`."""
    return words(operation.id.replace(resource.schema.removesuffix("LogEntry"), ""))


def _filled(operation: Operation, resource: Resource, ident: str) -> str:
    return operation.at_ids({resource.parameter: quote(ident, safe="")})


# -- bodies of the API, which has three shapes


def listed_in(body: Any) -> tuple[list[Any], JsonObject]:
    """The records of a list, and its pagination."""
    part = body["data"] if "pagination" not in body else body
    return next(value for value in part.values() if isinstance(value, list)), part["pagination"]


def _record(body: Any) -> JsonObject | None:
    """The record in an answer."""
    part = body.get("data", body)
    inner = next(
        (value for value in part.values() if isinstance(value, dict) and "id" in value), None
    )
    return part if "id" in part else inner
