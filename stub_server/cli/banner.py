"""The banner that the command prints when the server is ready, with one call that works
when pasted.
"""

from urllib.parse import urlsplit

import click

from ..core.clock import iso
from ..core.text import is_local
from ..data.keys import own_pair
from ..domain.api_keys import PRIVATE
from ..engine.sandbox import DEFAULT
from ..engine.step import SandboxSettings
from ..server.layers.routing import Application
from ..server.request import CONTROL
from ..settings import Settings, flags
from ..version import __version__
from .options import LOCAL, command


def show(app: Application, settings: Settings) -> None:
    """Print the banner.

    No line is wrapped: a command broken by the terminal's width would not paste.
    """
    _, key = own_pair(app.sandboxes.default)
    click.secho(f"Membership Commerce sandbox {__version__}", bold=True)
    for name, value in _facts(app, settings, key).items():
        click.echo(click.style(f"  {name:<12}", dim=True) + value)
    for warning in (*warnings(settings), *_surprises(settings, app), *_differing(app)):
        click.echo(click.style("  warning     ", bold=True, fg="yellow") + warning)
    click.echo(f"\ncurl -s {_first_call(settings, key)}\n")


def _facts(app: Application, settings: Settings, key: str) -> dict[str, str]:
    """The lines of the banner by name."""
    document, url = app.server.document, settings.url
    facts = {
        "address": url,
        "contract": f"{len(document.operations)} operations, {len(document.events)} events ·"
        f" {url}/openapi.json",
        "data": _data(app),
        "API key": f"{PRIVATE}…" if settings.is_public else key,
        "token": f"{command()} token, or {url}{CONTROL}/credentials",
        "server": _kind(settings),
        "sandboxes": f"{url}/s/NAME/… is a separate sandbox, created {settings.created_by}",
    }
    if url != LOCAL:
        facts["shell"] = f"{command()} VERB --server {url}, or first: export STUB_SERVER={url}"
    if settings.admin_key:
        facts["closed"] = f"{CONTROL} requires X-Sandbox-Admin-Key"
    return facts


def _first_call(settings: Settings, key: str) -> str:
    """The arguments of a first curl call.

    A public server prints no key, since logs keep what a container prints.
    """
    if not settings.is_public:
        return f"'{settings.url}/v2/customers?limit=2' -H 'Authorization: Bearer {key}'"
    if settings.admin_key:
        return f"'{settings.url}{CONTROL}/credentials' -H \"X-Sandbox-Admin-Key: $STUB_ADMIN_KEY\""
    return f"'{settings.url}{CONTROL}/health'"


def _kind(settings: Settings) -> str:
    """Whether the server is public or plain, and why."""
    if settings.is_public:
        return f"public, because of {settings.public_because}: keys and tokens are secret"
    origin = "the seed" if settings.secret is None else "--jwt-secret"
    return f"plain, for this machine alone: keys and tokens follow from {origin}"


def _data(app: Application) -> str:
    """What the default sandbox has, be it in another server of the store."""
    sandbox = app.sandboxes.default
    begun = f"scenario {sandbox.origin.scenario}, seed {sandbox.origin.seed}"
    if app.sandboxes.persistence.default_elsewhere is not None:
        return f"{begun}, in another server of the store"
    clock = "frozen" if sandbox.clock.frozen else "running"
    return (
        f"{begun}, {sum(sandbox.store.counts().values())} records, clock {clock} at"
        f" {iso(sandbox.clock.now)}"
    )


def _surprises(settings: Settings, app: Application) -> list[str]:
    """Flags that the stored sandbox does not follow."""
    found, sandboxes, sandbox = [], app.sandboxes, app.sandboxes.default
    seed, usual = app.server.settings.seed, Settings()
    given = _beginning(settings.seed, settings.scenario, settings.now, sandbox.rules.settings)
    held = _beginning(seed, sandbox.origin.scenario, sandbox.clock.now, sandbox.settings)
    default = _beginning(usual.seed, usual.scenario, usual.now, SandboxSettings())
    if sandboxes.persistence.default_elsewhere is not None:  # the other server's flags are compared
        held = given | {"--seed": held["--seed"]}
    for flag, value in given.items():
        if value not in (held[flag], default[flag]):
            found.append(
                f"{flag} {value} has no effect on the sandbox {DEFAULT}, which has {flag}"
                f" {held[flag]}"
            )
    return found


def _beginning(
    seed: int, scenario: str, now: int | None, settings: SandboxSettings
) -> dict[str, str]:
    """What a sandbox begins with, as flags."""
    begun = flags({"seed": seed, "scenario": scenario, "now": None, **settings._asdict()})
    if now is not None:
        begun["--now"] = iso(now)
    return begun


def _differing(app: Application) -> list[str]:
    """The settings in which this server differs from the one of its store that has run longest."""
    persistence = app.sandboxes.persistence
    if not persistence.is_shared or not persistence.store.others:
        return []
    address, theirs = persistence.store.others[0]
    found = []
    for flag, here in app.server.settings.shared.items():
        there = theirs.get(flag, "")
        if here != there:
            found.append(
                f"{flag} is {here or 'not set'} here and {there or 'not set'} at {address}. "
                "Give the servers of a store the same settings"
            )
    return found


def warnings(settings: Settings) -> list[str]:
    """Warnings for a server that other machines can reach."""
    if not settings.for_others:
        return []
    found, where = [], settings.public_because.partition(" ")[2]
    if settings.base_url:
        where = settings.url
    if settings.auth == "lenient":
        found.append(
            f"--auth lenient on {where}: everybody who can call this address can read and change"
            " every record, with any token"
        )
    if settings.allow_private_webhooks:
        found.append(
            f"--allow-private-webhooks on {where}: everybody with a credential can make this server"
            " call addresses of this machine and of its private networks"
        )
    is_elsewhere = settings.base_url is not None and not is_local(
        urlsplit(settings.base_url).hostname
    )
    if is_elsewhere and not settings.forwarded_allow_ips:
        found.append(
            f"--base-url {settings.base_url} without --forwarded-allow-ips: behind a proxy,"
            " allowed_ips, --rate-limit and the limit of wrong keys see its address in place of"
            " the client's"
        )
    if not settings.admin_key:
        found.append(
            f"no --admin-key on {where}: {CONTROL} refuses everything but health and QR images: no"
            " clock, reset, payment or new sandbox"
        )
    return found
