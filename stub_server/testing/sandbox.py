"""A sandbox for one test: its API, its controls, and short ways to what tests do most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import date
from itertools import count
from json import dumps
from typing import Any, NamedTuple, NoReturn, Protocol
from urllib.parse import quote

import httpx2

from ..core.members import given
from ..domain.cpf import cpf_with_check_digits
from .http import Json, Refused, body_of, done, explained, id_of, instant, listed, shown
from .parts import Fault, Inbox

__tracebackhide__ = True  # a failed test shows the test's own lines
EVENTS = (
    "order.*",
    "subscription.*",
    "project.*",
    "plan.*",
    "product.*",
    "customer.*",
    "api_key.*",
)
_MOST_EXPLAINED = 20  # of the newest requests that were refused
_FIRST_DOCUMENT = 913_570_000  # of customers that a test makes; seeded ones are drawn at random


class Credentials(NamedTuple):
    """A token and the header that has it."""

    token: str
    headers: dict[str, str]


class Owner(Protocol):
    """The server of a sandbox, as the sandbox uses it."""

    url: str

    def client(self, url: str, headers: Mapping[str, str]) -> httpx2.Client:
        """A client of the server, for paths below `url`."""

    def forget(self, name: str) -> None:
        """Delete the sandbox of this name, if it still exists."""


class Sandbox(AbstractContextManager["Sandbox", None]):
    """One sandbox of a server: `with server.sandbox() as sandbox` deletes it at the end of the
    block.

    `url` is the parent of `/v2`, `token` has every scope, `sample` the ids of seeded records
    (`projectId`, `planId`, `customerId`, `orderId`), as far as the scenario has them. `api` and
    `control` are clients of the API and of `/_sandbox`. Helpers raise `Refused` where the server
    refuses.
    """

    def __init__(self, server: Owner, made: Json, keys: Mapping[str, str]) -> None:
        """`made` is the answer of the server; `keys` are the headers that open its controls."""
        self.name: str = made["name"]
        self.url: str = f"{server.url}/s/{self.name}"
        self.token: str = made["credentials"]["jwt"]
        self.headers = {"Authorization": f"Bearer {self.token}"}
        self.sample: dict[str, str] = given(**made["credentials"]["sample"])
        self.env = {"STUB_URL": self.url, "STUB_TOKEN": self.token}
        self.api = server.client(self.url, self.headers)
        self.control = server.client(f"{self.url}/_sandbox", keys)
        self._server, self._numbers = server, count(1)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Delete it; where the block failed, its error says which requests were
        refused, and why.
        """
        if isinstance(error, Exception):
            # a server that is away must not hide what failed
            with suppress(httpx2.HTTPError, Refused):
                for line in self.refusals():
                    error.add_note(line)
        self.delete()

    def __repr__(self) -> str:
        return f"<Sandbox {self.url}>"

    def delete(self) -> None:
        """Delete the sandbox, if it still exists.

        Helpers raise `Refused` then: a request would create it anew.
        """
        self._server.forget(self.name)
        self.api = self.control = httpx2.Client(transport=httpx2.MockTransport(self._refuse))

    def _refuse(self, request: httpx2.Request) -> NoReturn:
        raise Refused(f"The sandbox {self.name} was deleted.")

    # -- records

    def order(self, **changes: Any) -> Json:
        """Place an order for the seeded plan by PIX, as a new customer; `changes` replace members
        of the body.

        Another `planId` brings its own project and price. Another `paymentMethod` goes to `POST
        /v2/orders`.
        """
        plan = self._plan(changes.get("planId"))
        amount = changes.get("totalAmount", plan["amount"])
        body = {
            "projectId": plan["projectId"],
            "planId": plan["id"],
            "paymentMethod": "pix",
            "totalAmount": amount,
            "items": [{"description": plan["name"], "quantity": 1, "amount": amount}],
        } | changes
        if "customer" not in body:
            body["customer"] = self._person()
        path = "/v2/orders/pix" if body["paymentMethod"] == "pix" else "/v2/orders"
        placed: Json = done(self.api.post(path, json=body))
        return placed

    def customer(self, persona: str | None = None, **changes: Any) -> Json:
        """Create a customer; `changes` replace members of the body.

        With a `persona`, such as "past_due_br", one who has lived that life up to now; `changes`
        may then name who it is (`name`, `email`, `document`) and what was bought (`planId`,
        `projectId`).
        """
        if persona is not None:
            body: Json = {"persona": persona}
            for name in ("planId", "projectId"):
                if name in changes:
                    body[name] = changes.pop(name)
            if changes:
                body["customer"] = changes
            answer = self.control.post("/personas", json=body)
        else:
            answer = self.api.post("/v2/customers", json=self._person() | changes)
        return shown(answer, "customer")

    def plan(self, **changes: Any) -> Json:
        """Create a monthly plan of R$ 49.90 in the seeded project; `changes` replace
        members of the body.
        """
        body = {"name": f"Plano {next(self._numbers)}", "amount": 49.90} | changes
        if "projectId" not in body:
            body["projectId"] = self._project()
        return shown(self.api.post("/v2/plans", json=body), "plan")

    def subscription(self, order: Json | str) -> Json:
        """The subscription that an order opened."""
        found: list[Json] = done(
            self.api.get("/v2/subscriptions", params={"orderId": id_of(order)})
        )["subscriptions"]
        if not found:
            raise Refused(
                "The order has opened no subscription. Pay it first; a one-time plan opens none."
            )
        return found[0]

    def _plan(self, ident: str | None) -> Json:
        ident = ident or self.sample.get("planId")
        if ident is None:
            made = self.plan()
            self.sample["planId"] = made["id"]
            return made
        return shown(self.api.get(f"/v2/plans/{quote(ident, safe='')}"), "plan")

    def _project(self) -> str:
        if "projectId" in self.sample:
            return self.sample["projectId"]
        made = self.api.post("/v2/projects", json={"name": f"Projeto {next(self._numbers)}"})
        ident: str = shown(made, "data")["project"]["id"]
        done(self.api.post(f"/v2/projects/{ident}/activate"))
        self.sample["projectId"] = ident
        return ident

    def _person(self) -> Json:
        number = next(self._numbers)
        return {
            "name": f"Cliente Número {number}",
            "email": f"cliente{number}@example.com",
            "document": cpf_with_check_digits(str(_FIRST_DOCUMENT + number)),
        }

    # -- what happens to orders

    def pay(self, order: Json | str) -> Json:
        """Pay an order; answers the order."""
        return self._ordered(order, "pay")

    def expire(self, order: Json | str) -> Json:
        """Let the time to pay an order run out; answers the order."""
        return self._ordered(order, "expire")

    def fail(self, order: Json | str, **body: Any) -> Json:
        """Have the payment of an order fail; answers the order."""
        return self._ordered(order, "fail", body)

    def refund(self, order: Json | str, **body: Any) -> Json:
        """Refund an order, in part with `amount`; answers the order."""
        return self._ordered(order, "refund", body)

    def dispute(self, order: Json | str, **body: Any) -> Json:
        """Have the payer dispute an order; answers the order."""
        return self._ordered(order, "dispute", body)

    def _ordered(self, order: Json | str, act: str, body: Json | None = None) -> Json:
        path = f"/orders/{quote(id_of(order), safe='')}/{act}"
        return shown(self.control.post(path, json=body or None), "order")

    # -- time and state

    def _steer(self, path: str, body: Json | None = None) -> Json:
        """The answer of a control. Raises Refused."""
        answered: Json = done(self.control.post(path, json=body))
        return answered

    def advance(self, **time: float) -> Json:
        """Move the clock by `months`, `days`, `hours`, `minutes` and `seconds`; what falls due on
        the way happens.
        """
        return self._steer("/clock/advance", time)

    def travel(self, to: date | str) -> Json:
        """Move the clock forward to an instant, as "2027-01-01T12:00:00-03:00"; a date alone is
        midnight in UTC.
        """
        return self._steer("/clock/advance", {"to": instant(to)})

    def as_of(self, step_or_time: int | date | str) -> httpx2.Client:
        """A client whose reads answer as they would have after a step or at an instant."""
        at = str(step_or_time)
        if not isinstance(step_or_time, int):
            at = instant(step_or_time)
        return self._server.client(self.url, {**self.headers, "X-Sandbox-As-Of": at})

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Restore the present state at the end of the block."""
        name = f"test-{next(self._numbers)}"
        self._steer("/snapshots", {"name": name})
        try:
            yield
        finally:
            self._steer(f"/snapshots/{name}/restore")
            done(self.control.delete(f"/snapshots/{name}"))

    def credentials(self, scopes: Sequence[str]) -> Credentials:
        """A token with some scopes only."""
        token: str = self._steer("/tokens", {"scopes": listed(scopes)})["token"]
        return Credentials(token, {"Authorization": f"Bearer {token}"})

    # -- failures and webhooks

    def fault(self, preset: str | None = None, **rule: Any) -> Fault:
        """Make requests fail: a preset such as "outage", or a rule of `match`, `when` and `then`.

        As a context manager the rule is deleted at the end of the block.
        """
        body = rule if preset is None else {"preset": preset, **rule}
        return Fault(self.control, shown(self.control.post("/faults", json=body), "fault"))

    def inbox(self, events: Sequence[str] = EVENTS) -> Inbox:
        """Receive webhooks in the sandbox itself, of events such as "order.paid" or "order.*"; by
        default of all.
        """
        name = f"test-{next(self._numbers)}"
        return Inbox(
            self.control, name, self.deliver_to(f"{self.url}/_sandbox/inbox/{name}", events)
        )

    def deliver_to(self, url: str, events: Sequence[str] = EVENTS) -> Json:
        """Create a webhook; answers it with its `signing_key`.

        Receivers on loopback are allowed on a local server.
        """
        return shown(
            self.api.post("/v2/webhooks", json={"url": url, "events": listed(events)}), "webhook"
        )

    def drain(self, timeout: float = 15.0) -> None:
        """Wait until every delivery that is due was sent and answered.

        Raises AssertionError if receivers need longer than `timeout` seconds, which may be up to
        30.
        """
        state = self._steer("/webhooks/drain", {"wait_seconds": timeout})
        if not state["complete"]:
            left = state["deliveries"]["due"] + state["deliveries"]["in_flight"]
            raise AssertionError(f"{left} deliveries are not answered after {timeout:g} s.")

    # -- the journal

    def requests(self, **query: Any) -> list[Json]:
        """Requests to the API, newest first, at most 100:

        `requests(operationId="createPixOrder", status=422)`.
        """
        answer = self.control.get("/requests", params={"limit": 100, **query})
        found: list[Json] = done(answer)["requests"]
        ignored = answer.headers.get("X-Sandbox-Warnings")
        if ignored is not None:  # a filter that does not exist would list everything
            raise Refused(f"The list of requests has no such filter: {ignored}", answer)
        return found

    def verify(
        self,
        operationId: str | None = None,
        *,
        times: int | Json = 1,
        status: int | None = None,
        code: str | None = None,
        **request: Any,
    ) -> list[str]:
        """Assert that the application sent a request, once or so many `times`, which may be
        `{"at_least": 2}`.

        `request` may have `method`, `path`, `query`, `header` and `body`: objects match as subsets,
        texts may have `*`. Answers the requests' ids. Raises AssertionError with the nearest
        misses, also for an operation that does not exist; Refused for other names that do not.
        """
        if operationId is not None:
            request["operationId"] = operationId
        bounds = {"exactly": times} if isinstance(times, int) else times
        response = given(status=status, code=code)
        answer = self.control.post(
            "/requests/verify", json=given(request=request, times=bounds, response=response or None)
        )
        report = body_of(answer)
        if answer.status_code != 409 or "nearest" not in report:
            return list(done(answer)["requests"])
        shown = {name: report[name] for name in ("requests", "nearest", "unknown") if report[name]}
        raise AssertionError(
            f"Expected {bounds} of {request | response}; there were {report['matched']}."
            f"\n{dumps(shown, indent=1, ensure_ascii=False)}"
        )

    def refusals(self, most: int = 5) -> Iterator[str]:
        """The newest requests that were refused, oldest first, equal ones once: why, and
        what would succeed.
        """
        refused = [each["id"] for each in self.requests() if (each["status"] or 0) >= 400]
        found: dict[str, None] = {}
        for ident in reversed(refused[:_MOST_EXPLAINED]):
            found[explained(shown(self.control.get(f"/requests/{ident}"), "request"))] = None
        for text in [*found][-most:]:
            yield from text.split("\n")

    def recording(self) -> bytes:
        """A recording of the requests, without secrets, for `stub-server replay`."""
        answer = self.control.get("/export", params={"requests": True})
        if answer.is_error:
            done(answer)
        return answer.content
