"""Corrects the contract: actions of an overlay that may close divergences, and the proof
that they do.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import yaml

from ...contract.document import Document, Operation
from ...contract.pointers import located
from ...contract.source import ContractError, Place, json_path, value_at
from ...core.record import Body
from .findings import Divergence, Finding
from .merging import Report
from .run import Runner
from .twin import Twin

Again = Callable[[Path, Collection[str]], Awaitable[Collection[Finding] | None]]
"""Judges some operations of the target once more, by the contract with an overlay; None if that
could not be done.
"""
_ALTERNATIVES = ("format", "pattern")
"""Keywords that may refuse a value together."""
_LOOSE = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "multipleOf",
          "uniqueItems", "enum", *_ALTERNATIVES)  # fmt: skip
"""Keywords that can be removed from the contract."""
_SEED = 1
_HEAD = {"overlay": "1.0.0", "info": {"title": "Candidates", "version": "1.0.0"}}


async def correct_run(run: Runner, progress: Callable[[int, int], None]) -> None:
    """Set the actions of the divergences of a run that an overlay closes: another run that follows
    it is silent.
    """

    async def again(file: Path, names: Collection[str]) -> Collection[Finding] | None:
        options = replace(run.options, overlays=(*run.overlays, file), only=(*names,))
        second = await Runner(options, progress).run()
        run.left_behind += (*second.cleanup.left_behind,)
        if not (second.away or second.is_late or second.is_interrupted):
            return second.findings
        run.notes += ("Corrections were not proved: the second run ended early. Raise --budget.",)
        return None

    await correct(run, again)


async def correct(report: Report, again: Again) -> None:
    """Set the actions of the divergences that an overlay closes, each of them proved: no finding is
    left, and no class of findings is new at its operations.
    """
    followed: list[Divergence] = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "candidates.yaml"

        def starts(corrected: Collection[Divergence]) -> bool:
            """Whether a server starts with their actions, which the file has then."""
            actions = chain.from_iterable((each.overlay or {})["actions"] for each in corrected)
            text = yaml.safe_dump({**_HEAD, "actions": _unlike(actions)})
            file.write_text(text, encoding="utf-8")
            with suppress(ContractError):
                Twin(_SEED, (*report.overlays, file))
                return True
            return False

        for each in report.divergences:
            actions = chain.from_iterable(_actions(it, report.document) for it in each.findings)
            each.overlay = {"actions": _unlike(actions)}
            if each.overlay["actions"] and starts([*followed, each]):
                followed.append(each)
        names = set[str]().union(*(each.operations for each in followed))
        after = await again(file, names) if starts(followed) else None
        left = set(map(_key, after or ()))
        new = {key[:2] for key in left} - {_key(each)[:2] for each in report.findings}
        changed = {operation for _, operation in new}
        closed = []
        for each in followed if after is not None else ():
            if changed.isdisjoint(each.operations) and left.isdisjoint(map(_key, each.findings)):
                closed.append(each)
        # Only these are written as actions; the others are comments.
        if not starts([each for each in closed if each.basis == "assumed"]):
            closed = []
    for each in report.divergences:
        each.is_tried = after is not None or each not in followed
        each.overlay = each.overlay if each in closed else None


def _key(finding: Finding) -> tuple[str, str, str]:
    """Class, operation and place of a finding."""
    return finding.kind, finding.operation, finding.pointer


def _unlike(actions: Iterable[Body]) -> list[Body]:
    return [*{orjson.dumps(action): action for action in actions}.values()]


def _actions(finding: Finding, document: Document) -> Iterator[Body]:
    """The actions against one finding; none if no overlay helps."""
    status, at = finding.target.status, located(document, finding.pointer)[0]
    operation = document.operations.get(finding.operation)
    *above, last = at or [""]
    match finding.kind:
        case "missing-operation" | "missing-header":
            yield _removal(at)
        case "scope" if status < 300 and isinstance(last, int):
            yield _removal(at)
        case "wrong-status" | "undocumented-status" if operation and 200 <= status < 300:
            yield from _moved(operation, status)
        case "stricter" if last == "enum":
            value = orjson.dumps(finding.tries.removeprefix("the value ")).decode()
            yield {"target": f"{json_path(at)}[?@ == {value}]", "remove": True}
        case "schema" if last == "enum" and finding.got is not None:
            yield {"target": json_path(at), "update": [finding.got.value]}
        case "laxer" | "schema" if last in _LOOSE:
            schema = value_at(document.raw, above)
            for keyword in _ALTERNATIVES if last in _ALTERNATIVES else (last,):
                if keyword in schema:
                    yield _removal([*above, keyword])


def _moved(operation: Operation, status: int) -> list[Body]:
    """Document the response of a success under another status."""
    if status in operation.responses or not operation.successes:
        return []
    old, at = str(operation.successes[0]), [*operation.at, "responses"]
    response = dict(operation.raw["responses"][old])
    if status == 204:
        response.pop("content", None)
        response.pop("links", None)
    return [{"target": json_path(at), "update": {str(status): response}}, _removal([*at, old])]


def _removal(at: Place) -> Body:
    return {"target": json_path(at), "remove": True}
