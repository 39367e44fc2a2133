"""A backend that somebody else wrote: eleven operations of the API, made from its public description alone.

It knows nothing of the contract nor of the server. Where the description is silent it does what seemed natural to its
author. To try it by hand:

    python -m tests.verify.other --port 8080
"""

import argparse
import json
import sqlite3
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException
from werkzeug.serving import BaseWSGIServer, make_server

TOKEN = "other-backend-token"
MERCHANT = "7b0f8f3e-5a43-4f0e-9a39-0d6b8f9c2b11"

Record = dict[str, Any]
Check = Callable[[Any], str | None]


class Refused(Exception):
    """The request is refused with this status and message."""

    def __init__(self, status: int, message: str, errors: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.errors = status, message, errors


# What a field may hold: each check gives what is wrong, or None.


def text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def filled(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "must be a non-empty string"


def email(value: Any) -> str | None:
    name, at, domain = value.partition("@") if isinstance(value, str) else ("", "", "")
    return None if name and at and "." in domain and " " not in value else "must be an e-mail address"


def url(value: Any) -> str | None:
    return None if isinstance(value, str) and value.startswith(("http://", "https://")) else "must be a URL"


def number(value: Any) -> str | None:
    return None if isinstance(value, int | float) and not isinstance(value, bool) else "must be a number"


def positive(value: Any) -> str | None:
    return number(value) or (None if value > 0 else "must be greater than zero")


def uuid_string(value: Any) -> str | None:
    try:
        uuid.UUID(value)
    except (ValueError, TypeError, AttributeError):
        return "must be a UUID"
    return None


def moment(value: Any) -> str | None:
    try:
        datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return "must be an ISO 8601 date-time"
    return None


def texts(value: Any) -> str | None:
    good = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return None if good else "must be an array of strings"


def text_map(value: Any) -> str | None:
    good = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    return None if good else "must be an object of strings"


def phones(value: Any) -> str | None:
    good = isinstance(value, dict) and all(text_map(one) is None for one in value.values())
    return None if good else "must be an object of phones"


def one_of(*allowed: str) -> Check:
    return lambda value: None if value in allowed else f"must be one of: {', '.join(allowed)}"


def shape(fields: dict[str, Check], needed: tuple[str, ...] = ()) -> Check:
    """An object with these fields. Its check names the first field that is wrong."""

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return "must be an object"
        return next((f"{name} {wrong}" for name, wrong in faults(value, fields, needed).items()), None)

    return check


def faults(value: Record, fields: dict[str, Check], needed: tuple[str, ...]) -> dict[str, str]:
    found = {name: "is required" for name in needed if value.get(name) is None}
    for name, check in fields.items():
        if value.get(name) is not None and (wrong := check(value[name])):
            found[name] = wrong
    return found


API_KEY: dict[str, Check] = {
    "name": filled,
    "description": text,
    "scopes": texts,
    "expires_at": moment,
    "allowed_ips": texts,
    "allowed_projects": texts,
    "metadata": text_map,
}
ADDRESS: dict[str, Check] = dict.fromkeys(("line_1", "line_2", "zip_code", "city", "state", "country"), text)
CUSTOMER: dict[str, Check] = {
    "type": one_of("individual", "company"),
    "name": filled,
    "email": email,
    "document": text,
    "document_type": one_of("cpf", "cnpj", "passport"),
    "phones": phones,
    "address": shape(ADDRESS),
    "metadata": text_map,
}
PROJECT_SHOWN: dict[str, Check] = {
    "name": filled,
    "description": text,
    "status": one_of("draft", "active", "suspended", "archived"),
    "visibility": one_of("public", "private"),
    "metadata": text_map,
}
PROJECT: dict[str, Check] = {
    **PROJECT_SHOWN,
    "long_description": text,
    **dict.fromkeys(("logo_url", "cover_image", "website_url"), url),
    **dict.fromkeys(("business_settings", "marketing_settings", "content_settings", "notification_settings"), text_map),
}
ITEM = shape({"description": filled, "quantity": positive, "amount": positive}, ("description", "quantity", "amount"))
BUYER: dict[str, Check] = {
    "name": filled,
    "email": email,
    **dict.fromkeys(("document", "document_type", "type"), text),
    "phones": text_map,
    "address": text_map,
}


def items(value: Any) -> str | None:
    if not isinstance(value, list) or not value:
        return "must be a non-empty array"
    return next((f"[{place}] {wrong}" for place, one in enumerate(value) if (wrong := ITEM(one))), None)


PIX_ORDER: dict[str, Check] = {
    "projectId": uuid_string,
    "planId": uuid_string,
    "paymentMethod": one_of("pix"),
    "totalAmount": positive,
    "items": items,
    "customer": shape(BUYER, ("name", "email")),
    "metadata": text_map,
    "success_url": url,
    "cancel_url": url,
}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Store:
    """Records as JSON in one table of SQLite, newest first in lists."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.base = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self.base.execute(
            "CREATE TABLE records (n INTEGER PRIMARY KEY, kind TEXT, id TEXT UNIQUE, email TEXT, body TEXT,"
            " UNIQUE (kind, email))"
        )

    def add(self, kind: str, record: Record, email: str | None = None) -> None:
        with self.lock:
            self.base.execute(
                "INSERT INTO records (kind, id, email, body) VALUES (?, ?, ?, ?)",
                (kind, record["id"], email, json.dumps(record)),
            )

    def get(self, kind: str, key: str) -> Record:
        with self.lock:
            row = self.base.execute("SELECT body FROM records WHERE kind = ? AND id = ?", (kind, key)).fetchone()
        if row is None:
            raise Refused(404, f"{kind} not found")
        found: Record = json.loads(row[0])
        return found

    def put(self, kind: str, record: Record, email: str | None = None) -> None:
        with self.lock:
            self.base.execute(
                "UPDATE records SET body = ?, email = ? WHERE kind = ? AND id = ?",
                (json.dumps(record), email, kind, record["id"]),
            )

    def page(self, kind: str) -> tuple[list[Record], Record]:
        """One page of records, as ?page= and ?limit= ask, and what the answer says of it."""
        page = max(request.args.get("page", 1, type=int), 1)
        limit = min(max(request.args.get("limit", 20, type=int), 1), 100)
        with self.lock:
            (total,) = self.base.execute("SELECT count(*) FROM records WHERE kind = ?", (kind,)).fetchone()
            rows = self.base.execute(
                "SELECT body FROM records WHERE kind = ? ORDER BY n DESC LIMIT ? OFFSET ?",
                (kind, limit, min((page - 1) * limit, 2**62)),
            ).fetchall()
        about = {"page": page, "limit": limit, "total": total, "pages": -(-total // limit)}
        return [json.loads(body) for (body,) in rows], about


def body_of(fields: dict[str, Check], needed: tuple[str, ...] = ()) -> Record:
    """The fields we know of the request's body, all of them good."""
    sent = request.get_json()
    if not isinstance(sent, dict):
        raise Refused(400, "The body must be a JSON object")
    if wrong := faults(sent, fields, needed):
        raise Refused(422, "Validation failed", wrong)
    return {name: sent[name] for name in fields if sent.get(name) is not None}


def seed(store: Store) -> None:
    for name in ("Clube do Café", "Escola de Violão"):
        store.add("Project", new_project({"name": name, "status": "active"}))
    for name in ("Ana Souza", "Bruno Lima"):
        address = f"{name.split()[0].lower()}@example.com"
        store.add("Customer", new_customer({"name": name, "email": address}), address)


def new_project(sent: Record) -> Record:
    plain: Record = {"description": "", "status": "draft", "type": "membership", "visibility": "private"}
    counts = dict.fromkeys(("plans_count", "orders_count", "total_subscribers", "active_subscribers"), 0)
    made = {"total_revenue": 0.0, "creatorId": MERCHANT, "metadata": {}, "createdAt": now()}
    return {"id": str(uuid.uuid4()), **plain, **counts, **made, **sent}


def new_customer(sent: Record) -> Record:
    plain: Record = {
        "type": "individual",
        "document": None,
        "document_type": None,
        "phones": {},
        "address": {},
        "metadata": {},
    }
    return {"id": str(uuid.uuid4()), **plain, **sent, "createdAt": now(), "updatedAt": now()}


def application() -> Flask:
    app = Flask(__name__)
    store = Store()
    seed(store)

    @app.before_request
    def authenticate() -> None:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "Invalid or missing access token")

    @app.errorhandler(Refused)
    def refused(error: Refused) -> tuple[Response, int]:
        more = {"errors": error.errors} if error.errors else {}
        return jsonify(error=True, message=error.message, **more), error.status

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> tuple[Response, int]:
        return jsonify(error=True, message=error.description), error.code or 500

    @app.post("/api-keys")
    def create_api_key() -> tuple[Response, int]:
        sent = body_of(API_KEY, ("name",))
        key: Record = {
            "id": str(uuid.uuid4()),
            "public_key": f"pk_{uuid.uuid4().hex}",
            **{"description": "", "scopes": [], "expires_at": None, "allowed_ips": [], "metadata": {}},
            **sent,
            "allowed_projects": ",".join(sent.get("allowed_projects") or []),
            **{"is_active": True, "usage_count": 0, "last_used_at": None, "created_at": now()},
        }
        store.add("API key", key)
        shown = {**key, "private_key": f"sk_{uuid.uuid4().hex}{uuid.uuid4().hex}"}
        warning = "Store the private key now: it is not shown again"
        return jsonify(error=False, message="API key created", api_key=shown, warning=warning), 201

    @app.get("/api-keys")
    def list_api_keys() -> Response:
        keys, about = store.page("API key")
        return jsonify(error=False, api_keys=keys, pagination=about)

    @app.post("/v2/customers")
    def create_customer() -> tuple[Response, int]:
        customer = new_customer(body_of(CUSTOMER, ("name", "email")))
        try:
            store.add("Customer", customer, customer["email"])
        except sqlite3.IntegrityError:
            raise Refused(409, "A customer with this e-mail already exists") from None
        return jsonify(error=False, message="Customer created", customer=customer), 201

    @app.get("/v2/customers")
    def list_customers() -> Response:
        customers, about = store.page("Customer")
        return jsonify(error=False, customers=customers, pagination=about)

    @app.get("/v2/customers/<uuid:key>")
    def get_customer(key: uuid.UUID) -> Response:
        return jsonify(error=False, customer=store.get("Customer", str(key)))

    @app.put("/v2/customers/<uuid:key>")
    def update_customer(key: uuid.UUID) -> Response:
        customer = {**store.get("Customer", str(key)), **body_of(CUSTOMER), "updatedAt": now()}
        try:
            store.put("Customer", customer, customer["email"])
        except sqlite3.IntegrityError:
            raise Refused(409, "A customer with this e-mail already exists") from None
        return jsonify(error=False, message="Customer updated", customer=customer)

    @app.get("/v2/projects")
    def list_projects() -> Response:
        projects, about = store.page("Project")
        return jsonify(error=False, data={"projects": projects, "pagination": about})

    @app.post("/v2/projects")
    def create_project() -> tuple[Response, int]:
        sent = body_of(PROJECT, ("name",))
        project = new_project({name: value for name, value in sent.items() if name in PROJECT_SHOWN})
        store.add("Project", project)
        return jsonify(error=False, data={"project": project}, message="Project created"), 201

    @app.put("/v2/projects/<uuid:key>")
    def update_project(key: uuid.UUID) -> Response:
        project = store.get("Project", str(key))
        sent = body_of(PROJECT)
        project |= {name: value for name, value in sent.items() if name in PROJECT_SHOWN}
        store.put("Project", project)
        return jsonify(error=False, data={"project": project}, message="Project updated")

    @app.post("/v2/orders/pix")
    def create_pix_order() -> tuple[Response, int]:
        # Plans live in another service: their ids are taken as they come.
        sent = body_of(PIX_ORDER, ("projectId", "planId", "totalAmount", "items", "customer"))
        project = store.get("Project", sent["projectId"])
        project["orders_count"] += 1
        store.put("Project", project)
        moment, copy = now(), f"00020126BR.GOV.BCB.PIX{uuid.uuid4().hex}"
        order = {
            "id": str(uuid.uuid4()),
            "code": f"OR-{uuid.uuid4().hex[:10].upper()}",
            "status": "pending",
            "paymentMethod": "pix",
            **{name: sent[name] for name in ("totalAmount", "customer", "items")},
            "last_transaction": {"status": "waiting_payment", "qr_code": copy},
            "createdAt": moment,
            "updatedAt": moment,
        }
        store.add("Order", order)
        return jsonify(order), 201

    @app.get("/v2/orders/<uuid:key>")
    def get_order(key: uuid.UUID) -> Response:
        return jsonify(store.get("Order", str(key)))

    return app


def server(port: int) -> BaseWSGIServer:
    """The backend on 127.0.0.1, not yet serving. Port 0 takes any free one: see its `server_port`."""
    return make_server("127.0.0.1", port, application(), threaded=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a backend that somebody else wrote.")
    parser.add_argument("--port", type=int, required=True)
    listening = server(parser.parse_args().port)
    print(f"http://127.0.0.1:{listening.server_port} (token: {TOKEN})", flush=True)
    listening.serve_forever()


if __name__ == "__main__":
    main()
