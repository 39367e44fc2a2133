"""What the verbs `verify` and `proxy` need: checks of their options, and reports."""

import asyncio
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import orjson

from ...contract.document import Document, Operation, Response
from ...contract.source import fixture, read_text
from ...core.problem import UnusableInput
from ...core.text import did_you_mean
from ...settings import Overlays
from .findings import CLASSES
from .forms import FORMS, rendered
from .har import read
from .merging import Report
from .observed import Observed
from .options import Options
from .probes import costs
from .run import Runner

_DIVERGES, _FAILED, _TOO_LITTLE = range(1, 4)
_ELSEWHERE: dict[str, str] = fixture("verify.yaml")["unreached"]


def check_names(options: Options, document: Document) -> None:
    """Check that everything in `only` and `skip` exists. Raises UnusableInput."""
    tags = [operation.tag for operation in document.operations.values()]
    known = [*document.operations, *tags, *CLASSES]
    for name in (*options.only, *options.skip):
        if name not in known:
            guess = did_you_mean(name, known)
            raise UnusableInput(f"{name}: is not an operationId, a tag or a class.{guess}")


def of_recorded(
    file: Path,
    url: str | None,
    overlays: Overlays,
    known: Collection[str],
    *,
    corrects: bool = False,
) -> Report:
    """The report of recorded traffic, only of requests below `url` if it is given. Raises
    UnusableInput.

    With `corrects`, divergences get the actions of an overlay that close them.
    """
    observed = Observed(overlays, url or "recorded traffic", "har")
    for each in read(file, url):
        observed.judge(each)
    report = observed.finish(known)
    if corrects:
        asyncio.run(observed.correct())
    return report


def known(path: Path) -> set[str]:
    """The fingerprints in a JSON report. Raises UnusableInput for any other file."""
    try:
        return {
            divergence["fingerprint"]
            for divergence in orjson.loads(read_text(path, str(path)))["divergences"]
        }
    except (KeyError, TypeError, ValueError):
        raise UnusableInput(
            f"{path}: is not a JSON report. Write one with --report json={path.name}."
        ) from None


def check_forms(texts: Collection[str]) -> None:
    """Check `FORM` or `FORM=FILE` of each `--report`. Raises UnusableInput."""
    for each in texts:
        form, _, file = each.partition("=")
        if form not in FORMS:
            raise UnusableInput(f"{each}: is not a form of a report. Forms: {', '.join(FORMS)}.")
        if not Path(file).parent.is_dir():
            raise UnusableInput(f"{Path(file).parent}: no such directory.")


def of_run(run: Runner, known: Collection[str], least: float) -> Report:
    """The report of a run. Divergences with `known` fingerprints are hidden; a run must reach
    `least` per cent.

    Raises UnusableInput if nothing was learned.
    """
    options = run.options
    classes = (CLASSES.keys() & {*options.only} or CLASSES.keys()) - {*options.skip}
    for each in run.merge():
        is_chosen = not each.operations or {*each.operations} & {*run.chosen}
        if each.kind in classes and is_chosen:
            run.divergences.append(each)
    run.end(run.chosen, known, partial(_reasons, run))
    run.seed, run.requests, run.begins = options.seed, run.target.requests, run.cleanup.tag
    run.left_behind = (*run.cleanup.left_behind,)
    run.notes = (*rendered("notes.txt", run=run).splitlines(),)
    if run.divergences and not run.is_interrupted:
        run.exit = _DIVERGES
    elif not run.groups or run.is_interrupted:
        run.exit = _FAILED
        if run.away and not (run.left_behind or run.cleanup.is_cut_short):
            raise UnusableInput(f"{options.url} cannot be compared: it {run.away}.")
    elif run.coverage.percent < least:
        run.exit = _TOO_LITTLE
    return run


def _reasons(run: Runner, operation: Operation, response: Response) -> Iterator[str | None]:
    """Why a documented status may not have been answered."""
    status, closed, options = response.status, run.closed, run.options
    yield closed.get(operation.id)
    yield _ELSEWHERE.get(str(status))
    if not options.write:
        if operation.method != "GET" or status in (403, 409):
            yield "needs --write"
        if "{" in operation.path and status < 300:
            yield "no list of the backend shows such a record"
    if status == 403:
        if response.codes == ("ip_not_allowed",):
            yield "needs a key with other settings"
        if ("createApiKey", 201) not in run.pairs:
            yield "needs an API key with fewer scopes, which a JWT creates"
    if costs(operation) and not options.charges:
        yield "needs --charges"
    builder = run.walk("needs")
    refused = {each.operation for each in run.findings if each.kind == "refused-creation"}
    for needed in filter(None, (*builder.needs(operation), builder.resource_of(operation))):
        name = needed.create.id
        if name in closed:
            yield f"needs {name}: {closed[name]}"
        if name in refused:
            yield f"needs {name}, which refuses the record: see refused-creation"
