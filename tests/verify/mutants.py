"""Mutants of the sandbox that follow from no line of the contract, each of which departs
in one way.
"""

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import yaml

from stub_server.tools.verify.exchange import Answer, Request

from ..support.contract import document
from .backend import (
    Act,
    Ask,
    as_owner,
    is_for,
    json_of,
    rewritten,
    with_header,
    with_json,
)

_UNSEEN = Path(__file__).with_name("unseen.yaml")
_UNKNOWN = "ffffffff-ffff-4fff-8fff-ffffffffffff"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_serial = count(1)


class Mutant(NamedTuple):
    """A way to depart. It must be found as one of `kinds`, for some of `operations` and no other.

    Without operations it is everywhere. `make` gives an act with a memory of its own.
    """

    name: str
    kinds: frozenset[str]
    operations: frozenset[str]
    make: Callable[[], Act]


MUTANTS: dict[str, Mutant] = {}


def mutant(kinds: str, *operations: str) -> Callable[[Act], Act]:
    """Adds a mutant that is called as its function is."""

    def add(act: Act) -> Act:
        name = act.__name__.replace("_", "-")
        MUTANTS[name] = Mutant(name, frozenset(kinds.split()), frozenset(operations), lambda: act)
        return act

    return add


def every() -> dict[str, Mutant]:
    """These, and those that follow from the contract."""
    from .generated import generated

    return MUTANTS | generated(document())


def unseen() -> dict[str, str]:
    """Why a run cannot see some of those that follow from the contract, by name."""
    in_words = "|".join(_rules_in_words())
    rules = [
        (re.compile(f"^renames .* ({in_words})$"), "The contract has its rule in words alone.")
    ]
    for each in yaml.safe_load(_UNSEEN.read_text()):
        rules.append((re.compile(each["pattern"]), each["reason"]))
    return {name: reason for name in every() for pattern, reason in rules if pattern.search(name)}


def _rules_in_words() -> Iterator[str]:
    """Codes of rules of which neither a move, a unique key, a status nor an Idempotency-Key says
    which request is refused.
    """
    known: set[str | None] = {"invalid_state_transition", "idempotency_key_reused"}
    for keys in document().unique.values():
        known |= {key.code for key in keys}
    for code, rule in document().schema("ErrorCode")["x-rules"].items():
        of = rule.get("of", {"field": ""})
        is_of_status = of["field"] == "status" and " " not in "".join(of["needed"])
        if rule["kind"] == "rule" and code not in known and not is_of_status:
            yield code


def act_of(name: str) -> Act:
    """What a mutant does."""
    return every()[name].make()


def _code(answer: Answer) -> str:
    return str(json_of(answer).get("code", ""))


@mutant("auth")
async def auth_ignored(request: Request, ask: Ask) -> Answer:
    """Whoever has no valid credential is the merchant."""
    answer = await ask(request)
    return await ask(await as_owner(request, ask)) if answer.status == 401 else answer


@mutant("reference", "createProduct")
async def foreign_key_not_enforced(request: Request, ask: Ask) -> Answer:
    """A new product may be unlocked by plans that do not exist."""
    answer = await ask(request)
    is_refused = _code(answer) == "reference_not_found"
    if not is_refused or not is_for(request, "createProduct"):
        return answer
    named = [detail["field"] for detail in json_of(answer)["details"]]
    if not named[0].startswith("planIds"):
        return answer
    return await ask(with_json(request, json_of(request) | {"planIds": []}))


@mutant("idempotency")
async def idempotency_key_ignored(request: Request, ask: Ask) -> Answer:
    """Every valid Idempotency-Key is a new one."""
    key = next((value for name, value in request.headers if name == "idempotency-key"), "")
    return await ask(
        with_header(request, "idempotency-key", uuid4().hex) if _KEY.fullmatch(key) else request
    )


async def _shown(
    request: Request, ask: Ask, folder: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Answer:
    """A success below a folder, in which records are changed."""
    answer = await ask(request)
    is_so = request.path.startswith(folder) and answer.status < 300
    return rewritten(answer, change) if is_so else answer


@mutant("schema", "createCustomer", "getCustomer", "listCustomers", "updateCustomer")
async def member_renamed(request: Request, ask: Ask) -> Answer:
    """A customer has documentType in place of document_type."""

    def change(it: dict[str, Any]) -> dict[str, Any]:
        return {
            "documentType" if name == "document_type" else name: value for name, value in it.items()
        }

    return await _shown(request, ask, "/v2/customers", change)


@mutant("contradiction value", "createCustomer", "getCustomer", "listCustomers", "updateCustomer")
async def change_not_dated(request: Request, ask: Ask) -> Answer:
    """The `updatedAt` of a customer stays what it was when the customer was made."""

    def change(it: dict[str, Any]) -> dict[str, Any]:
        return it | {"updatedAt": it["createdAt"]} if "updatedAt" in it else it

    return await _shown(request, ask, "/v2/customers", change)


@mutant("wrong-status undocumented-status", "createWebhook")
async def other_success_status(request: Request, ask: Ask) -> Answer:
    """A new webhook is answered with 200."""
    answer = await ask(request)
    if is_for(request, "createWebhook") and answer.status == 201:
        return answer._replace(status=200)
    return answer


@mutant("missing-header", "createCustomer")
async def header_missing(request: Request, ask: Ask) -> Answer:
    """A new customer has no Location."""
    answer = await ask(request)
    if is_for(request, "createCustomer"):
        return answer._replace(
            headers=tuple(pair for pair in answer.headers if pair[0] != "location")
        )
    return answer


@mutant("missing-operation", "getProjectStats")
async def operation_missing(request: Request, ask: Ask) -> Answer:
    """Projects have no statistics."""
    is_so = is_for(request, "getProjectStats")
    return await ask(request._replace(path="/v2/nowhere") if is_so else request)
