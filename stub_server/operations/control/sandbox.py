"""The sandbox as a whole: health, readiness, metrics, credentials, tokens, assumptions, checks and reset."""

from pathlib import PurePath

from ...audit.laws import checking
from ...calls import reply
from ...calls.call import ADMIN_KEY, Call
from ...calls.metrics import MEDIA, exposition
from ...calls.reply import Reply
from ...calls.views import checked_beginning, credentials_of
from ...contract.assumptions import assumptions_of
from ...delivery.advancing import counts
from ...kernel.clock import iso
from ...kernel.problem import Conflict, Unavailable
from ...kernel.record import Body

MOST_MERCHANTS = 100


def get_health(call: Call) -> Reply:
    """On a public server, only callers with the admin key see the seed and the scenario's path."""
    server, sandbox = call.server, call.sandbox
    trusted = not server.settings.is_public or server.knows_admin(call.headers.get(ADMIN_KEY))
    return reply.value(
        {
            "status": "ok",
            "version": server.version,
            "sandbox": sandbox.name,
            "scenario": sandbox.scenario if trusted else PurePath(sandbox.scenario).stem,
            **({"seed": sandbox.seed} if trusted else {}),
            "now": call.now_text,
            "operations": len(server.document.operations),
            "events": len(server.document.events),
            "deliveries": counts(server.courier, sandbox),
        }
    )


def get_readiness(call: Call) -> Reply:
    """Raises Unavailable while the store cannot be written, and once the server stops."""
    if call.server.closing.is_announced:
        raise Unavailable("The server is stopping.", advice="Send requests to another one.", code="server_stopping")
    persistence = call.server.sandboxes.persistence
    if persistence.failure is not None:
        raise persistence.failure.again()
    persistence.check_lease()
    return reply.value({"status": "ready"})


def get_metrics(call: Call) -> Reply:
    return Reply(200, (exposition(call.server),), media=MEDIA)


def get_credentials(call: Call) -> Reply:
    return reply.value(credentials_of(call, call.sandbox, call.prefix))


def issue_token(call: Call, body: Body | None) -> Reply:
    asked = body or {}
    merchant_id = asked.get("merchant_id", call.sandbox.home).lower()
    if merchant_id not in call.sandbox.stores and len(call.sandbox.stores) >= MOST_MERCHANTS:
        message = f"A sandbox has at most {MOST_MERCHANTS} merchants."
        advice = "POST /_sandbox/reset leaves only the seeded one."
        raise Conflict.at("merchant_id", message, "too_many_merchants", advice=advice)
    call.store = store = call.sandbox.store_of(merchant_id)
    call.draft.open_store()
    scopes = sorted(asked.get("scopes", ["*"]))
    seconds = asked.get("expires_in", 3600)
    token, expires = call.server.tokens.issue(call.sandbox, merchant_id, store.merchant.user_id, scopes, seconds)
    body = {
        "token": token,
        "token_type": "Bearer",
        "expires_in": seconds,
        "expires_at": iso(expires * 1000),
        "sandbox": call.sandbox.name,
        "merchant_id": merchant_id,
        "scopes": scopes,
    }
    return reply.value(body, 201)


def list_assumptions(call: Call) -> Reply:
    return reply.value(assumptions_of(call.server.document))


async def check_invariants(call: Call) -> Reply:
    """A copy of the sandbox is checked, so others are served."""
    sandbox = call.sandbox
    work = checking(sandbox.fork(sandbox.name))
    checks = await call.server.sandboxes.worker.in_line(work)
    ok = all(check["ok"] for check in checks)
    return reply.value({"ok": ok, "checks": checks}, 200 if ok else 409)


async def reset_sandbox(call: Call, body: Body | None) -> Reply:
    asked = body or {}
    scenario, now = checked_beginning(call, asked)
    reset = call.server.sandboxes.reset
    call.sandbox = sandbox = await reset(call.sandbox.name, scenario, asked.get("seed"), now, asked.get("settings"))
    return reply.value(
        {
            "status": "ok",
            "scenario": sandbox.scenario,
            "seed": sandbox.seed,
            "now": iso(sandbox.clock.now),
            "counts": sandbox.store.counts(),
        }
    )
