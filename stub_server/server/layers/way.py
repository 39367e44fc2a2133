"""What layers hand on, each under its name in the ASGI scope.

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

from typing import NamedTuple

REQUEST, TARGET, TRACE = "stub_server.request", "stub_server.target", "stub_server.trace"
TOKEN, HOLDER, LIMITS = "stub_server.token", "stub_server.holder", "stub_server.limits"
ENDPOINT, VALUES, FAULTS = "stub_server.endpoint", "stub_server.values", "stub_server.faults"
CALLER, ARGUMENTS = "stub_server.caller", "stub_server.arguments"
# in the scope of a request that this server itself sends to show a page
INTERNAL = "stub_server.internal"
PERMITTED = "stub_server.permitted"
"""In the same: pairs of method and path of the control surface that the page may request
without a key.
"""


class Holder(NamedTuple):
    """Another server of the store, by its address, and the name of the sandbox that it has."""

    address: str
    sandbox: str
