"""The sandbox as a whole: health, readiness, metrics, credentials, tokens, assumptions,
checks and reset.
"""

from pathlib import PurePath

from ...contract.assumptions import assumptions_of
from ...core.clock import iso
from ...core.problem import Conflict, Unavailable
from ...core.record import Body
from ...core.slices import Sliced
from ...engine.laws import checking
from ...engine.tables.store import MOST_MERCHANTS
from ...server import reply
from ...server.metrics import MEDIA, exposition
from ...server.reply import Reply
from ...server.request import ADMIN_KEY
from ...server.views import checked_beginning, credentials_of
from ...server.work import Work
from ...version import __version__
from ...webhooks.advancing import counts
from .turns import own_turn


def get_health(work: Work) -> Body:
    """On a public server, only callers with the admin key see the seed and the scenario's path."""
    server, sandbox = work.server, work.sandbox
    scenario, key = sandbox.origin.scenario, work.request.headers.get(ADMIN_KEY)
    origin: Body = {"scenario": PurePath(scenario).stem}
    if not server.settings.is_public or server.guard.knows_admin(key):
        origin = {"scenario": scenario, "seed": sandbox.origin.seed}
    return {
        "status": "ok",
        "version": __version__,
        "sandbox": sandbox.name,
        **origin,
        "now": work.now_text,
        "operations": len(server.document.operations),
        "events": len(server.document.events),
        "deliveries": counts(server.courier, sandbox),
    }


def get_readiness(work: Work) -> Body:
    """Raises Unavailable while the store cannot be written, and once the server stops."""
    if work.server.closing.is_announced:
        raise Unavailable(
            "The server is stopping.",
            advice="Send requests to another one.",
            code="server_stopping",
        )
    persistence = work.sandboxes.persistence
    if persistence.failure is not None:
        raise persistence.failure.again()
    persistence.check_lease()
    return {"status": "ready"}


def get_metrics(work: Work) -> Reply:
    return Reply(200, (exposition(work.server),), media=MEDIA)


def get_credentials(work: Work) -> Body:
    return credentials_of(work, work.sandbox, work.prefix)


def issue_token(work: Work, body: Body) -> Body:
    merchant_id = body.get("merchant_id", work.sandbox.origin.home).lower()
    if merchant_id not in work.sandbox.stores and len(work.sandbox.stores) >= MOST_MERCHANTS:
        message = f"A sandbox has at most {MOST_MERCHANTS} merchants."
        raise Conflict.at(
            "merchant_id",
            message,
            "too_many_merchants",
            advice="POST /_sandbox/reset leaves only the seeded one.",
        )
    store = work.sandbox.store_of(merchant_id)
    work.store = store
    work.draft.open_store()
    scopes = sorted(body.get("scopes", ["*"]))
    seconds = body.get("expires_in", 3600)
    token, expires = work.server.tokens.issue(
        work.sandbox, merchant_id, store.merchant.user_id, scopes, seconds
    )
    return {
        "token": token,
        "token_type": "Bearer",
        "expires_in": seconds,
        "expires_at": iso(expires * 1000),
        "sandbox": work.sandbox.name,
        "merchant_id": merchant_id,
        "scopes": scopes,
    }


def list_assumptions(work: Work) -> Body:
    return assumptions_of(work.server.document)


async def check_invariants(work: Work) -> Reply:
    """A copy of the sandbox is checked, so others are served."""
    with work.waiting():
        checks = await work.sandboxes.worker.in_line(_checking(work), work.sandbox.name)
    ok = all(check["ok"] for check in checks)
    return reply.value({"ok": ok, "checks": checks}, 200 if ok else 409)


def _checking(work: Work) -> Sliced[list[Body]]:
    """Check a copy of what there is when it is its turn: each copy takes memory."""
    sandbox = work.entry.sandbox
    return (yield from checking(sandbox.fork(sandbox.name)))


async def reset_sandbox(work: Work, body: Body) -> Body:
    beginning = checked_beginning(work, body)
    async with own_turn(work) as entry:
        sandbox = await work.sandboxes.reset(entry.sandbox.name, beginning)
    work.sandbox = sandbox
    return {
        "status": "ok",
        "scenario": sandbox.origin.scenario,
        "seed": sandbox.origin.seed,
        "now": iso(sandbox.clock.now),
        "counts": sandbox.store.counts(),
    }
