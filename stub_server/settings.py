"""The server's settings, each with a flag and an environment variable `STUB_<FLAG>`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from .core.clock import iso
from .core.record import Body
from .core.text import host_name, is_local

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
LOOPBACK = "127.0.0.1"
Overlays = tuple[Path, ...]
"""Files that change the contract, in the order in which they are applied."""
_SHAPING = (
    "host",
    "seed",
    "scenario",
    "now",
    "auth",
    "unknown_fields",
    "unknown_query",
    "check_digits",
    "autopay",
    "webhook_schedule",
    "history",
    "rate_limit",
    "allow_hosts",
)
_SHARED = (
    "scenario",
    "auth",
    "unknown_fields",
    "unknown_query",
    "check_digits",
    "autopay",
    "webhook_schedule",
    "allow_private_webhooks",
    "history",
    "base_url",
)


def flags(values: Body) -> dict[str, str]:
    """Values by the flags that set them, as they are written."""
    written = {"None": "", "True": "on", "False": "off"}
    return {
        f"--{name.replace('_', '-')}": written.get(str(value), str(value))
        for name, value in values.items()
    }


@dataclass(frozen=True)
class Settings:
    """All settings. `now` is ms and freezes the clock; the seed of a plain server gives the
    `secret` if there is none.

    With `also_ipv6` the server listens on `::1` beside its `host`.
    `rate_limit` is (requests of a caller, seconds), `forwarded_allow_ips` has the proxies that are
    believed. `store` is a directory or the address of a PostgreSQL database. The default sandbox
    begins with the file `restore`. `ready_file` exists while the server answers, which stops after
    `stop_after_idle` seconds of no request.
    """

    host: str = LOOPBACK
    also_ipv6: bool = False
    port: int = 4600
    base_url: str | None = None
    seed: int = 42
    scenario: str = "default"
    now: int | None = None
    overlays: Overlays = ()
    auth: str = "strict"
    unknown_fields: str = "reject"
    unknown_query: str = "warn"
    check_digits: bool = True
    autopay: int | None = None
    webhook_schedule: str = "standard"
    allow_private_webhooks: bool = False
    webhook_cacert: Path | None = None
    history: int = 10_000
    journal: int = 2_000
    store: Path | str | None = field(default=None, repr=False)  # an address has a password
    sync: str = "interval"
    restore: Path | None = None
    log: str = "requests"
    ready_file: Path | None = None
    stop_after_idle: int | None = None
    cors_origins: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    forwarded_allow_ips: str | None = None
    max_connections: int = 512
    max_streams: int = 64
    rate_limit: tuple[int, int] | None = None
    admin_key: str | None = field(default=None, repr=False)
    secret: bytes | None = field(default=None, repr=False)

    @cached_property
    def url(self) -> str:
        """The base URL that responses show."""
        if self.base_url:
            return self.base_url.rstrip("/")
        # no client can call a wildcard
        reachable = LOOPBACK if self.host in EVERYWHERE else self.host
        host = f"[{reachable}]" if ":" in reachable else reachable
        return f"http://{host}:{self.port}"

    @cached_property
    def loopback(self) -> bool:
        """Whether only this machine can call the server: the control surface is then open.

        A public `base_url` with a local `host` is that of a proxy, which others can call.
        """
        shown = urlsplit(self.base_url).hostname if self.base_url else None
        return is_local(self.host) and (shown is None or is_local(shown))

    @cached_property
    def public_because(self) -> str:
        """Why the server is public: the flag that lets others reach it or count on its secrets; ""
        if it is plain.

        A plain server serves this machine alone, and its secrets follow from the seed. Those of a
        public one are random or the store's.
        """
        if not is_local(self.host):
            return f"--host {self.host}"
        if not self.loopback:
            return f"--base-url {self.base_url}"
        for name in self.allow_hosts:
            if not is_local(host_name(name)):
                return f"--allow-host {name}"
        if self.admin_key:
            return "--admin-key"
        return ""

    @property
    def for_others(self) -> bool:
        """Whether other machines reach the server, if only through a proxy: that may pass on any
        Host header.
        """
        return self.public_because not in ("", "--admin-key")

    @property
    def is_public(self) -> bool:
        """Whether secrets have to be kept from strangers (`public_because`)."""
        return bool(self.public_because)

    @property
    def created_by(self) -> str:
        """What creates a sandbox with a new name, beginning with "by"."""
        if not self.is_public:
            return "by the first request to it that succeeds"
        return f"by POST {self.url}/_sandbox/sandboxes"

    @property
    def behaviour(self) -> Body:
        """The settings that answers depend on, without secrets, as recordings have them."""
        return {
            "base_url": self.url,
            **self._named(_SHAPING),
            "has_admin_key": bool(self.admin_key),
            "has_overlays": bool(self.overlays),
        }

    @property
    def shared(self) -> dict[str, str]:
        """The flags in which servers of a store should agree, as they are written. Of secrets only
        that they are set.

        The seed is not among them: it is the store's.
        """
        also = {
            "now": None if self.now is None else iso(self.now),
            "rate_limit": self.rate_limit and "{}/{}s".format(*self.rate_limit),
            "overlay": " ".join(path.name for path in self.overlays),
            "admin_key": self.admin_key and "set",
            "jwt_secret": self.secret and "set",
        }
        return {
            **flags(self._named(_SHARED) | also),
            "being public": "set" if self.is_public else "",
        }

    def _named(self, names: Sequence[str]) -> Body:
        """The settings of these names."""
        return {name: getattr(self, name) for name in names}

    def signing_secret(self, random_bytes: bytes) -> bytes:
        """The secret of tokens and keys: from `secret`, else `random_bytes` on a public server,
        else the seed.
        """
        if self.secret is not None:
            return sha256(self.secret).digest()
        if self.is_public:
            return sha256(random_bytes).digest()
        return sha256(f"membership-sandbox/{self.seed}".encode()).digest()
