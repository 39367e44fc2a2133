"""The verb `token`: a token of the seeded merchant, made without a server."""

from __future__ import annotations

from pathlib import Path

import click

from .options import Number, SandboxName, Unusable, of_overlays

EVERYTHING = "*"


@click.command(
    short_help="Print a token of the merchant.", context_settings={"auto_envvar_prefix": "STUB", "show_default": True}
)
@click.option("--seed", type=Number(0, 2**63 - 1), default=42, help="The server's seed.")
@click.option("--jwt-secret", metavar="TEXT", help="The server's secret, where it was started with one.")
@click.option("--sandbox", type=SandboxName(), default="default", help="The sandbox that the token is for.")
@click.option("--scope", "scopes", multiple=True, default=[EVERYTHING], help="What the token may do; repeatable.")
@click.option("--expires-in", type=Number(1, 31_536_000), default=2_592_000, help="Seconds that it is valid.")
@of_overlays
def token(
    seed: int,
    jwt_secret: str | None,
    sandbox: str,
    scopes: tuple[str, ...],
    expires_in: int,
    overlays: tuple[Path, ...],
) -> None:
    """Print a token of the seeded merchant, for a server on loopback or one whose --jwt-secret is given.

    Its scopes are those of the contract, with the overlays that the server was started with.
    """
    from ..calls.credentials import Tokens
    from ..kernel.clock import wall_seconds
    from ..seeding.world import MERCHANT_ID, USER_ID
    from ..settings import Settings

    _check(scopes, overlays)
    secret = Settings(seed=seed, secret=jwt_secret.encode() if jwt_secret else None).signing_secret(b"")
    tokens = Tokens(secret, wall_seconds)
    click.echo(tokens.issue(sandbox, MERCHANT_ID, USER_ID, scopes, expires_in)[0])


def _check(scopes: tuple[str, ...], overlays: tuple[Path, ...]) -> None:
    """Refuse what is no scope. Reading the contract takes a second: the token of all scopes does without."""
    if set(scopes) == {EVERYTHING}:
        return
    from ..app import data_dir
    from ..contract import bundle
    from ..contract.generated import Names
    from ..contract.source import ContractError

    try:
        known = Names(bundle.load(data_dir("openapi") / "openapi.yaml", overlays)).scope_patterns
    except ContractError as error:
        raise Unusable(str(error)) from None
    unknown = next((scope for scope in scopes if scope not in known), None)
    if unknown is not None:
        raise Unusable(f"{unknown!r} is no scope of the contract. Its scopes are {', '.join(known)}.")
