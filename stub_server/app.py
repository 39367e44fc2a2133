"""The composition root: makes the ASGI application from the settings.

Begin with the list in `_layers`.
"""

import asyncio
import copy
import logging
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import Any

from .console.contract_files import contract_pages
from .console.pages import Console, console_pages
from .console.sessions import Sessions
from .contract import bundle, checks
from .contract.bundle import Contracts
from .contract.document import Document
from .contract.formats import formats
from .contract.overlay import Overlays
from .contract.schema import ContractViolation, Schemas
from .contract.source import ContractError
from .core.problem import NotBuilt, Unavailable
from .core.record import Body
from .core.shipped import PACKAGE as PACKAGE
from .core.shipped import data_dir as data_dir
from .data.filling import Seeding
from .data.tables import table
from .domain.documents import is_document_here, is_document_unchecked
from .engine.sandbox import Rules
from .engine.step import SandboxSettings
from .engine.tables.specs import Layout, UniqueViolation, table_specs
from .server.explain.explaining import Explainer
from .server.explain.mending import Mender
from .server.layers.context import RequestContext
from .server.layers.endpoint import Endpoint, Shipped
from .server.layers.fault_injection import FaultInjection
from .server.layers.hops import Hops
from .server.layers.hosts import HostPolicy, hosts_of
from .server.layers.pages import Page, Pages
from .server.layers.rate_limit import RateLimit
from .server.layers.routing import Application, Routing
from .server.layers.security import Security
from .server.layers.selection import SandboxSelection
from .server.layers.validation import Validation
from .server.reply import Answer
from .server.request import CONTROL, Requests
from .server.resolver import Handlers
from .server.sandboxes.making import SandboxFactory
from .server.sandboxes.persistence import Persistence
from .server.sandboxes.sandboxes import Sandboxes
from .server.server import Closing, Guard, Server, Waiting
from .server.tokens import Tokens
from .server.work import Work
from .settings import Settings
from .storage import sqlite
from .storage.database import Database, StoreError
from .tools.mcp import missing
from .webhooks.courier import Courier
from .webhooks.sender import Sender

OPERATIONS = "stub_server.operations"
DRAIN = 2.0  # seconds in which a proxy notices that one of several servers is about to stop


def create_app(settings: Settings | None = None, loaded: Contracts | None = None) -> Application:
    """The whole server, of contracts that were `loaded` with its overlays, or of those that it
    loads.

    Raises ContractError, ScenarioError, StoreError or BadFile for unusable input.
    """
    settings = settings or Settings()
    # Connexion logs every operation that it adds.
    logging.getLogger("connexion").setLevel(logging.WARNING)
    loaded = loaded or contracts(settings.overlays)
    if settings.rate_limit is not None:
        loaded = loaded._replace(document=_with_rate_limit(loaded.document))
    store = _opened(settings)
    # else what one server signs would not be valid at another, or after a restart
    if store is not None:
        settings = replace(settings, seed=store.seed)
    try:
        return _served(settings, loaded, store)
    except BaseException as error:
        if store is None:
            raise
        store.close()
        if isinstance(error, Unavailable):
            raise StoreError(f"{store.name}: {error}") from None
        raise


def contracts(files: Sequence[Path]) -> Contracts:
    """The contracts with overlay files, which must follow the laws. Raises ContractError with every
    fault.

    Without overlays nothing is checked.
    """
    found = bundle.contracts(data_dir("openapi"), files)
    if found.shipped is not None:
        found.overlays.refuse(checks.faults(found.document, found.shipped))
    return found


def _with_rate_limit(document: Document) -> Document:
    """The contract of a server with `--rate-limit`: every operation may answer 429."""
    raw = copy.deepcopy(document.raw)
    for operation in Document(raw).operations.values():
        operation.raw["responses"]["429"] = {"$ref": "#/components/responses/RateLimited"}
    return Document(raw)


