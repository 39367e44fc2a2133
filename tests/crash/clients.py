"""Clients of two servers, which send a change again until it is answered and know what
there must be.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import uuid4

import httpx2

from ..support.live import NO_TLS
from ..support.make import Json, customer_body
from ..support.processes import Process

ANSWERED = 4.0  # seconds that a client waits for an answer before it sends again
PATIENCE = 60.0  # seconds in which a change must be answered, whatever happens
PAUSE = 0.05
PAGE = 100
MOST = 300  # customers of a sandbox, before its client goes on with another one


class Wrong(Exception):
    """An answer that no client may get."""


class Client(threading.Thread):
    """One that works alone in a sandbox, through whichever server, and looks after each change at
    what there is.

    Customers are made under an Idempotency-Key until they are made. Everything else is sent once:
    what is not answered may still be done later, so the client leaves that sandbox and begins with
    another one.
    """

    def __init__(
        self, servers: Sequence[Process], number: int, seed: int, *, only_makes: bool = False
    ) -> None:
        super().__init__(daemon=True)
        self._only_makes = only_makes
        self._servers = servers
        self._random = Random(seed)
        self._number = number
        self._http = httpx2.Client(timeout=ANSWERED, verify=NO_TLS)
        self._ending = threading.Event()
        self._begun = 0
        self.acknowledged = 0
        self.statuses: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._begin()

    def _begin(self) -> None:
        self._begun += 1
        self.sandbox = f"client-{self._number}-{self._begun}"
        # which there must be, and the number that each was given last
        self.customers: dict[str, int] = {}
        self._is_certain = True  # whether everything that was sent has been answered
        self._headers: dict[str, str] = {}

    def run(self) -> None:
        """Go on until told to end."""
        actions = (self._make, self._rename, self._snapshot, self._fork, self._rewind, self._reset)
        weights = (1, 0, 0, 0, 0, 0) if self._only_makes else (60, 20, 5, 5, 5, 5)
        try:
            while not self._ending.is_set():
                self._headers = self._headers or self._token()
                if not self._random.choices(actions, weights)[0]():
                    self._begin()
                    continue
                self.check()
                self.acknowledged += 1
                if len(self.customers) > MOST and not self._only_makes:
                    self.check_all()
                    self._begin()
        except Wrong as error:
            self.wrong.append(f"{self.sandbox}: {error!r}")

    def end(self) -> None:
        """Answer for what there is, and end."""
        self._ending.set()
        self.join(2 * PATIENCE)
        if self.is_alive():
            self.wrong.append(f"{self.sandbox}: a request has no end")

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    # -- requests

    def _send(
        self, method: str, path: str, body: Json | None, headers: dict[str, str]
    ) -> httpx2.Response | None:
        """One request; None where there is no answer."""
        url = self._random.choice(self._servers).url
        try:
            answer = self._http.request(
                method, url + path, json=body, headers=self._headers | headers
            )
        except httpx2.TransportError as error:
            self.statuses[type(error).__name__] += 1
            return None
        self.statuses[str(answer.status_code)] += 1
        if answer.status_code == 503 and "retry-after" not in answer.headers:
            raise Wrong(f"503 without Retry-After: {answer.text}")
        if answer.status_code in (401, 403) or (
            answer.status_code >= 500 and answer.status_code != 503
        ):
            raise Wrong(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer

    def ask(
        self, method: str, path: str, body: Json | None = None, key: str | None = None
    ) -> httpx2.Response:
        """Send until it is answered."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            answer = self._send(method, path, body, {} if key is None else {"Idempotency-Key": key})
            if answer is None:
                self._is_certain = self._is_certain and method == "GET"
            elif (
                answer.status_code != 503 and answer.json().get("code") != "idempotency_in_progress"
            ):
                return answer
            time.sleep(PAUSE)
        raise Wrong(f"{method} {path} was not answered")

    def _token(self) -> dict[str, str]:
        """What requests to the sandbox carry; makes it."""
        return {"Authorization": f"Bearer {self._told(f'{self._control}/credentials')['jwt']}"}

    def _told(self, path: str) -> Any:
        """What a read is answered."""
        answer = self.ask("GET", path)
        if answer.status_code != 200:
            raise Wrong(f"{path}: {answer.status_code} {answer.text}")
        return answer.json()

    def _once(self, method: str, path: str, body: Json | None = None) -> Any:
        """What is answered to a change that is sent once, None where that is nothing or 503."""
        answer = self._send(method, path, body, {})
        if answer is None or answer.status_code == 503:
            return None
        if not answer.is_success:
            raise Wrong(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else {}

    # -- what it does; each answers whether it knows what there is now

    @property
    def _control(self) -> str:
        return f"/s/{self.sandbox}/_sandbox"

    def _make(self) -> bool:
        body = customer_body(metadata={"n": "0"})
        answer = self.ask("POST", f"/s/{self.sandbox}/v2/customers", body, str(uuid4()))
        if answer.status_code != 201:
            raise Wrong(f"a customer: {answer.status_code} {answer.text}")
        self.customers[answer.json()["customer"]["id"]] = 0
        return True

    def _rename(self) -> bool:
        if not self.customers:
            return True
        ident = self._random.choice([*self.customers])
        number = self.customers[ident] + 1
        body = {"metadata": {"n": str(number)}}
        if self._once("PUT", f"/s/{self.sandbox}/v2/customers/{ident}", body) is None:
            return False
        self.customers[ident] = number
        return True

    def _snapshot(self) -> bool:
        name = f"n{self.acknowledged}"
        if self._once("POST", f"{self._control}/snapshots", {"name": name}) is None:
            return False
        told = self._told(f"{self._control}/snapshots")["snapshots"]
        if name not in [each["name"] for each in told]:
            raise Wrong(f"the snapshot {name} is not there")
        return self._once("DELETE", f"{self._control}/snapshots/{name}") is not None

    def _fork(self) -> bool:
        entries = "/_sandbox/sandboxes"
        name = f"{self.sandbox}-{self.acknowledged}"
        if self._once("POST", f"{entries}/{self.sandbox}/fork", {"name": name}) is None:
            return False
        of_both = [
            self._told(f"{entries}/{each}")["sandbox"]["records"] for each in (self.sandbox, name)
        ]
        if len({*of_both}) > 1:
            raise Wrong(f"a sandbox and its fork have so many records: {of_both}")
        if self._once("DELETE", f"{entries}/{name}") is None:
            return False
        if self.ask("GET", f"{entries}/{name}").status_code != 404:
            raise Wrong(f"{name} was deleted and is there")
        return True

    def _rewind(self) -> bool:
        kept = dict(self.customers)
        step = self._told(f"{self._control}/steps")["steps"]
        self._make()
        # what is sent twice may come late, to a sandbox that knows it no more
        if not self._is_certain or not step:
            return True
        if self._once("POST", f"{self._control}/rewind", {"to_step": step[0]["step"]}) is None:
            return False
        self.customers = kept
        return True

    def _reset(self) -> bool:
        if not self._is_certain:
            return True
        if self._once("POST", f"{self._control}/reset") is None:
            return False
        self.customers = {}
        self._headers = {}
        self._headers = self._token()
        return True

    # -- what there must be

    def check(self) -> None:
        """What was answered is there, once, through whichever server."""
        path = f"/s/{self.sandbox}/v2/customers"
        total = self._told(f"{path}?limit=1")["pagination"]["total"]
        if total != len(self.customers):
            raise Wrong(f"{total} customers, and {len(self.customers)} were answered")
        if self.customers:
            ident = self._random.choice([*self.customers])
            told = self._told(f"{path}/{ident}")["customer"]["metadata"]
            if told != {"n": str(self.customers[ident])}:
                raise Wrong(f"{ident} has {told}, and {self.customers[ident]} was answered")

    def check_all(self) -> None:
        """The same of every customer, and the invariants."""
        self._headers = self._headers or self._token()
        path = f"/s/{self.sandbox}/v2/customers?limit={PAGE}"
        page = 0
        found: dict[str, int] = {}
        while len(found) == PAGE * page:
            page += 1
            told = self._told(f"{path}&page={page}")["customers"]
            found |= {customer["id"]: int(customer["metadata"]["n"]) for customer in told}
            if not told:
                break
        if found != self.customers:
            differing = {
                ident
                for ident in {*found, *self.customers}
                if found.get(ident) != self.customers.get(ident)
            }
            self.wrong.append(
                f"{self.sandbox}: {len(differing)} customers are not as they were answered"
            )
        answer = self.ask("GET", f"{self._control}/invariants")
        if answer.status_code != 200:
            self.wrong.append(f"{self.sandbox}: {answer.text}")


class Watcher(Client):
    """One that reads in a sandbox of another client, where customers are made and nothing
    else is done.
    """

    def __init__(self, servers: Sequence[Process], seed: int, watched: Client) -> None:
        super().__init__(servers, 0, seed)
        self.sandbox = watched.sandbox

    def run(self) -> None:
        """See whether what was there is there from then on."""
        seen = 0
        try:
            self._headers = self._token()
            while not self._ending.is_set():
                total = self._told(f"/s/{self.sandbox}/v2/customers?limit=1")["pagination"]["total"]
                if total < seen:
                    raise Wrong(f"{total} customers after {seen}")
                seen = total
        except Wrong as error:
            self.wrong.append(f"{self.sandbox}: {error!r}")
