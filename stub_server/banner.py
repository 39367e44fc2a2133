"""The banner that the command prints when the server is ready, with one call that works when pasted."""

from rich.console import Console
from rich.text import Text

from .calls.call import CONTROL
from .calls.server import Server
from .http.edge import Edge
from .kernel.clock import iso
from .settings import Settings


def show(app: Edge, settings: Settings, console: Console) -> None:
    """Print the banner. No line is wrapped: a command broken by the terminal's width would not paste."""
    for line in lines(app, settings):
        console.print(line, soft_wrap=True, highlight=False)


def lines(app: Edge, settings: Settings) -> list[Text]:
    """The banner, line by line."""
    server: Server = app.server
    sandbox = app.sandboxes.default
    document, url = server.document, settings.url
    key = sandbox.credentials["private_key"]
    records = sum(sandbox.counts().values())
    clock = "clock running" if settings.now is None else f"clock frozen at {iso(settings.now)}"
    facts = [
        ("address", url),
        ("contract", f"{len(document.operations)} operations, {len(document.events)} events · {url}/openapi.json"),
        ("world", f"scenario {sandbox.scenario}, seed {sandbox.seed}, {records} records, {clock}"),
        ("API key", key),
        ("token", f"{'stub-server token, or ' if settings.loopback else ''}{url}{CONTROL}/credentials"),
        (
            "worlds",
            f"{url}/s/NAME/… is a sandbox of its own, made "
            + ("when it is first named" if settings.loopback else f"by POST {url}{CONTROL}/sandboxes"),
        ),
    ]
    if settings.admin_key:
        facts.append(("closed", f"{CONTROL} asks for X-Sandbox-Admin-Key"))
    return [
        Text(f"Membership Commerce sandbox {server.version}", style="bold"),
        *(Text.assemble((f"  {name:<12}", "dim"), value) for name, value in facts),
        *(Text.assemble(("  warning     ", "bold yellow"), text) for text in warnings(settings)),
        Text(),
        Text(f"curl -s '{url}/v2/customers?limit=2' -H 'Authorization: Bearer {key}'"),
        Text(),
    ]


def warnings(settings: Settings) -> list[str]:
    """Warnings for a server that other machines can reach."""
    if settings.loopback:
        return []
    found = []
    if settings.lenient_auth:
        found.append(
            f"--auth lenient on {settings.host}: everybody who reaches this address can read and change every record, "
            "with any token"
        )
    if not settings.admin_key:
        found.append(
            f"no --admin-key on {settings.host}: {CONTROL} refuses everything but health and QR images, so no clock, "
            "reset, payment or new sandbox"
        )
    return found