def _served(settings: Settings, loaded: Contracts, store: "Database | None") -> Application:
    """The server of these contracts and of the sandboxes in the store."""
    document, control = loaded.document, loaded.control
    known = formats(is_document_here, is_document_unchecked)
    schemas = Schemas(document.raw, known)
    random = secrets.token_bytes(32) if store is None else store.secret
    secret = settings.signing_secret(random)
    courier = _courier(settings)
    rules = _rules(settings, loaded, schemas, secret)
    factory = SandboxFactory(rules, Seeding(), settings, courier.worker, control_secret=random)
    sandboxes = _sandboxes(factory, courier, store, loaded.overlays)

    def application() -> Application:
        """The application, for parts of it that send requests to it."""
        return app

    server = Server(
        settings,
        Guard(settings.is_public, settings.admin_key.encode() if settings.admin_key else None),
        document,
        schemas,
        control,
        sandboxes,
        Tokens(secret),
        courier,
        Explainer(Mender(document, schemas), application).explain,
        Requests([*document.operations, *control.operations]),
        Waiting(settings.max_connections),
        Closing(DRAIN if sandboxes.persistence.is_shared else 0.0),
    )
    server.listeners.append(server.requests.count)
    app = Application(server, partial(_layers, application=application, random=random))
    shipped = None
    if loaded.shipped is not None:
        shipped = Shipped(loaded.shipped, Schemas(loaded.shipped.raw, known))
    endpoint = partial(
        Endpoint, shipped=shipped, ignore_unknown=settings.unknown_fields == "ignore"
    )
    _add_operations(
        app,
        "",
        document,
        Handlers(loaded.shipped or document, OPERATIONS),
        partial(endpoint, schemas=schemas),
    )
    _add_operations(
        app,
        CONTROL,
        control,
        Handlers(control, f"{OPERATIONS}.control"),
        partial(endpoint, schemas=Schemas(control.raw, known)),
    )
    return app


def _add_operations(
    app: Application,
    base: str,
    document: Document,
    handlers: Handlers,
    endpoint: Callable[..., Endpoint],
) -> None:
    """Serve the operations of a contract below a path."""
    app.add_api(
        thin(document),
        base_path=base,
        resolver=handlers,
        endpoint=partial(endpoint, document=document),
    )


def _layers(server: Server, application: Callable[[], Application], random: bytes) -> list[Any]:
    """The layers before Dispatch, in the order in which a request passes them."""
    settings = server.settings
    hosts = hosts_of(settings)
    console = _console(server, application, Sessions(random))
    pages = _pages(server, console)
    limited = list[Any]()
    if settings.rate_limit is not None:
        limited.append(partial(RateLimit, rule=settings.rate_limit))
    hops, forwarding = None, list[Any]()
    if server.sandboxes.persistence.is_shared:
        # with httpcore2, which no other server needs at its start
        from .server.layers.forwarding import Forwarding

        hops = Hops(random)
        forwarding.append(partial(Forwarding, hops=hops))
    return [
        partial(RequestContext, server=server, hops=hops),
        partial(HostPolicy, hosts=hosts),
        partial(SandboxSelection, server=server, hosts=hosts, pages=pages),
        *forwarding,
        partial(
            Pages,
            pages=pages,
            console=console.answer,
            most=console.most,
            agents=_agents(application),
        ),
        *limited,
        Routing,
        FaultInjection,
        Security,
        Validation,
    ]


def _courier(settings: Settings) -> Courier:
    local = settings.allow_private_webhooks or not settings.for_others
    cacert = settings.webhook_cacert
    return Courier(Sender(local=local, cacert=cacert), abroad=Sender(local=False, cacert=cacert))


def _sandboxes(
    factory: SandboxFactory, courier: Courier, store: "Database | None", overlays: Overlays
) -> Sandboxes:
    """The sandboxes of the server.

    Raises ContractError where an overlay requires of answers what records lack.
    """
    sandboxes = Sandboxes(factory, courier.look_soon, Persistence(store, factory))
    try:
        sandboxes.open()
    except (ContractViolation, UniqueViolation) as error:
        raise overlays.named(
            ContractError(f"the contract does not fit the records of this server: {error}")
        ) from None
    return sandboxes


def _console(server: Server, application: Callable[[], Application], sessions: Sessions) -> Console:
    def make() -> Any:
        # Flask is imported for the first page, not at every start
        from .console.application import create_console

        return create_console(
            server.document, server.control, data_dir("docs").parent, server.settings, sessions
        )

    return Console(make, application, sessions)


