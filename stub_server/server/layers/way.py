"""What layers hand on, each under its name in the ASGI scope, and how the journal's trace of a request begins.

| Name | What | Who makes it |
|---|---|---|
| `REQUEST` | the `Request` as it arrived | `RequestContext` |
| `TARGET` | the `Target`: sandbox and path | `SandboxSelection` |
| `TRACE` | the `Trace` that the journal will have | `SandboxSelection` |
| `TOKEN` | the `Caller` of a token that chose the sandbox | `SandboxSelection` |
| `HOLDER` | the `Holder`, if another server has the sandbox | `SandboxSelection` |
| `LIMITS` | headers about the rate limit | `RateLimit` |
| `ENDPOINT`, `VALUES` | the `Endpoint` of the operation, and the values of the path | `Routing` |
| `FAULTS` | the `Injection`, if something may happen to it | `FaultInjection` |
| `CALLER` | the `Caller` | `Security` |
| `ARGUMENTS` | the `Arguments` of the handler | `Validation` |
"""

from collections.abc import Mapping
from typing import NamedTuple

from starlette.types import Scope

from ...core.text import nearest, warning_of
from ...engine.journal import Trace
from ..request import MOST_WARNINGS, Request
from ..target import Target

REQUEST, TARGET, TRACE = "stub_server.request", "stub_server.target", "stub_server.trace"
TOKEN, HOLDER, LIMITS = "stub_server.token", "stub_server.holder", "stub_server.limits"
ENDPOINT, VALUES, FAULTS = "stub_server.endpoint", "stub_server.values", "stub_server.engine"
CALLER, ARGUMENTS = "stub_server.caller", "stub_server.arguments"
INTERNAL = "stub_server.internal"  # in the scope of a request that this server itself sends to show a page
PERMITTED = "stub_server.permitted"
"""In the same: pairs of method and path of the control surface that the page may request without a key."""
_OURS = b"x-sandbox"
_ENDINGS = ("", "-admin-key", "-as-of", "-client-ip", "-control-key", "-delay", "-simulate")
_KNOWN = frozenset(_OURS + ending.encode() for ending in _ENDINGS)


class Holder(NamedTuple):
    """Another server of the store, by its address, and the name of the sandbox that it has."""

    address: str
    sandbox: str


def begin(scope: Scope, target: Target) -> Trace:
    """Begin the trace of a request in its sandbox, and hand both on."""
    request: Request = scope[REQUEST]
    sandbox, names = target.sandbox, b"\n".join(request.headers)
    scope[TARGET] = target
    trace = scope[TRACE] = Trace(
        sandbox.ids.request(),
        sandbox.clock.now,
        request.method,
        target.path or "/",
        request.query,
        sandbox=sandbox.name,
        before=sandbox.log.number,
        warnings=_without_effect(request.headers) if _OURS in names or b"if-match" in names else (),
        began=request.began,
        received=request.received_at,
    )
    return trace


def _without_effect(headers: Mapping[bytes, bytes]) -> tuple[str, ...]:
    """Warnings of headers that have no effect: X-Sandbox headers that this server does not know may be misspelt."""
    found = ["if_match_ignored"] if b"if-match" in headers else []
    unknown = [name for name in headers if name.startswith(_OURS) and name not in _KNOWN]
    for name in unknown[:MOST_WARNINGS]:
        ending = name[len(_OURS) :].decode("latin-1")
        guess = nearest(ending, _ENDINGS)
        found.append(warning_of("unknown_sandbox_header", f"x-sandbox{ending}", guess and f"x-sandbox{guess}"))
    return tuple(found)
