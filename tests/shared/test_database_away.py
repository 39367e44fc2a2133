"""The database is restarted, away or silent: nothing answered is lost, and all goes
on by itself.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import httpx2
import psycopg
import pytest

from ..support import postgres as support
from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.postgres import Postgres
from ..support.processes import Process
from .conftest import FLAGS

pytestmark = [pytest.mark.check, pytest.mark.turn]
LEASE = 10.0  # seconds
SOON = 20.0  # seconds in which everything is as it was


@dataclass(slots=True)
class Away:
    """A server and its database; clients that post to its sandbox `busy`, each customer until it is
    answered 201.
    """

    server: Process
    database: Postgres
    url: str
    answers: Counter[int] = field(default_factory=Counter)
    made: list[str] = field(default_factory=list)

    def status(self, method: str, path: str) -> int:
        """The status of a request without a credential; 503 says when to come again."""
        answer = httpx2.request(method, self.server.url + path, timeout=60, verify=NO_TLS)
        assert answer.status_code != 503 or answer.headers["retry-after"]
        return answer.status_code

    def health(self) -> None:
        """The server itself is well, whatever its store is."""
        assert (
            200 == self.status("GET", "/_sandbox/health") == self.status("GET", "/_sandbox/metrics")
        )

    @contextmanager
    def clients(self) -> Iterator[None]:
        """Three clients, until the block ends."""
        done = threading.Event()

        def post(api: httpx2.Client, name: str) -> None:
            number = 0
            while not done.is_set():
                body = customer_body()
                headers = {"Idempotency-Key": f"{name}-{number}"}
                while True:
                    answer = api.post("/v2/customers", json=body, headers=headers)
                    self.answers[answer.status_code] += 1
                    if answer.status_code != 503:
                        break
                    assert answer.headers["retry-after"], answer.text
                    time.sleep(0.05)
                self.made.append(created(answer)["customer"]["id"])
                number += 1

        with ExitStack() as stack:
            apis = [stack.enter_context(self.server.api("busy")) for _ in range(3)]
            threads = [
                threading.Thread(target=post, args=(api, f"{time.time()}-{n}"))
                for n, api in enumerate(apis)
            ]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                done.set()
                for thread in threads:
                    thread.join()

    def check(self, server: Process | None = None) -> None:
        """Everything that was answered is there, once."""
        with (server or self.server).api("busy") as api:
            pages = [
                api.get("/v2/customers", params={"limit": 100, "page": page + 1})
                for page in range(200)[: self.pages]
            ]
        found = [customer["id"] for page in pages for customer in page.json()["customers"]]
        assert Counter(self.made) == Counter(found)
        assert {201, 503} >= self.answers.keys()

    @property
    def pages(self) -> int:
        """How many pages its customers take."""
        return -(-len(self.made) // 100)


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    """One of its own, as it does not answer."""
    with support.running() as server:
        yield server


@pytest.fixture
def away(database: Postgres) -> Iterator[Away]:
    """A server with sandboxes `busy` and `quiet`."""
    with database.database() as url, Process("--store", url, *FLAGS) as server:
        with server.control("quiet") as control:
            control.get("/credentials").raise_for_status()
        yield Away(server, database, url)


def eventually(holds: Callable[[], bool], seconds: float = SOON) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_restart_is_a_matter_of_a_moment(away: Away) -> None:
    with away.clients():
        for _ in range(5):
            time.sleep(0.5)
            away.database.restart()
    eventually(lambda: 200 == away.status("GET", "/_sandbox/ready"))
    away.check()


def test_a_database_that_is_away_refuses_changes_and_leaves_reads_for_as_long_as_the_lease(
    away: Away,
) -> None:
    with away.clients(), away.server.api("quiet") as quiet:
        mine = created(quiet.post("/v2/customers", json=customer_body()))["customer"]["id"]
        away.database.stop()
        began = time.monotonic()
        reads = Counter[int]()
        while time.monotonic() - began < LEASE - 3:
            assert 200 == quiet.get(f"/v2/customers/{mine}").status_code
            assert 503 == away.status("GET", "/s/fresh/_sandbox/credentials")
            away.health()
            time.sleep(0.2)
        assert 503 == quiet.post("/v2/customers", json=customer_body()).status_code
        assert 503 == away.status("GET", "/_sandbox/ready")
        while time.monotonic() - began < LEASE + 3:
            answer = quiet.get(f"/v2/customers/{mine}")
            reads[answer.status_code] += 1
            assert 200 == answer.status_code or answer.headers["retry-after"]
            away.health()
            time.sleep(0.2)
        # others may have the sandbox by now
        assert 503 == quiet.get(f"/v2/customers/{mine}").status_code
        away.database.start()
        eventually(lambda: 200 == away.status("GET", "/_sandbox/ready"))
        assert [mine] == [each["id"] for each in quiet.get("/v2/customers").json()["customers"]]
        count = len(away.made)
        eventually(lambda: len(away.made) > count)
    away.check()


@pytest.mark.night
def test_a_database_that_does_not_answer_holds_nobody_up_for_long(away: Away) -> None:
    """Its connections stay. A change is refused within seconds, and meanwhile others are read."""
    with away.server.api("quiet") as quiet:
        with away.database.frozen():
            began = time.monotonic()
            refused = []
            changes = threading.Thread(
                target=lambda: refused.append(quiet.post("/v2/customers", json=customer_body()))
            )
            changes.start()
            with httpx2.Client(base_url=away.server.url, verify=NO_TLS, timeout=1) as reader:
                while time.monotonic() - began < LEASE - 3:
                    assert 200 == reader.get("/_sandbox/health").status_code
                    assert 200 == reader.get("/s/default/_sandbox/clock").status_code
                    time.sleep(0.05)
            changes.join(SOON)
            assert [503] == [answer.status_code for answer in refused]
        eventually(lambda: 200 == away.status("GET", "/_sandbox/ready"))
        total = quiet.get("/v2/customers").json()["pagination"]["total"]
        created(quiet.post("/v2/customers", json=customer_body()))
        assert total + 1 == quiet.get("/v2/customers").json()["pagination"]["total"]
    with psycopg.connect(away.url) as connection:
        rows = connection.execute(
            "select place >> 32, count(*), max(place) - min(place) + 1 from steps group by 1"
        )
        assert all(count == span for _, count, span in rows.fetchall())
