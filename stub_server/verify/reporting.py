"""Makes the report of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b

import orjson

from ..contract.document import Document
from .building import costs
from .findings import CLASSES, GROUPS, Divergence, Report, Row, Unreached
from .merging import merged
from .run import Learned, Options

CONFORMS, DIVERGES, FAILED, TOO_LITTLE = range(4)
_TOO_LARGE = "the contract does not say how large a body may be"
_BUSY = "only a busy or broken server answers this"
_ELSEWHERE = {413: _TOO_LARGE, 408: _BUSY, 429: _BUSY, 500: _BUSY, 502: _BUSY, 503: _BUSY, 504: _BUSY}


def report_of(learned: Learned, document: Document, options: Options, known: Collection[str], least: float) -> Report:
    """The report. Divergences with `known` fingerprints are hidden; a run must reach `least` per cent."""
    answered = [name for name, statuses in learned.statuses.items() if any(200 <= status < 300 for status in statuses)]
    divergences = merged(learned.findings, document, set(learned.groups), learned.suspected, answered)
    classes = options.classes or CLASSES
    divergences = [d for d in divergences if d.kind in classes and d.kind not in options.skip]
    shown, hidden = hide(divergences, known)
    unreached = [*_unreached(learned, document, options)]
    coverage = _coverage(learned, document, unreached)
    mode = "write" if options.write else "read"
    ended = CONFORMS
    if shown and not learned.is_interrupted:
        ended = DIVERGES
    elif not learned.groups or learned.is_interrupted:
        ended = FAILED
    elif coverage < least:
        ended = TOO_LITTLE
    return Report(
        options.url,
        contract_of(document),
        mode,
        options.seed,
        round(learned.seconds, 1),
        learned.requests,
        ended,
        coverage,
        [*_rows(learned, divergences)],
        unreached,
        shown,
        learned.left_behind,
        hidden,
    )


def notes(learned: Learned, options: Options) -> Iterator[str]:
    """Sentences about what a run could not do."""
    if learned.away:
        yield f"The run ended early: the backend {learned.away}. The report has what was learned until then."
    if learned.is_interrupted:
        yield "Interrupted: the report has what was learned until then."
    if learned.is_late:
        yield f"The budget of {options.budget:g} s is used up: raise it with --budget, or limit the run with --only."
    if learned.has_frozen_clock:
        yield "The backend's clock does not move: instants were not compared."
    if learned.limited:
        yield f"The backend answered 429 to {learned.limited:,} requests, which were repeated when it asked for that."
    if learned.repeated:
        yield (
            f"{learned.repeated:,} requests got no answer at first and were repeated. Where this left the state of a "
            "record unknown, the rest of the journey was skipped."
        )
    if learned.unknown:
        yield f"The backend may have {learned.unknown:,} more records of this run: it did not answer their creation."
    if learned.is_cut_short:
        yield f"Cleaning up was cut short: search the backend for records whose names begin with {learned.tag}."


def contract_of(document: Document) -> str:
    """Version and digest of a contract."""
    digest = blake2b(orjson.dumps(document.raw, option=orjson.OPT_NON_STR_KEYS), digest_size=6).hexdigest()
    return f"{document.raw['info']['version']} {digest}"


def _rows(learned: Learned, divergences: list[Divergence]) -> Iterator[Row]:
    diverging = {case for divergence in divergences for case in divergence.cases}
    for name in learned.chosen:
        groups = {}
        for group in GROUPS:
            if (name, group) in diverging:
                groups[group] = "diverges"
            elif group in learned.groups.get(name, ()):
                groups[group] = "ok"
            else:
                groups[group] = "none" if group in ("remembers", "finds", "moves") else "unreached"
        yield Row(name, groups)


def _unreached(learned: Learned, document: Document, options: Options) -> Iterator[Unreached]:
    """The documented statuses that no probe can reach, with the reason."""
    for operation in (document.operations[name] for name in learned.chosen):
        for status in operation.responses:
            if status in learned.statuses.get(operation.id, ()):
                continue
            if operation.id in learned.rights.closed:
                yield Unreached(operation.id, status, learned.rights.closed[operation.id])
            elif status in _ELSEWHERE:
                yield Unreached(operation.id, status, _ELSEWHERE[status])
            elif not options.write and (operation.method != "GET" or status == 403):
                yield Unreached(operation.id, status, "needs --write")
            elif learned.rights.is_key and status == 403:
                yield Unreached(operation.id, status, "needs a JWT to create keys with fewer scopes")
            elif costs(operation) and not options.charges:
                yield Unreached(operation.id, status, "needs --charges")


def _coverage(learned: Learned, document: Document, unreached: list[Unreached]) -> float:
    """Per cent of the documented statuses within reach that were answered."""
    away = {(each.operation, each.status) for each in unreached}
    within = {(name, status) for name in learned.chosen for status in document.operations[name].responses} - away
    reached = {(name, status) for name, status in within if status in learned.statuses.get(name, ())}
    return round(100 * len(reached) / len(within), 1) if within else 0.0


def hide(divergences: Iterable[Divergence], known: Collection[str]) -> tuple[list[Divergence], int]:
    """The divergences whose fingerprints are not known, and the number of the hidden ones."""
    every = list(divergences)
    shown = [divergence for divergence in every if divergence.fingerprint not in known]
    return shown, len(every) - len(shown)
