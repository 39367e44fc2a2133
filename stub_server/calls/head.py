"""The headers of a request, and what follows from them alone."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Head:
    """It is worked out once and shared by the requests that send the same headers: nothing may change it.

    `by_name` has the names in lower case. `sandbox` is the one that X-Sandbox names. A `repeated` header came more than
    once and must not. `has_host` is False where there is no Host, and `coding` is a transfer coding that is not known.
    `warnings` are those that follow from the headers alone. `origin` is the page that sent the request, as its browser
    says, and `is_foreign` whether that page is of another machine. `is_ordinary` is False where something about the
    host, a webhook's delivery, a coding or a repeated header is to be looked at, `is_special` True where a header asks
    for a failure, a delay or the past, `is_coded` where the body is compressed.

    `packed` is how the journal keeps the headers: names, then values, without credentials. Where it `is_suspect` a
    value may hold a secret all the same.
    """

    by_name: Mapping[bytes, bytes]
    sandbox: str | None = None
    repeated: str | None = None
    has_host: bool = True
    coding: bytes = b""
    warnings: tuple[str, ...] = ()
    origin: bytes | None = None
    is_foreign: bool = False
    is_ordinary: bool = True
    is_special: bool = False
    is_coded: bool = False
    is_suspect: bool = False
    packed: bytes = b""
