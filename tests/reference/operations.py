"""The operations of the API and of the controls, with what they take."""

from collections.abc import Iterator
from typing import Any

from stub_server.console.fields import Row, row, rows
from stub_server.contract.document import Document, Operation
from stub_server.server.request import CONTROL as BELOW

from .contract import API, CONTROL
from .writing import code, codes, line, page, table

_KEY = "X-Sandbox-Admin-Key"  # of every control, so said once
_USUAL = {
    "admin_key_required", "malformed_json", "payload_too_large", "unsupported_media_type", "validation_error",
}  # fmt: skip
_MANY = 8  # values that are listed


def api() -> str:
    """The page of the operations of the API, in short."""
    return page(
        "Operations",
        """All operations of the API by their ids. The page of each in a running server, such as `/docs/createPixOrder`,
        has its parameters, fields, answers and examples, and a form that tries it. `/openapi.json` is the contract.""",
        *(
            f"## {tag}\n\n"
            + table(
                ("Operation", "Request", "What", "Scope"),
                ((code(o.id), code(f"{o.method} {o.path}"), o.raw["summary"], codes(sorted(o.scopes))) for o in found),
            )
            for tag, found in _by_tag(API)
        ),
    )


def controls() -> str:
    """The page of the controls."""
    return page(
        "Controls",
        f"""Operations below `{BELOW}` that do what a payer, a bank or time would do. For the sandbox NAME, call them
        below `/s/NAME{BELOW}`. On loopback they need no key. Elsewhere send `{_KEY}` or
        [`X-Sandbox-Control-Key`](../teams.md), or the answer is 403
        [`admin_key_required`](errors.md#admin_key_required). A body is JSON; one that cannot be read or does not fit is
        refused as by the API. The page of each in a running server, such as `/docs/payOrder`, also has its answers and
        examples.""",
        *(f"## {tag}\n\n" + "\n\n".join(map(_control, found)) for tag, found in _by_tag(CONTROL)),
    )


def _by_tag(document: Document) -> Iterator[tuple[str, list[Operation]]]:
    for tag in document.raw["tags"]:
        yield tag["name"], [o for o in document.operations.values() if o.tag == tag["name"]]


def _control(operation: Operation) -> str:
    path = (BELOW + operation.path).rstrip("/")
    heading = f"### {code(operation.id)}\n\n**{operation.raw['summary']}:** {code(f'{operation.method} {path}')}"
    return "\n\n".join((heading, *filter(None, _parts(operation))))


def _parts(operation: Operation) -> Iterator[str]:
    yield line(operation.raw.get("description", ""))
    raws = [raw for raw in map(CONTROL.resolve, operation.raw.get("parameters", ())) if raw["name"] != _KEY]
    parameters = [
        (raw["in"], row(CONTROL, raw["name"], raw["schema"], required=bool(raw.get("required")), texts=raw))
        for raw in raws
    ]
    yield table(
        ("Parameter", "In", "Type", "What"),
        ((_name(each), place, _type(each), _what(each)) for place, each in parameters),
    )
    if operation.body is not None:
        members = [each for each in rows(CONTROL, operation.body) if each.above.count(".") < 2]
        yield table(
            ("Member of the body", "Type", "What"), ((_name(each), _type(each), _what(each)) for each in members)
        )
    known = {*API.schema("ErrorCode")["enum"]} - _USUAL
    names = dict.fromkeys(name for answer in operation.responses.values() for name in answer.codes if name in known)
    refusals = ", ".join(f"[`{name}`](errors.md#{name})" for name in names)
    yield f"Errors: {refusals}." if names else ""


def _name(each: Row) -> str:
    return code(each.above + each.name) + (" (required)" if each.required and not each.above else "")


def _type(each: Row) -> str:
    return codes(each.allowed) if 0 < len(each.allowed) <= _MANY else "; ".join((each.type, *each.limits))


def _what(each: Row) -> str:
    default = f" Default: {code(each.default)}." if each.default is not None else ""
    return line(each.description) + default


def documented(name: str) -> list[tuple[Operation, int]]:
    """The operations that document an error code, with the status."""
    every: list[Any] = [*API.operations.values(), *CONTROL.operations.values()]
    return [(o, status) for o in every for status, answer in o.responses.items() if name in answer.codes]
