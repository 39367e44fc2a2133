"""Values of a body's own where the API wants unique ones, and webhook addresses that lead nowhere.

The coverage phase tries one thing after another in otherwise equal bodies: unchanged, all but the first are 409.
Only what the contract accepts is replaced; a value out of bounds stays as it is.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from zlib import crc32

from stub_server.domain.documents import cnpj_with_check_digits, cpf_with_check_digits, is_document

# A port that nothing listens on: a delivery is refused at once, and no request ever leaves this machine.
NOWHERE = "127.0.0.1:9"

_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}").fullmatch


def rekey(headers: Any, body: Any) -> None:
    """Give each body an Idempotency-Key of its own: one key for two bodies is refused, as it must be."""
    key = (headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and _IDEMPOTENCY_KEY(key):
        digest = f"{_number(body):08x}"
        headers["Idempotency-Key"] = (digest + key)[: max(len(digest), len(key))]


def unique(operation: str, body: Any) -> Any:
    """A body that differs from its like in the member that has to be unique."""
    if operation in ("createOrder", "createPixOrder") and isinstance(body, dict):
        return body | {"customer": unique("createCustomer", body.get("customer"))} if "customer" in body else body
    member, renew = _UNIQUE.get(operation, ("", _same))
    if not isinstance(body, dict) or not isinstance(body.get(member), str):
        return body
    if member == "document":
        body = _of_one_kind(body)
    return body | {member: renew(body[member], body)}


def _of_one_kind(customer: dict[str, Any]) -> dict[str, Any]:
    """A customer whose `document_type` does not contradict its `type`: stored, the pair is a conflict."""
    pair = customer.get("type"), customer.get("document_type")
    if pair in (("individual", "cnpj"), ("company", "cpf"), ("company", "passport")):
        return customer | {"document_type": "cpf" if pair[0] == "individual" else "cnpj"}
    return customer


def harmless(operation: str, body: Any) -> Any:
    """A webhook's body with an address on a host that never answers: a made-up address may be somebody's."""
    if operation not in ("createWebhook", "updateWebhook") or not isinstance(body, dict):
        return body
    url = body.get("url")
    return body | {"url": _nowhere(url)} if isinstance(url, str) and _nowhere(url) != url else body


def _number(body: Any) -> int:
    return crc32(repr(body).encode("utf-8", "replace"))


def _same(value: str, body: Any) -> str:
    return value


def _name(longest: int) -> Callable[[str, Any], str]:
    def renew(name: str, body: Any) -> str:
        # As long as it was: lengths at the limits stay there. One letter out of twenty thousand is enough.
        return chr(0x4E00 + _number(body) % 20_000) + name[1:] if 0 < len(name) <= longest else name

    return renew


def _document(document: str, body: Any) -> str:
    if not is_document(document):
        return document
    if body.get("document_type") == "passport":
        return f"P{_number(body):09d}X"
    if body.get("document_type") == "cnpj" or body.get("type") == "company":
        return cnpj_with_check_digits(f"{_number(body) % 10**8:08d}0001")
    return cpf_with_check_digits(f"{10**8 + _number(body) % (10**8 - 1):09d}")


def _address(url: str, body: Any) -> str:
    bare = _nowhere(url)
    return bare if bare == url or "?" in bare else f"{bare}?{_number(body)}"[:2048]


def _nowhere(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    plain = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc and url.isprintable()
    if not plain or len(url) > 2048:
        return url
    return urlunsplit(parts._replace(netloc=NOWHERE))[:2048]


_UNIQUE: Mapping[str, tuple[str, Callable[[str, Any], str]]] = {
    "createCustomer": ("document", _document),
    "updateCustomer": ("document", _document),
    "createProject": ("name", _name(120)),
    "updateProject": ("name", _name(120)),
    "createPlan": ("name", _name(120)),
    "updatePlan": ("name", _name(120)),
    "createProduct": ("sku", _name(64)),
    "updateProduct": ("sku", _name(64)),
    "createWebhook": ("url", _address),
    "updateWebhook": ("url", _address),
}
