"""API keys, and what goes with them:

API information, the scopes, and the merchant of a public key.
"""

from ..core.problem import NotFound
from ..core.record import Body
from ..domain import api_keys as rules
from ..domain.lifecycle import known_ids
from ..engine import resources
from ..server import reply
from ..server.lists import list_reply
from ..server.reply import Reply
from ..server.request import LARGEST_BODY
from ..server.work import Work
from .shown import shown

WARNING = "Store the private key now: it is shown this once and never again."


def get_api_info(work: Work) -> Reply:
    document = work.server.document
    documented = sum(o.is_documented for o in document.operations.values())
    rate = work.server.settings.rate_limit
    limit = None if rate is None else {"requests": rate[0], "window_seconds": rate[1]}
    info = {
        "name": document.raw["info"]["title"],
        "version": "2",
        "environment": "sandbox",
        "base_url": work.server.settings.url + work.prefix,
        "documentation_url": f"{work.server.settings.url}{work.prefix}/openapi.json",
        "status": "operational",
        "server_time": work.now_text,
        "authentication": {"schemes": ["bearer_jwt", "bearer_api_key"]},
        "limits": {"max_page_size": 100, "max_body_bytes": LARGEST_BODY, "rate_limit": limit},
        "contract": {
            "documented_operations": documented,
            "total_operations": len(document.operations),
        },
    }
    return reply.message("API information.", info=info)


def list_available_scopes(work: Work) -> Reply:
    """The catalogue of scopes; which operations each scope opens is read from the contract."""
    document = work.server.document
    scopes = []
    for scope in document.scopes:
        opened = [
            operation.id
            for operation in document.operations.values()
            if scope["name"] in operation.scopes
        ]
        scopes.append({**scope, "operations": opened})
    return reply.message("Available scopes.", scopes=scopes, total=len(scopes))


def get_merchant_by_public_key(work: Work, public_key: str) -> Reply:
    """What a checkout page may see; the same 404 for a key that is unknown, inactive or expired."""
    for store in work.sandbox.stores.values():
        key = store.api_keys.open(store.api_keys.holder("public_key", public_key) or "")
        if key is None:
            continue
        if rules.state(key, work.now) != "active":
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
    raise NotFound("No active key has this public key.", code="merchant_not_found")


async def list_api_keys(work: Work, query: Body) -> Reply:
    return await list_reply(work, "api_keys", query, "API keys retrieved.")


def create_api_key(work: Work, body: Body) -> Reply:
    rules.check_escalation(work.who.may, body["scopes"])
    projects = _projects(work, body.get("allowed_projects", []))
    work.trace.warn(rules.warnings(body, work.now))
    draft = work.draft
    public_key = rules.PUBLIC + draft.ids.secret(rules.PUBLIC_LENGTH)
    private_key = rules.PRIVATE + draft.ids.secret(rules.PRIVATE_LENGTH)
    key = rules.new_key(draft.new("api_keys"), body, (public_key, private_key), projects, work.now)
    resources.add_key(draft, key.keeping({"user_id": work.who.identity.subject}))
    sandboxes = work.sandboxes
    # a copy in which a request is tried leaves no trace
    if sandboxes.find(work.sandbox.name) is work.sandbox:
        sandboxes.add_keys(work.sandbox.name, (key["digest"], public_key))
    answer = reply.message(
        "API key created.", api_key={**key.public, "private_key": private_key}, warning=WARNING
    )
    return answer.created(work, f"/api-keys/{key.id}")


def update_api_key(work: Work, ident: str, body: Body) -> Reply:
    row = work.open_allowed("api_keys", ident, "API key")
    rules.check_update(work.who.may, row, body)
    projects = None
    if "allowed_projects" in body:
        projects = _projects(work, body["allowed_projects"])
    work.trace.warn(rules.warnings(body, work.now))
    changed = rules.changed_key(row, body, projects, work.now)
    return shown(work, resources.change_key(work.draft, changed), "API key updated.")


def delete_api_key(work: Work, ident: str) -> Reply:
    resources.drop_key(work.draft, work.open_allowed("api_keys", ident, "API key"))
    return reply.message("API key deleted.")


def _projects(work: Work, asked: list[str]) -> list[str]:
    return known_ids("allowed_projects", "project", asked, work.store.projects.keys.__contains__)
