"""The verb `replay`; exit codes 0 the same answers, 1 another answer, 2 a file that cannot be
replayed or usage.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import Unusable, read_file, show, yaml_text

if TYPE_CHECKING:
    from ..tools.replay.replaying import Outcome

_MOST_IDS = 20  # of the requests that were skipped for one reason
_MOST_DIFFS = 5  # that are shown whole


def replay(file: Path, overlays: tuple[Path, ...], scenario: Path | None, as_json: bool) -> None:
    """Send the requests of FILE (- for standard input) to a fresh sandbox, and compare every
    answer.
    """
    import asyncio

    from ..storage.package import BadFile
    from ..tools.replay.replaying import replay as replayed

    try:
        outcome = asyncio.run(replayed(read_file(file), overlays, scenario))
    except BadFile as error:
        raise Unusable("\n  ".join(error.lines)) from None
    report = _report(outcome)
    show(report, _text(report), as_json=as_json)
    sys.exit(1 if outcome.differing else 0)


def _report(outcome: "Outcome") -> dict[str, Any]:
    from ..tools.replay.recorded import name_of

    differing: dict[str, list[str]] = {}
    diffs = []
    for request, diff in outcome.differing:
        differing.setdefault(name_of(request), []).append(request.id)
        diffs.append(
            {"id": request.id, "method": request.method, "path": request.path, "diff": diff}
        )
    by_reason = {}
    for reason, idents in outcome.skipped.items():
        by_reason[reason] = {"count": len(idents), "ids": idents[:_MOST_IDS]}
    return {
        "ok": not outcome.differing,
        "requests": outcome.requests,
        "same": outcome.compared,
        "aside": sum(map(len, outcome.skipped.values())),
        "unsent": outcome.unsent,
        "aside_by_reason": by_reason,
        "differing": differing,
        "contract": outcome.contract,
        "diffs": diffs[:_MOST_DIFFS],
    }


def _text(report: dict[str, Any]) -> str:
    """The report without what is empty, and the diffs below it."""
    shown = {name: value for name, value in report.items() if value not in (None, {})}
    diffs = shown.pop("diffs")
    text = yaml_text(shown)
    for each in diffs:
        text += f"\n\n{each['method']} {each['path']} ({each['id']})\n{each['diff']}"
    return text
