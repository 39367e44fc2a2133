"""A certification from beginning to end: every rule in turn, within a bounded time."""

from __future__ import annotations

import asyncio
from time import perf_counter_ns

from ..kernel.record import Body
from .checks import Finding, Result
from .rules import ACCEPTS, BETWEEN, IN_TIME, RULES, Rule
from .session import ANSWER_TIME, Session

LONGEST = 30.0  # seconds


async def certify(session: Session) -> Body:
    """The report. Never raises for what the receiver does."""
    begun = perf_counter_ns()
    findings: dict[str, Finding] = {}
    deadline = asyncio.get_running_loop().time() + LONGEST
    skipped = None
    for rule in (ACCEPTS, *BETWEEN):
        if skipped is None:
            findings[rule.id] = await _checked(rule, session, deadline)
            skipped = _reason_to_stop(rule, findings[rule.id], session)
        else:
            findings[rule.id] = _left_out(skipped)
    findings[IN_TIME.id] = await IN_TIME.check(session)
    rules = [_shown(rule, findings[rule.id]) for rule in RULES]
    results = [finding.result for finding in findings.values()]
    return {
        "passed": Result.FAILED not in results,
        "summary": {result.value: results.count(result) for result in Result},
        "duration_ms": (perf_counter_ns() - begun) // 1_000_000,
        "rules": rules,
    }


async def _checked(rule: Rule, session: Session, deadline: float) -> Finding:
    try:
        async with asyncio.timeout_at(deadline):
            return await rule.check(session)
    except TimeoutError:
        return _left_out(f"the {LONGEST:.0f} s of a run were over")


def _reason_to_stop(rule: Rule, finding: Finding, session: Session) -> str | None:
    if session.unanswered:
        return f"a delivery was not answered within {ANSWER_TIME:.0f} s"
    if rule is ACCEPTS and finding.result is not Result.PASSED:
        return "the first delivery was not accepted"
    return None


def _left_out(why: str) -> Finding:
    return Finding(Result.NOT_APPLICABLE, "nothing", why)


def _shown(rule: Rule, finding: Finding) -> Body:
    return {
        "id": rule.id,
        "name": rule.name,
        "result": finding.result.value,
        "sent": finding.sent,
        "received": finding.received,
        "advice": rule.advice if finding.result is Result.FAILED else None,
    }
