"""What a secret is: headers that carry credentials, tokens of this server by their form, and what
the contract marks `x-secret`.

`x-secret: true` makes a member a secret under its name, wherever that occurs. `x-secret: headers`
marks an object that has headers of somebody else. Secrets of other systems in free text are not
known. `redaction.py` removes secrets from what is kept and shown.
"""

import re
from collections.abc import Iterator

from .document import Document
from .schema import needed
from .source import nodes

REDACTED = "[redacted]"
LEFT_OUT = REDACTED.encode()
"""Replaces a body that is left out as a whole."""
KEY_HEADERS = ("x-sandbox-admin-key", "x-sandbox-control-key")
"""The headers of the admin key and of a sandbox's own key."""
SECRET_HEADERS = (
    "authorization",
    *KEY_HEADERS,
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-auth-token",
)
FORMS = {
    "sk_sandbox_": "[0-9A-Za-z]{8,40}",  # private keys
    "sk_control_": "[0-9a-f]{8,48}",  # control keys
    "sk_pay_": "[0-9a-f]{8,32}",  # links to pages of payers
    "whsec_": "[0-9A-Za-z+/]{8,43}=?",  # signing keys
    "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJIUzI1NiJ9.": r"[\w-]++(?:\.[\w-]{0,43})?",  # JWTs
}
"""The tokens of this server: how each begins, and what follows. That may be shorter than a whole
token, because refusals repeat values cut short.
"""
TOKENS = {begins: re.compile(re.escape(begins) + rest, re.ASCII) for begins, rest in FORMS.items()}
MARK = "x-secret"


def secret_members(document: Document) -> Iterator[str]:
    """The names of the members that a contract marks, in lower case."""
    for at, node in nodes(document.raw["components"]):
        if isinstance(node, dict) and node.get(MARK) is True and at[-2] == "properties":
            yield str(at[-1]).lower()


def carriers(document: Document) -> Iterator[str]:
    """The ids of the operations whose requests or successes may have what a contract marks."""
    for operation in document.operations.values():
        schemas = operation.schemas
        components = needed(schemas, document.raw["components"])
        if any(isinstance(node, dict) and MARK in node for _, node in nodes([schemas, components])):
            yield operation.id
