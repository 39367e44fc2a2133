"""What the forms of a report say in the same words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..findings import Divergence, Report, Said

_SHOWN = 3  # paths of one list that stay behind
MARKS = {"ok": "✓", "diverges": "✗", "unreached": "\N{EN DASH}", "none": ""}
LEGEND = f"{MARKS['ok']} as the contract says, {MARKS['diverges']} diverges, {MARKS['unreached']} out of reach"
_EXITS = {
    0: "The target conforms",
    1: "The target diverges",
    2: "The run could not be made",
    3: "The run reached less than was asked for",
}
_DEFECTS = frozenset(("transport", "server-error"))
_MOST_NAMES = 5


def advice(divergence: Divergence) -> str:
    """What to do about a divergence."""
    report = "Report it to the owners of the target"
    if divergence.kind in _DEFECTS:
        return f"{report}: no contract allows this."
    if divergence.basis == "documented":
        more = (
            ""
            if divergence.overlay is None
            else ". With --write-overlay, a comment has the correction that follows the target"
        )
        return f"{report}: the source document shows the contract's side{more}."
    if divergence.overlay is not None:
        return "Correct the sandbox: --write-overlay FILE writes an overlay for this."
    return "The contract assumes this, and no overlay can change it: have your code expect what the target does."


def operations_of(divergence: Divergence) -> str:
    """The operations of a divergence and how often it was found, such as `createOrder, getOrder; 4 probes`."""
    return f"{_listed(divergence.operations) or 'no operation'}; {_counted(divergence.count, 'probe')}"


def request_of(divergence: Divergence) -> str:
    """The request as a command, of several lines where its body has them. One that no shell takes has none."""
    request = divergence.request
    return request.curl or f"{request.method} {request.path}"


def said(answer: Said) -> str:
    """An answer in one line."""
    return " ".join(f"{answer.status or 'no answer'} {answer.excerpt}".split())


def summary(report: Report) -> str:
    """What came of a run, in a sentence or two."""
    hidden = f", and {report.hidden} that the baseline knows" if report.hidden else ""
    found = f"{_EXITS[report.exit]}: {_counted(len(report.divergences), 'divergence')}{hidden}."
    requests = _counted(report.requests, "request")
    if report.mode in ("har", "proxy"):
        return f"{found} {requests} saw {report.coverage:.1f} % of the documented statuses."
    return (
        f"{found} {requests} in {report.seconds:.1f} s reached {report.coverage:.1f} % of what the mode "
        f"{report.mode!r} can reach (seed {report.seed})."
    )


def unreached(report: Report) -> dict[str, str]:
    """What was not reached, such as `createOrder 201 409, getOrder 200`: by reason."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in report.unreached:
        found[each.reason][each.operation].append(str(each.status))
    return {
        reason: ", ".join(" ".join((operation, *statuses)) for operation, statuses in operations.items())
        for reason, operations in found.items()
    }


def left_behind(report: Report) -> list[str]:
    """The paths that stay in the target. Of many in one list the newest are shown; the JSON report has all."""
    lists: defaultdict[str, list[str]] = defaultdict(list)
    for path in report.left_behind:
        lists[path.rpartition("/")[0]].append(path)
    shown = []
    for at, paths in lists.items():
        shown += paths[-_SHOWN:]
        if len(paths) > _SHOWN:
            shown.append(f"{at}/…: {len(paths) - _SHOWN:,} more, all of them in the JSON report")
    return shown


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s'[: number != 1]}"
