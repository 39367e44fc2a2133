"""What views ask: controls and operations of this server, each a request through every layer that
others pass.

A view has no rules of its own. What only reads is not kept in the journal, not limited and not made
to fail; what changes something is a request like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import orjson

from ..contract.source import JsonObject
from ..server.layers.inside import Question, Reply
from ..server.request import CONTROL

ASK, ASKED, VISITOR = "stub_server.ask", "stub_server.sandbox", "stub_server.visitor"
LOST = "stub_server.lost"
"""Where the environment of a page's request has the function that asks, the name of the sandbox,
who asks, and a list for the refusal of a program that asks for no page.
"""


Ask = Callable[[Question, str | None], Reply]
"""Asks from a view's thread: the sandbox of the page, or that of another prefix."""


class Refused(Exception):
    """A control or an operation refused what a page asked."""

    def __init__(self, reply: Reply) -> None:
        said = reply.json if isinstance(reply.json, dict) else {}
        self.status = reply.status if reply.status >= 400 else 502
        self.code: str = str(said.get("code", "refused"))
        self.message: str = str(said.get("message", HTTPStatus(self.status).phrase))
        self.details: list[Any] = said.get("details") or []
        super().__init__(self.message)


class Client:
    """Asks for one page. `keys` are the headers that open the controls to its reader."""

    def __init__(
        self, ask: Ask, host: str, keys: Mapping[str, str], prefix: str | None = None
    ) -> None:
        """`prefix` is that of another sandbox than the page's."""
        self._ask, self._host, self._keys, self._prefix = ask, host, dict(keys), prefix

    def of(self, prefix: str) -> Client:
        """One that asks the sandbox of a prefix, such as `/s/alice`."""
        return Client(self._ask, self._host, self._keys, prefix)

    def with_keys(self, keys: Mapping[str, str]) -> Client:
        """One that opens the controls with other keys."""
        return Client(self._ask, self._host, keys, self._prefix)

    def get(self, path: str, query: JsonObject | None = None) -> Any:
        """What a control or an operation of the API answers. Raises Refused."""
        reply = self.send(Question("GET", path, encoded(query), is_internal=True))
        if reply.is_refused:
            raise Refused(reply)
        return reply.json

    def control(self, path: str, query: JsonObject | None = None) -> Any:
        """What a control answers, by its path below those of all controls. Raises Refused."""
        return self.get(f"{CONTROL}/{path}", query)

    def find(self, path: str, query: JsonObject | None = None) -> Any:
        """What a control or an operation answers, None for what there is not. Raises Refused."""
        try:
            return self.get(path, query)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def change(self, method: str, path: str, body: Any = None) -> Reply:
        """What a control or an operation answers that changes something, be it a refusal."""
        text = b"" if body is None else orjson.dumps(body)
        headers = {"content-type": "application/json"} if text else {}
        path, _, query = path.partition("?")
        return self.send(Question(method, path, query, headers, text))

    def send(self, question: Question) -> Reply:
        """The answer to a request. One to the API that names no credential carries the ready token.

        Raises Refused where the visitor must give a key first.
        """
        own = {"host": self._host, "content-length": str(len(question.body))}
        if question.path.startswith(CONTROL):
            own |= {name.lower(): key for name, key in self._keys.items()}
        elif "authorization" not in question.headers:
            own["authorization"] = f"Bearer {self.credentials['jwt']}"
        reply = self._ask(question._replace(headers={**question.headers, **own}), self._prefix)
        if reply.status == 403 and Refused(reply).code == "admin_key_required":
            raise Refused(reply)
        return reply

    @cached_property
    def credentials(self) -> Any:
        """The credentials of the sandbox. Raises Refused."""
        return self.control("credentials")


def encoded(query: JsonObject | None) -> str:
    """A query as addresses have it, without the parameters that are empty."""
    given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
    return urlencode(given)
