"""The password of the database is printed nowhere: not at a start, in a refusal, in the log, or in
an answer.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from stub_server.settings import Settings

from ..support import postgres
from ..support.console import Console
from ..support.live import NO_TLS
from ..support.make import customer_body
from ..support.postgres import Postgres
from ..support.processes import Process, free_port
from .conftest import FLAGS

pytestmark = [pytest.mark.check, pytest.mark.turn]
USER = "keeper"
PASSWORD = "opensesame /?#%é@1"
ENCODED = quote(PASSWORD, safe="")
PARTS = ("opensesame", ENCODED, PASSWORD)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Postgres]:
    """A database server that asks its user for a password."""
    with postgres.running() as server:
        server.add_user(USER, PASSWORD)
        yield server


def _has_secret(text: str) -> bool:
    return any(part in text for part in PARTS)


def _addresses(directory: Path) -> dict[str, str]:
    """Addresses that cannot be used, by what is wrong with each."""
    closed = f"127.0.0.1:{free_port()}"
    return {
        "a wrong password": f"postgresql://{USER}:{ENCODED}no@/postgres?host={directory}",
        "a wrong password in the query": (
            f"postgresql:///postgres?host={directory}&user={USER}&password={ENCODED}no"
        ),
        "nobody listens": f"postgresql://{USER}:{ENCODED}@{closed}/postgres",
        "no such socket": f"postgresql://{USER}:{ENCODED}@/postgres?host={directory}/nowhere",
        "no such database": f"postgresql://{USER}:{ENCODED}@/nowhere?host={directory}",
        "a slash": f"postgresql://{USER}:opensesame/1@{closed}/postgres",
        "a slash after digits": f"postgresql://{USER}:12/opensesame@{closed}/postgres",
        "an at sign": f"postgresql://{USER}:1@opensesame@{closed}/postgres",
        "a percent sign": f"postgresql://{USER}:opensesame%zz@{closed}/postgres",
        "an unknown parameter": (
            f"postgresql://{closed}/postgres?passwort={ENCODED}&password={ENCODED}"
        ),
        "another scheme": f"mysql://{USER}:{ENCODED}@{closed}/db",
        "one slash": f"postgresql:/{USER}:{ENCODED}@{closed}/db",
        "names and values": f"host=127.0.0.1 user={USER} password={ENCODED}",
    }


@pytest.mark.promise("password-database-no-message-log")
def test_a_start_that_fails_prints_no_password(guarded: Postgres) -> None:
    for what, address in _addresses(guarded.directory).items():
        said = Process("--store", address).refused()
        assert "--store" in said.splitlines()[-1], (what, said)
        assert not _has_secret(said), (what, said)
        assert "Traceback" not in said, (what, said)


@pytest.mark.parametrize("where", ["before the host", "in the query"])
def test_a_server_that_runs_prints_no_password(guarded: Postgres, where: str) -> None:
    with guarded.database() as url:
        if where == "in the query":
            address = f"{url.replace('postgres@', '')}&user={USER}&password={ENCODED}"
        else:
            address = url.replace("postgres@", f"{USER}:{ENCODED}@")
        assert not _has_secret(repr(Settings(store=address)))
        said = []
        with (
            Process("--store", address, *FLAGS, "--log", "json") as server,
            closing(Console(server.url)) as console,
        ):
            said.append(server.banner)
            for path in ("/console/requests", "/console/sandboxes", "/"):
                said.append(console.open(path).response.text)
            with server.api() as api:
                guarded.stop()
                refused = api.post("/v2/customers", json=customer_body())
                assert "store_unavailable" == refused.json()["code"]
                said.append(refused.text)
                for path in ("health", "ready", "metrics", "credentials", "requests"):
                    said.append(httpx2.get(f"{server.url}/_sandbox/{path}", verify=NO_TLS).text)
                guarded.start()
            said.append(server.stop())
        assert "the store cannot be written" in said[-1]
        assert "/v2/customers" in said[-1]
        assert [] == [text for text in said if _has_secret(text)]
