"""What ends the way of a request: Dispatch."""

from functools import partial
from time import perf_counter_ns

from ...contract.schema import ContractViolation
from ...core.problem import Conflict, NotBuilt, Unavailable
from ...domain.lifecycle import duplicate
from ...engine.tables.specs import UniqueViolation
from ..reply import Answer, Answering, Streamed
from ..request import CONTROL_KEY
from .access import check_access
from .idempotency import HEADER, Once
from .security import admit
from .time_travel import AS_OF, Past, check_past
from .way import Way


class Dispatch:
    """Calls the handler, checks its reply against the contract, and records change and saved reply
    in one step.

    Handlers run on the event loop. What must come before is done in this order: fault rules that
    read the body, an earlier state of the sandbox, a sandbox that does not exist yet, and a reply
    that was saved for an Idempotency-Key.
    """

    def __init__(self) -> None:
        self._past = Past()

    def __call__(self, way: Way) -> Answering:
        faults = way.faults
        if faults is None or faults.effect is not None:
            return self._execute(way)
        return faults.with_body(way.body, partial(self._later, way))

    async def _later(self, way: Way) -> Answer:
        await way.next_turn()
        return await self._execute(way)

    def _execute(self, way: Way) -> Answering:
        """Execute a request in the present. Others were served while its body arrived."""
        trace, sandbox = way.trace, way.sandbox
        if way.pending is not None or AS_OF in way.headers:
            return self._elsewhere(way)
        if (
            sandbox.log.number != trace.before
            or sandbox.origin.generation != way.generation
            or CONTROL_KEY in way.headers  # it may be that of another sandbox
        ):
            _check_again(way)
        trace.at, trace.before = sandbox.clock.now, sandbox.log.number
        return self._handle(way)

    async def _elsewhere(self, way: Way) -> Answer:
        """Execute a request in an earlier state of its sandbox, or in one that is created for it.

        Raises Unavailable if another request has created the sandbox, without the merchant of this
        one.
        """
        if AS_OF in way.headers:
            check_past(way)
            past = await self._past.of(way)
            _check_again(way)
            way.sandbox = past
            await way.create()
            return await self._handle(way)
        await way.create()
        caller = way.caller
        if caller is not None and caller.identity.merchant_id not in way.sandbox.stores:
            raise Unavailable(
                "The sandbox has just been created. Send the request again.",
                headers={"Retry-After": "0"},
            )
        return await self._execute(way)

    def _handle(self, way: Way) -> Answering:
        if way.caller is None:
            way.store = way.sandbox.store
        else:  # the past may not have this merchant
            way.store = way.sandbox.store_of(way.caller.identity.merchant_id)
        if HEADER in way.headers and way.endpoint.operation.takes_key:
            return self._once(way)
        return _perform(way)

    async def _once(self, way: Way) -> Answer:
        """Execute a request that is repeated with its Idempotency-Key once, and answer with the
        saved reply.
        """
        once = Once.of(way)
        earlier = once.earlier(way)
        if earlier is not None:
            way.trace.respond_at = perf_counter_ns()
            return earlier
        in_progress = way.sandbox.status.in_progress
        in_progress.add(once.key)
        try:
            return await _perform(way, once)
        finally:
            in_progress.discard(once.key)


def _check_again(way: Way) -> None:
    """Check a credential that may have ended while the request waited, or its body came.

    Raises Unauthenticated, Forbidden.
    """
    if way.endpoint.security:
        admit(way, again=True)
    check_access(way)


async def _perform(way: Way, once: Once | None = None) -> Answer:
    endpoint, trace = way.endpoint, way.trace
    trace.rule_at = perf_counter_ns()
    try:
        replied = endpoint.handler(way, *way.values, **way.named)
        reply = endpoint.reply((await replied) if endpoint.is_async else replied)
        # what it tells may be of the next generation; a rotation ends its own key
        if CONTROL_KEY in way.headers and endpoint.operation.id != "rotateSandbox":
            check_access(way)
        trace.respond_at = perf_counter_ns()
        if (reply.status, reply.shape) not in endpoint.proved:
            endpoint.check(reply)
        if isinstance(reply, Streamed):
            return reply
        reply.body = b"".join(reply.parts)
        # A refusal is not saved: it can be tried again.
        saved = None if once is None or reply.status >= 300 else once.saved(way, reply)
        reply.complete()
        if saved is not None or way.drafted is not None:
            way.commit(saved)
        return reply
    except Conflict as conflict:
        _locate(conflict, way)
        raise
    except (ContractViolation, UniqueViolation) as error:
        raise _refusal_of(error, way) from None


def _refusal_of(error: ContractViolation | UniqueViolation, way: Way) -> Exception:
    """What is answered where a result cannot be stored or answered; the error itself
    where it is a defect.
    """
    # a control creates records only where it fills a sandbox
    if isinstance(error, UniqueViolation) and not way.endpoint.base:
        key = error.key
        if key is not None and key.code is not None:
            refusal = duplicate(error.schema, key, error.value)
            _locate(refusal, way)
            return refusal
    if way.endpoint.shipped is None:
        return error
    return NotBuilt(f"The overlays allow this request, but not its result: {error}")


def _locate(conflict: Conflict, way: Way) -> None:
    """Details about what the request did not send, such as a status, are about the record that the
    path names.
    """
    if not way.values:
        return
    sent = way.body if isinstance(way.body, dict) else {}
    details = []
    for each in conflict.details:
        if each["in"] == "body" and each["field"].replace("[", ".").partition(".")[0] not in sent:
            each = each | {"in": "path"}
        details.append(each)
    conflict.details = tuple(details)
