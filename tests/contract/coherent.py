"""Customers whose document, its type and their own type agree: stored, a contradiction is
a conflict.
"""

from typing import Any
from zlib import crc32

from stub_server.domain.documents import infer

_TYPES = (None, "cpf", "cnpj", "passport")
_HOLDERS = (None, "individual", "company")


def coherent(body: Any) -> Any:
    """A body whose customer, most of the time, leaves out what its document contradicts."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("customer"), dict):
        customer = coherent(body["customer"])
        return body if customer is body["customer"] else body | {"customer": customer}
    document = body.get("document")
    # What is meant to be refused stays as it was made.
    is_valid = body.get("document_type") in _TYPES and body.get("type") in _HOLDERS
    if (
        not is_valid
        or not isinstance(document, str)
        or crc32(document.encode("utf-8", "replace")) % 8 == 0
    ):
        return body
    try:
        _, *types = infer(document, body.get("document_type"))
    except ValueError:
        return body
    wrong = [
        name
        for name, value in zip(("document_type", "type"), types, strict=True)
        if body.get(name) not in (None, value)
    ]
    return {name: value for name, value in body.items() if name not in wrong} if wrong else body
