"""The kinds of values that verbs take. Each function raises BadParameter."""

import re
from ipaddress import ip_network
from pathlib import Path

import click

from ..core.clock import EARLIEST_START, LATEST_START, parse_iso
from ..core.record import Body
from .options import EXISTING, UserPath, json_argument

_CHANGED = frozenset(' "\\%?')  # what addresses, forms or JSON write in another way, or end at


def instant(text: str) -> int:
    """An RFC 3339 date-time with an offset, as milliseconds since 1970."""
    try:
        now = parse_iso(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a date-time with an offset, such as 2026-11-20T14:32:05Z."
        ) from None
    if not EARLIEST_START <= now < LATEST_START:
        raise click.BadParameter(f"{text} is out of range: a sandbox begins between 1970 and 8999.")
    return now


def rate(text: str) -> tuple[int, int]:
    """A rate limit such as 100/60s, as (requests, seconds)."""
    found = re.fullmatch(r"([1-9][0-9]{0,6})/([1-9][0-9]{0,5})s", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a rate such as 100/60s.")
    return int(found[1]), int(found[2])


def authorities(text: str) -> Path:
    """A file that has certificates."""
    import ssl

    file: Path = EXISTING.convert(text, None, None)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except OSError:
        raise click.BadParameter(f"{file} has no certificate in PEM.") from None
    return file


def secret(text: str) -> str:
    """A key of the server, which is looked for, and redacted, wherever it is sent."""
    if not text.isascii() or not text.isprintable() or not _CHANGED.isdisjoint(text):
        raise click.BadParameter('use printable ASCII characters other than space, ", \\, % and ?.')
    return text


_UNITS = {"mo": "months", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"([0-9]{1,9})(mo|[dhms])")
_SPAN = re.compile(f"({_PART.pattern})+")


def span(text: str) -> Body:
    """How far the clock is to go, as the control surface takes it: a span, or else an instant."""
    if _SPAN.fullmatch(text):
        return {_UNITS[unit]: int(number) for number, unit in _PART.findall(text)}
    if not text[:4].isdigit():
        raise click.BadParameter(
            f"{text} is not a span, such as 30d, 4mo, 12h, 15m, 10s or 1d12h, nor a date-time."
        )
    return {"to": text}


def clock(text: str) -> Body:
    """What the clock is set to: a later instant, or a state."""
    if text in ("frozen", "running"):
        return {"frozen": text == "frozen"}
    return {"to": text}


def fault_rule(text: str) -> Body:
    """A fault rule: the name of a preset, or JSON."""
    if text.isidentifier():
        return {"preset": text}
    return json_argument(text, "RULE is neither the name of a preset nor a JSON object")


def host(text: str) -> str:
    """A name or address as in a Host header."""
    from ..core.text import host_name

    if host_name(text) is None:
        raise click.BadParameter(f"{text!r} is not a host such as sandbox.example.com.")
    return text


_is_address = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|.*\bpassword\s*=", re.DOTALL).match
"""Whether a --store is meant as the address of a database, or as libpq's `name=value`."""


def store(text: str) -> Path | str | None:
    """Where sandboxes are kept: a directory or a database; None for memory."""
    if text == "memory":
        return None
    if text.startswith(("postgresql://", "postgres://")):
        return text
    if _is_address(text):  # it may have a password, so nothing of it is quoted
        raise click.BadParameter(
            "a store is memory, a directory or postgresql://USER:PASSWORD@HOST/DATABASE."
        )
    folder: Path = UserPath().convert(text, None, None)
    return folder


def proxies(text: str) -> str:
    """Addresses and networks with commas between them, as uvicorn reads them."""
    for part in text.split(","):
        try:
            ip_network(part.strip())
        except ValueError:
            raise click.BadParameter(
                f"{part.strip()!r} is no address or network, such as 10.0.0.5 or 10.0.0.0/8."
            ) from None
    return text
