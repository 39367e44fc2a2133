"""The forms of a report: text and HTML for people; JSON, JUnit's XML, SARIF 2.1.0 and the overlay
for programs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml
from jinja2 import Environment, PackageLoader

from ...core.text import json_text, printable
from ...version import __version__
from .findings import CLASSES, COSTLY, GROUPS, RANKS, Divergence, Report, Said, listed
from .showing import cut

_LONGEST = 240  # characters of an answer that are shown
_MARKS = {"ok": "✓", "diverges": "✗", "unreached": "\N{EN DASH}", "none": ""}
_LEGEND = (
    f"{_MARKS['ok']} as the contract says, {_MARKS['diverges']} diverges, {_MARKS['unreached']} out"
    " of reach"
)
_EXITS = {
    0: "The backend conforms",
    1: "The backend diverges",
    2: "The run failed",
    3: "The run covered less than --coverage asks for",
}
_DEFECTS = frozenset(("transport", "server-error"))
_SKIPPED = {
    "diverges": "The baseline hides what diverges here.",
    "unreached": "Out of reach.",
    "none": "The contract has nothing to try here.",
}
_WIDTH = 110  # of the lines of an overlay
_LEVELS = {"documented": "error", "assumed": "warning"}
_TEMPLATES = Environment(loader=PackageLoader(__package__), autoescape=True)
_TEMPLATES.filters["printable"] = printable


# -- for people


def text(report: Report) -> str:
    """The report as text. Control characters from the target are escaped."""
    return "\n".join(map(printable, _lines(report)))


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.target} compared with {report.contract}"
    if report.divergences:
        yield ""
        counts = Counter(each.kind for each in report.divergences)
        yield from (
            f"{count:>4}  {kind.ljust(20)}  {CLASSES[kind]}" for kind, count in counts.items()
        )
    for number, divergence in enumerate(report.divergences, 1):
        first, *rest = _lines_of(divergence)
        yield from ("", f"{number}. {first}", *(f"   {line}" for line in rest))
    yield ""
    yield from _matrix(report)
    if report.unreached:
        yield from ("", "Out of reach, in documented statuses:")
        reasons = Counter(
            each.reason or "no request was answered with this status" for each in report.unreached
        )
        yield from (f"{count:>6}  {reason}" for reason, count in reasons.most_common())
    if report.left_behind:
        lists = Counter(path.rpartition("/")[0] for path in report.left_behind)
        counted = ", ".join(f"{count:,} of {path}" for path, count in lists.items())
        yield ""
        yield f"Left behind in the backend: {counted}."
        yield (
            f"Their names and e-mail addresses begin with {report.tag}; the JSON report has their"
            " paths."
        )
    yield ""
    yield _summary(report)


def _matrix(report: Report) -> Iterator[str]:
    width = max(map(len, report.rows), default=0)
    yield "  ".join(("".ljust(width), *GROUPS))
    for operation, row in report.rows.items():
        marks = (_MARKS[row[group]].center(len(group)) for group in GROUPS)
        yield "  ".join((operation.ljust(width), *marks)).rstrip()
    yield _LEGEND


def _lines_of(divergence: Divergence) -> Iterator[str]:
    """A divergence: what differs and where, the request, both answers, the line of the contract,
    and what to do.
    """
    line, request = divergence.line, divergence.request
    yield f"{divergence.kind}: {divergence.title} ({_operations_of(divergence)})"
    yield from (request.curl or f"{request.method} {request.path}").split("\n")
    answered, expected = (
        cut(_said(said), _LONGEST) for said in (divergence.target, divergence.expected)
    )
    yield f"answered {answered}; expected {expected}"
    yield f"{line.file}:{line.number} ({divergence.basis}): {line.text}"
    yield _advice(divergence)


def html(report: Report) -> str:
    """The text report as one page without other files, for light and dark screens."""
    page = _TEMPLATES.get_template("report.html")
    return page.render(target=printable(report.target), text=text(report))


# -- texts of several forms


def _advice(divergence: Divergence) -> str:
    """What to do about a divergence."""
    report = "Report it to the owners of the backend"
    if divergence.kind in _DEFECTS:
        return f"{report}: no contract allows this."
    if divergence.basis == "documented":
        more = (
            ""
            if divergence.overlay is None
            else " --write-overlay FILE writes the correction as a comment."
        )
        return f"{report}: the source document shows what the contract says.{more}"
    if divergence.overlay is not None:
        return "Correct the sandbox: --write-overlay FILE writes an overlay for this."
    if divergence.kind in COSTLY:
        return f"{report}, unless you know that it is intended: this may cost data or money."
    if divergence.is_tried:
        return "No overlay corrects the sandbox here: write your code for what the backend does."
    return "The contract assumes this. --write-overlay FILE corrects the sandbox if an overlay can."


def _operations_of(divergence: Divergence) -> str:
    """The operations of a divergence and how often it was found:

    `createOrder, getOrder; 4 probes`.
    """
    return (
        f"{listed(divergence.operations) or 'no operation'}; {_counted(divergence.count, 'probe')}"
    )


def _said(answer: Said) -> str:
    """An answer in one line."""
    return " ".join(f"{answer.status or 'no answer'} {answer.excerpt}".split())


def _summary(report: Report) -> str:
    """The result of a run, in a sentence or two."""
    hidden = f", and {report.hidden} hidden by the baseline" if report.hidden else ""
    found = f"{_EXITS[report.exit]}: {_counted(len(report.divergences), 'divergence')}{hidden}."
    requests = _counted(report.requests, "request")
    if report.mode in ("har", "proxy"):
        return f"{found} {requests} saw {report.coverage:.1f} % of the documented statuses."
    return (
        f"{found} {requests} in {report.seconds:.1f} s covered {report.coverage:.1f} % of the"
        f" documented statuses that {report.mode} mode can reach with this credential (seed"
        f" {report.seed})."
    )


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s'[: number != 1]}"


# -- for programs


def json(report: Report) -> str:
    """The report as a JSON object; docs/verify.md has its shape."""
    names = (
        "target",
        "contract",
        "mode",
        "seed",
        "seconds",
        "requests",
        "exit",
        "coverage",
        "tag",
        "left_behind",
    )
    shown: dict[str, Any] = {name: getattr(report, name) for name in names}
    shown["operations"] = [
        {"operationId": operation, **row} for operation, row in report.rows.items()
    ]
    shown["unreached"] = [
        {"operationId": each.operation, "status": each.status, "reason": each.reason}
        for each in report.unreached
    ]
    shown["divergences"] = [_divergence(each) for each in report.divergences]
    return json_text(shown, indent=2)


def _divergence(divergence: Divergence) -> dict[str, Any]:
    names = ("fingerprint", "operations", "title", "basis", "pointer", "count", "overlay")
    shown: dict[str, Any] = {name: getattr(divergence, name) for name in names}
    shown |= {
        name: getattr(divergence, name)._asdict() for name in ("request", "target", "expected")
    }
    return {**shown, "class": divergence.kind, "operationId": divergence.operation}


class _Case(NamedTuple):
    """An operation and a group of probes, with the divergences that were found, or why the case was
    skipped.
    """

    operation: str
    group: str
    found: list[Divergence]
    skipped: str


def junit(report: Report) -> str:
    """The report as XML.

    A divergence fails each case that found it; what was not reached, or is hidden, is skipped.
    """
    found: dict[tuple[str, str], list[Divergence]] = defaultdict(list)
    states = {
        (operation, group): state
        for operation, row in report.rows.items()
        for group, state in row.items()
    }
    for divergence in report.divergences:
        for case in divergence.cases:
            found[case].append(divergence)
    cases = [
        _Case(*case, found[case], "" if found[case] else _SKIPPED.get(states[case], ""))
        for case in dict.fromkeys([*states, *found])
    ]
    return _TEMPLATES.get_template("report.xml").render(
        report=report,
        cases=cases,
        lines_of=lambda divergence: "\n".join(map(printable, _lines_of(divergence))),
    )


def sarif(report: Report) -> str:
    """The report as a SARIF log: errors depart from what is documented, warnings from
    what is assumed.
    """
    rules = [
        {"id": name, "shortDescription": {"text": meaning}} for name, meaning in CLASSES.items()
    ]
    run = {
        "tool": {"driver": {"name": "stub-server verify", "version": __version__, "rules": rules}},
        "invocations": [{"executionSuccessful": report.exit in (0, 1), "exitCode": report.exit}],
        "results": [_result(divergence) for divergence in report.divergences],
        "properties": {
            name: getattr(report, name)
            for name in ("target", "contract", "mode", "seed", "coverage")
        },
    }
    return json_text(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        },
        indent=2,
    )


def _result(divergence: Divergence) -> dict[str, Any]:
    line = divergence.line
    place = {"artifactLocation": {"uri": quote(line.file)}, "region": {"startLine": line.number}}
    return {
        "ruleId": divergence.kind,
        "ruleIndex": RANKS[divergence.kind],
        "level": _LEVELS[divergence.basis],
        "message": {"text": _plain("\n".join(_lines_of(divergence)))},
        "locations": [{"physicalLocation": place}],
        # GitHub matches alerts of several runs only by this name.
        "partialFingerprints": {"primaryLocationLineHash": divergence.fingerprint},
        "occurrenceCount": divergence.count,
        "properties": {
            "basis": divergence.basis,
            "pointer": divergence.pointer,
            "operations": divergence.operations,
        },
    }


def _plain(text: str) -> str:
    """Text with placeholders and links escaped, which have a meaning in messages of SARIF (3.11.5
    and 3.11.6).
    """
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def overlay(report: Report) -> str:
    """The overlay.

    Actions against what the source document shows are commented out, with the line of the contract.
    """
    return "\n".join(_overlay_lines(report)) + "\n"


def _overlay_lines(report: Report) -> Iterator[str]:
    yield _yaml(
        {
            "overlay": "1.0.0",
            "info": {"title": f"Corrections for {report.target}", "version": "1.0.0"},
        }
    )
    yield "actions:"
    if not any(each.overlay is not None and each.basis == "assumed" for each in report.divergences):
        yield (
            "  - { target: $.info, update: {} }  # an overlay needs an action, and this one changes"
            " nothing"
        )
    written: list[object] = []
    for divergence in report.divergences:
        if divergence.overlay is None:
            continue
        # An action may close several divergences; what it removes cannot be removed again.
        actions = [action for action in divergence.overlay["actions"] if action not in written]
        yield _comment(f"{divergence.kind}: {divergence.title}")
        margin = "  "
        if divergence.basis == "assumed":
            written += actions
        else:
            line, margin = divergence.line, "  # "
            why = "Commented out, since the source document shows otherwise"
            yield _comment(f"{why}: {line.file}:{line.number}: {line.text}")
        yield from (margin + line for line in _yaml(actions).splitlines() if actions)
    others = [each for each in report.divergences if each.overlay is None]
    if others:
        yield "  # No overlay corrects these:"
        yield from (_comment(f"- {each.kind}: {each.title}") for each in others)


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDTH).rstrip()


def _comment(text: str) -> str:
    return f"  # {printable(' '.join(text.split()))}"


FORMS = {"text": text, "json": json, "html": html, "junit": junit, "sarif": sarif}
"""The forms by their names: each returns a report whole, without a line break at its end."""
