"""An OpenAPI Overlay of the actions that a run has proved, for `serve --overlay`."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from ...commands.options import printable
from ..findings import Divergence, Report
from ..where import Where

_WIDTH = 110


def render(report: Report, where: Where) -> str:
    """The overlay. Actions against what the source document shows are commented out, with the line of the contract."""
    return "\n".join(_lines(report, where)) + "\n"


def _lines(report: Report, where: Where) -> Iterator[str]:
    head = {"overlay": "1.0.0", "info": {"title": f"Corrections for {report.target}", "version": "1.0.0"}}
    yield _yaml(head)
    yield "actions:"
    if not any(each.overlay is not None and each.basis == "assumed" for each in report.divergences):
        yield "  - { target: $.info, update: {} }  # an overlay needs an action, and this one changes nothing"
    written: list[object] = []
    for divergence in report.divergences:
        if divergence.overlay is not None:
            # An action may close several divergences; what it removes cannot be removed again.
            actions = [action for action in divergence.overlay["actions"] if action not in written]
            yield from _actions(divergence, actions, where)
            written += actions if divergence.basis == "assumed" else []
    others = [each for each in report.divergences if each.overlay is None]
    if others:
        yield "  # No overlay corrects these:"
        yield from (_comment(f"- {each.kind}: {each.title}") for each in others)


def _actions(divergence: Divergence, actions: list[object], where: Where) -> Iterator[str]:
    yield _comment(f"{divergence.kind}: {divergence.title}")
    margin = "  "
    if divergence.basis == "documented":
        line = where.line(divergence.pointer, divergence.operation)
        yield _comment(
            f"Commented out, since the source document shows otherwise: {line.file}:{line.number}: {line.text}"
        )
        margin = "  # "
    if actions:
        yield from (margin + line for line in _yaml(actions).splitlines())


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDTH).rstrip()


def _comment(text: str) -> str:
    return f"  # {printable(' '.join(text.split()))}"
