"""The error codes: status, and what to do."""

from stub_server.console.leaves import Leaves

from ..support.refusals import CODES
from .contract import API, CONTROL
from .writing import code, page, table


def refusals() -> str:
    """The index of the error codes."""
    leaves = Leaves(API, CONTROL)
    rows = (
        (code(name), _statuses(leaves.statuses(name)), leaves.codes[name]["do"]) for name in CODES
    )
    return page(
        "Errors",
        """Every refusal has the same shape; branch on its `code`. [Handle errors](../api.md#handle-errors) says how,
        and `stub-server explain` why one request was refused. Each code has a page in a running server, such as
        `/docs/plan_sold_out`, with the operations that answer it and an example.""",
        table(("Code", "Status", "What to do"), rows),
        "`verification_failed` (409) is the report of `verifyRequests`, which has no `error` and no"
        " `message`: too few or too many requests match. [Was a request"
        " sent?](../journal.md#was-a-request-sent-and-how-often) says how to read it.",
    )


def _statuses(found: list[int]) -> str:
    return ", ".join(map(str, found)) or "any"