def _pages(server: Server, console: Console) -> dict[str, Page]:
    """What is served by its path alone: the contracts, and the pages that are the same
    for every request.
    """
    document, control = server.document, server.control
    files = contract_pages(document.raw, control.raw, CONTROL)
    return {path: file.answer for path, file in files.items()} | console_pages(console)


def _agents(application: Callable[[], Application]) -> Page:
    """What answers coding agents. It is imported for the first of them, in a thread: this takes
    half a second.
    """

    name = f"{__package__}.tools.mcp.endpoint"

    @cache
    def page() -> Page:
        found: Page = import_module(name).Endpoint(application).answer
        return found

    async def answer(work: Work) -> Answer:
        try:
            await asyncio.to_thread(import_module, name)
        except ImportError as error:
            raise NotBuilt(missing(error)) from None
        return await page()(work)

    return answer


def _rules(settings: Settings, loaded: Contracts, schemas: Schemas, secret: bytes) -> Rules:
    """What all sandboxes have in common: tables, lifecycles, events, defaults and settings."""
    document = loaded.document
    running = document.lifecycles["Subscription"].sets["running"]
    tables = table_specs(
        {name: lifecycle.sets for name, lifecycle in document.lifecycles.items()}, document.unique
    )
    base = loaded.shipped or document  # rules rely on what overlays take away
    defaults, checks = {}, {}
    for spec in tables.values():
        defaults[spec.schema] = base.defaults(spec.schema) | document.defaults(spec.schema)
        checks[spec.schema] = schemas.component(spec.schema)
    for name in ("Plan", "Product", "Webhook"):  # their create requests have more defaults
        for contract in (base, document):
            defaults[name] |= contract.defaults(f"{name}Create")
    return Rules(
        layout=Layout(tables, checks, running),
        lifecycles=document.lifecycles,
        changes=document.changes,
        payload_keys={name: event["payload_key"] for name, event in document.events.items()},
        defaults=defaults,
        banks=_banks(),
        document=document,
        schemas=schemas,
        base_url=settings.url,
        settings=SandboxSettings(
            settings.autopay,
            settings.check_digits,
            settings.webhook_schedule,
            settings.unknown_query,
        ),
        secret=secret,
    )


def _banks() -> tuple[tuple[str, str], ...]:
    """ISPB and name of the banks that payers have, each as often as its weight says."""
    banks: list[tuple[str, str]] = []
    for bank in table("banks")["banks"]:
        banks += [(bank["ispb"], bank["name"])] * bank["weight"]
    return tuple(banks)


def _opened(settings: Settings) -> "Database | None":
    """The store of the settings; None where sandboxes are in memory alone. Raises StoreError."""
    path = settings.store
    if path is None:
        return None
    if isinstance(path, str):
        try:
            from .storage import postgres
        except ImportError as error:
            install = f"{quote(sys.executable)} -m pip install 'psycopg[binary]'"
            raise StoreError(
                f"--store postgresql://… needs a driver ({error}). Install it: {install}"
            ) from None
        return postgres.PostgresStore(
            path, settings.host, settings.port, settings.seed, settings.shared
        )
    return sqlite.SqliteStore(path, settings.seed, always=settings.sync == "always")


def thin(document: Document) -> Body:
    """The contract as Connexion needs it: paths, methods, ids, tags and security.

    Our compiled validators check parameters and bodies. Connexion would parse the whole contract
    for each middleware at every start.
    """
    raw = document.raw
    paths: dict[str, Body] = {path: {} for path in raw["paths"]}
    for operation in document.operations.values():
        paths[operation.path][operation.method.lower()] = {
            "operationId": operation.id,
            "tags": [operation.tag],
            "security": [] if operation.scheme is None else [{operation.scheme: []}],
            "responses": {"default": {"description": "See the contract."}},
        }
    return {
        "openapi": raw["openapi"],
        "info": raw["info"],
        "servers": raw.get("servers", [{"url": "/"}]),
        "components": {"securitySchemes": raw["components"].get("securitySchemes", {})},
        "paths": paths,
    }
