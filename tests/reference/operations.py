"""The operations of the API and of the controls, with what they take."""

from collections.abc import Iterator

from stub_server.contract.document import Document, Operation
from stub_server.server.request import CONTROL as BELOW

from .contract import API, CONTROL
from .writing import code, codes, page, table


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
                (
                    (
                        code(o.id),
                        code(f"{o.method} {o.path}"),
                        o.raw["summary"],
                        codes(sorted(o.scopes)),
                    )
                    for o in found
                ),
            )
            for tag, found in _by_tag(API)
        ),
    )


def controls() -> str:
    """The index of the controls."""
    return page(
        "Controls",
        f"""Operations below `{BELOW}` that do what a payer, a bank or time would do. For the sandbox NAME, call them
        below `/s/NAME{BELOW}`. On loopback they need no key. Elsewhere send `X-Sandbox-Admin-Key` or
        [`X-Sandbox-Control-Key`](../teams.md), or the answer is 403 `admin_key_required`. The page of each in a running
        server, such as `/docs/payOrder`, has its parameters, body, answers and examples.""",
        *(
            f"## {tag}\n\n"
            + table(
                ("Control", "Request", "What"),
                (
                    (code(o.id), code(f"{o.method} {BELOW}{o.path}".rstrip("/")), o.raw["summary"])
                    for o in found
                ),
            )
            for tag, found in _by_tag(CONTROL)
        ),
    )


def _by_tag(document: Document) -> Iterator[tuple[str, list[Operation]]]:
    for tag in document.raw["tags"]:
        yield tag["name"], [o for o in document.operations.values() if o.tag == tag["name"]]
