"""API keys, and what goes with them: API information, the scopes, and the merchant of a public key."""

from ..calls import reply
from ..calls.call import LARGEST_BODY, Call
from ..calls.reply import Reply, list_reply
from ..domain import api_keys as rules
from ..domain.lifecycle import known_ids
from ..engine import resources
from ..kernel.problem import NotFound
from ..kernel.record import Body

WARNING = "Store the private key now: it is shown this once and never again."


def get_api_info(call: Call) -> Reply:
    document = call.server.document
    documented = sum(o.is_documented for o in document.operations.values())
    rate = call.server.settings.rate_limit
    limit = None if rate is None else {"requests": rate[0], "window_seconds": rate[1]}
    info = {
        "name": document.raw["info"]["title"],
        "version": "2",
        "environment": "sandbox",
        "base_url": call.server.settings.url + call.prefix,
        "documentation_url": f"{call.server.settings.url}{call.prefix}/openapi.json",
        "status": "operational",
        "server_time": call.now_text,
        "authentication": {"schemes": ["bearer_jwt", "bearer_api_key"]},
        "limits": {"max_page_size": 100, "max_body_bytes": LARGEST_BODY, "rate_limit": limit},
        "contract": {"documented_operations": documented, "total_operations": len(document.operations)},
    }
    return reply.message("API information.", info=info)


def list_available_scopes(call: Call) -> Reply:
    """The catalogue of scopes; which operations each scope opens is read from the contract."""
    document = call.server.document
    scopes = [
        {**scope, "operations": [o.id for o in document.operations.values() if scope["name"] in o.scopes]}
        for scope in document.scopes
    ]
    return reply.message("Available scopes.", scopes=scopes, total=len(scopes))


def get_merchant_by_public_key(call: Call, public_key: str) -> Reply:
    """What a checkout page may see; the same 404 for a key that is unknown, inactive or expired."""
    for store in call.sandbox.stores.values():
        key = store.api_keys.open(store.api_keys.holder("public_key", public_key) or "")
        if key is None:
            continue
        if rules.state(key.public, call.now) != "active":
            break
        merchant = {
            "id": store.merchant.id,
            "name": store.merchant.name,
            "public_key": public_key,
            "logo_url": None,
            "is_active": True,
            "environment": "sandbox",
            "currency": "BRL",
            "country": "BR",
            "allowed_projects": key.public["allowed_projects"],
            "created_at": store.merchant.created_at,
        }
        return reply.message("Merchant found.", merchant=merchant)
    raise NotFound("No merchant can be found by this public key.", code="merchant_not_found")


def list_api_keys(call: Call, query: Body) -> Reply:
    return list_reply(call, call.store.api_keys, query, "API keys retrieved.", "api_keys")


def create_api_key(call: Call, body: Body) -> Reply:
    rules.check_escalation(call.who.may, body["scopes"])
    projects = _projects(call, body.get("allowed_projects", []))
    call.warn(*rules.warnings(body, call.now))
    draft = call.draft
    public_key = rules.PUBLIC + draft.ids.secret(rules.PUBLIC_LENGTH)
    private_key = rules.PRIVATE + draft.ids.secret(rules.PRIVATE_LENGTH)
    public, hidden = rules.new_key(
        body, call.defaults("ApiKey"), call.draft.ids.uuid(), public_key, private_key, projects, call.now
    )
    hidden["user_id"] = call.who.subject
    ident = public["id"]
    resources.add_key(draft, public, hidden)
    sandboxes = call.server.sandboxes
    if sandboxes.find(call.sandbox.name) is call.sandbox:  # a copy in which a request is tried leaves no trace
        sandboxes.add_keys(call.sandbox.name, (hidden["digest"], public_key))
    answer = reply.message("API key created.", api_key={**public, "private_key": private_key}, warning=WARNING)
    return answer.created(call, f"/api-keys/{ident}")


def update_api_key(call: Call, ident: str, body: Body) -> Reply:
    table = call.store.api_keys
    row = call.open_allowed(table, ident, "API key")
    rules.check_update(call.who.may, row, body)
    projects = _projects(call, body["allowed_projects"]) if "allowed_projects" in body else None
    call.warn(*rules.warnings(body, call.now))
    public, hidden = rules.changed_key(row, body, projects, call.now)
    record = resources.change_key(call.draft, row, public, hidden)
    return reply.enveloped("API key updated.", "api_key", call.store.shown(table, record))


def delete_api_key(call: Call, ident: str) -> Reply:
    table = call.store.api_keys
    row = call.open_allowed(table, ident, "API key")
    resources.drop_key(call.draft, row)
    return reply.message("API key deleted.")


def _projects(call: Call, asked: list[str]) -> list[str]:
    return known_ids("allowed_projects", "project", asked, call.store.projects.keys.__contains__)
