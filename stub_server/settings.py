"""The server's settings, each with a flag and an environment variable `STUB_<FLAG>`."""

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .kernel.text import is_local


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. `now` is ms and freezes the clock; `secret` replaces the one that the seed gives on loopback.

    `rate_limit` is (requests of a caller, seconds). `store` is the directory in which sandboxes outlive the process,
    or the address of a PostgreSQL database; `resident` is how many of them are in memory at most. `restore` is a file
    that the default sandbox is of. With `drop_unfit` records of both that do not fit the contract are left out.
    """

    host: str = "127.0.0.1"
    port: int = 4600
    base_url: str | None = None
    seed: int = 42
    scenario: str = "default"
    now: int | None = None
    overlays: tuple[Path, ...] = ()
    lenient_auth: bool = False
    ignore_unknown: bool = False
    reject_unknown_query: bool = False
    check_digits: bool = True
    autopay: int | None = None
    webhook_schedule: str = "standard"
    allow_private_webhooks: bool = False
    history: int = 10_000
    journal: int = 2_000
    store: Path | str | None = None
    salvage: bool = False
    resident: int = 1_000
    sync: str = "interval"
    restore: Path | None = None
    drop_unfit: bool = False
    log: str = "requests"
    cors_origins: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    max_connections: int = 512
    rate_limit: tuple[int, int] | None = None
    admin_key: str | None = field(default=None, repr=False)
    secret: bytes | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The base URL that responses show."""
        if self.base_url:
            return self.base_url.rstrip("/")
        # No client can call a wildcard.
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not bound
        host = f"[{reachable}]" if ":" in reachable else reachable
        return f"http://{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether the server is for this machine alone, by its bind and by the address that it shows.

        The control surface is then open. A public `base_url` on a local bind is that of a proxy, which lets others in.
        """
        shown = urlsplit(self.base_url).hostname if self.base_url else None
        return is_local(self.host) and (shown is None or is_local(shown))

    @property
    def worlds_are_made(self) -> str:
        """How a sandbox of a new name comes to be."""
        if self.loopback:
            return "by the first request to it that succeeds"
        return f"by POST {self.url}/_sandbox/sandboxes"

    @property
    def behaviour(self) -> dict[str, Any]:
        """What of the settings shapes answers, without secrets: a recording tells it."""
        return {
            "base_url": self.url,
            "host": self.host,
            "seed": self.seed,
            "scenario": self.scenario,
            "now": self.now,
            "lenient_auth": self.lenient_auth,
            "ignore_unknown": self.ignore_unknown,
            "reject_unknown_query": self.reject_unknown_query,
            "check_digits": self.check_digits,
            "autopay": self.autopay,
            "webhook_schedule": self.webhook_schedule,
            "history": self.history,
            "rate_limit": self.rate_limit,
            "has_admin_key": bool(self.admin_key),
            "has_secret": self.secret is not None or not self.loopback,
            "has_overlays": bool(self.overlays),
        }

    def signing_secret(self, random_bytes: bytes) -> bytes:
        """The secret of tokens and keys: from `secret`, else from the seed on loopback, else from `random_bytes`."""
        if self.secret is not None:
            return sha256(self.secret).digest()
        if self.loopback:
            return sha256(f"membership-sandbox/{self.seed}".encode()).digest()
        return sha256(random_bytes).digest()
