"""What schemathesis must be told about this API: two string formats, a fresh world per scenario, no outbound requests.

A schemathesis extension: name it as `hooks` in `schemathesis.toml`, or as `SCHEMATHESIS_HOOKS` in the environment.
"""

import re
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
import schemathesis
from hypothesis import strategies as st

from stub_server.domain.documents import cnpj_with_check_digits, cpf_with_check_digits

# A port that nothing listens on: a delivery is refused at once, and no request ever leaves this machine.
NOWHERE = "127.0.0.1:9"

_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}").fullmatch
_WEBHOOK_WRITERS = frozenset(("createWebhook", "updateWebhook"))

_DIGITS = "0123456789"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _masked(cpf: str) -> str:
    return f"{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}"


def _no_number_of_a_payer(text: str) -> bool:
    return not (len(text) == 11 and text.isdigit()) and len(text) != 14


def documents() -> st.SearchStrategy[str]:
    """The format `document`: CPF with and without punctuation, CNPJ with digits and with letters, passport."""
    stems = st.text(_DIGITS, min_size=9, max_size=9).filter(lambda stem: len(set(stem)) > 1)
    cpfs = stems.map(cpf_with_check_digits)
    roots = st.text(_DIGITS + _LETTERS, min_size=8, max_size=8).filter(lambda root: len(set(root)) > 1)
    cnpjs = roots.map(lambda root: cnpj_with_check_digits(root + "0001"))
    passports = st.text(_DIGITS + _LETTERS, min_size=5, max_size=20).filter(_no_number_of_a_payer)
    return st.one_of(cpfs, cpfs.map(_masked), cnpjs, passports)


def networks() -> st.SearchStrategy[str]:
    """The format `ip-network`: addresses and networks of both families, host bits included."""
    v4, v6 = st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str)
    v4_networks = st.tuples(v4, st.integers(0, IPv4Network("0.0.0.0/0").max_prefixlen))
    v6_networks = st.tuples(v6, st.integers(0, IPv6Network("::/0").max_prefixlen))
    return st.one_of(v4, v6, v4_networks.map(_slashed), v6_networks.map(_slashed))


def _slashed(network: tuple[str, int]) -> str:
    return f"{network[0]}/{network[1]}"


schemathesis.openapi.format("document", documents())
schemathesis.openapi.format("ip-network", networks())


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Send what would be accepted to where it can be accepted; what is to be refused stays as it is."""
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and _IDEMPOTENCY_KEY(key):
        case.headers["Idempotency-Key"] = key_of(key, case.body)
    body = case.body
    if case.operation.definition.raw.get("operationId") in _WEBHOOK_WRITERS and isinstance(body, dict):
        url = body.get("url")
        if isinstance(url, str):
            case.body = body | {"url": nowhere(url)}


def key_of(key: str, body: Any) -> str:
    """A key of the body's own, no shorter than the given one.

    Schemathesis sends one key with body after body, and the server rightly refuses all but the first with 409.
    """
    digest = sha256(repr(body).encode("utf-8", "replace")).hexdigest()[:24]
    return (digest + key)[: max(len(digest), len(key))]


def nowhere(url: str) -> str:
    """The same address on a host that never answers: a made-up address may be somebody's.

    What is no plain http address stays as it is, to be refused.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    plain = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc and url.isprintable()
    return urlunsplit(parts._replace(netloc=NOWHERE)) if plain else url


@schemathesis.hook
def after_load_schema(context: Any, schema: Any) -> None:
    """Against the sandbox, begin every scenario of the stateful phase in a fresh world.

    Hypothesis repeats the beginnings of scenarios and stops where the same request is answered differently, which a
    world that remembers does. A backend without control surface is left as it is.
    """
    build = schema.build_state_machine

    def build_with_reset(**options: Any) -> Any:
        machine = build(**options)
        control = schema.get_base_url().rstrip("/") + "/_sandbox"
        if requests.get(f"{control}/health", timeout=10).status_code != requests.codes.ok:
            return machine

        class Fresh(machine):  # type: ignore[misc, valid-type]
            def __init__(self) -> None:
                requests.post(f"{control}/reset", timeout=30).raise_for_status()
                super().__init__()

        return Fresh

    schema.build_state_machine = build_with_reset
