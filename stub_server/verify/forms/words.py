"""Texts that the forms of a report share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..findings import Divergence, Report, Said

_SHOWN = 3  # paths of one list that are shown
MARKS = {"ok": "✓", "diverges": "✗", "unreached": "\N{EN DASH}", "none": ""}
LEGEND = f"{MARKS['ok']} as the contract says, {MARKS['diverges']} diverges, {MARKS['unreached']} out of reach"
_EXITS = {
    0: "The backend conforms",
    1: "The backend diverges",
    2: "The run failed",
    3: "The run reached less than --coverage asks for",
}
_DEFECTS = frozenset(("transport", "server-error"))
_MOST_NAMES = 5


def advice(divergence: Divergence) -> str:
    """What to do about a divergence."""
    report = "Report it to the owners of the backend"
    if divergence.kind in _DEFECTS:
        return f"{report}: no contract allows this."
    if divergence.basis == "documented":
        more = "" if divergence.overlay is None else " --write-overlay FILE writes the correction as a comment."
        return f"{report}: the source document shows what the contract says.{more}"
    if divergence.overlay is not None:
        return "Correct the sandbox: --write-overlay FILE writes an overlay for this."
    return "The contract assumes this, and no overlay can change it: write your code for what the backend does."


def operations_of(divergence: Divergence) -> str:
    """The operations of a divergence and how often it was found: `createOrder, getOrder; 4 probes`."""
    return f"{_listed(divergence.operations) or 'no operation'}; {_counted(divergence.count, 'probe')}"


def request_of(divergence: Divergence) -> str:
    """The request as a command, of several lines if its body has several; without one if no shell can send it."""
    request = divergence.request
    return request.curl or f"{request.method} {request.path}"


def said(answer: Said) -> str:
    """An answer in one line."""
    return " ".join(f"{answer.status or 'no answer'} {answer.excerpt}".split())


def summary(report: Report) -> str:
    """The result of a run, in a sentence or two."""
    hidden = f", and {report.hidden} hidden by the baseline" if report.hidden else ""
    found = f"{_EXITS[report.exit]}: {_counted(len(report.divergences), 'divergence')}{hidden}."
    requests = _counted(report.requests, "request")
    if report.mode in ("har", "proxy"):
        return f"{found} {requests} saw {report.coverage:.1f} % of the documented statuses."
    return (
        f"{found} {requests} in {report.seconds:.1f} s reached {report.coverage:.1f} % of what the mode "
        f"{report.mode!r} can reach (seed {report.seed})."
    )


def unreached(report: Report) -> dict[str, str]:
    """What was not reached, by reason: `createOrder 201 409, getOrder 200`."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in report.unreached:
        found[each.reason][each.operation].append(str(each.status))
    return {
        reason: ", ".join(" ".join((operation, *statuses)) for operation, statuses in operations.items())
        for reason, operations in found.items()
    }


def left_behind(report: Report) -> list[str]:
    """The paths of records that were left behind: the newest of each list, and how many more the JSON report has."""
    lists: defaultdict[str, list[str]] = defaultdict(list)
    for path in report.left_behind:
        lists[path.rpartition("/")[0]].append(path)
    shown = []
    for at, paths in lists.items():
        shown += paths[-_SHOWN:]
        if len(paths) > _SHOWN:
            shown.append(f"{at}/…: {len(paths) - _SHOWN:,} more; the JSON report has all")
    return shown


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s'[: number != 1]}"
