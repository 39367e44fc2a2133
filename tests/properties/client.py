"""One kept-alive connection to a sandbox: tens of thousands of requests a test, each as cheap as
can be.
"""

import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from typing import Any
from urllib.parse import urlencode

from ..support.refusals import foreseen
from .model import Json, Verdict


class Disagreement(AssertionError):
    """The server and the model are of two minds."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server said, and to what."""

    asked: str
    status: int
    headers: HTTPMessage
    body: Json
    foreseen: frozenset[str] = frozenset()
    """The codes with which the table of refusals refuses it, which the model need not know."""

    @property
    def granted(self) -> bool:
        """Whether the request took effect."""
        return self.status < 400

    def hold(self, verdict: Verdict) -> "Reply":
        """The status and the code must be those of the model and of the table of refusals."""
        code = self.body.get("code")
        if self.foreseen and (verdict.granted or verdict.status == 409):
            verdict = Verdict(409, verdict.codes | self.foreseen)
        if self.status != verdict.status or (verdict.codes and code not in verdict.codes):
            expected = f"{verdict.status} {sorted(verdict.codes) or ''}"
            raise Disagreement(
                f"{self.asked}\nmodel:  {expected}\nserver: {self.status} {self.body}"
            )
        return self


def agree(what: str, expected: Any, actual: Any) -> None:
    """Every member that the model knows must be as it says; what it does not know is free."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        wrong = {
            name: (value, actual.get(name, "absent"))
            for name, value in expected.items()
            if not _same(value, actual.get(name, "absent"))
        }
        if wrong:
            lines = "\n".join(
                f"  {name}: model {value!r}, server {got!r}" for name, (value, got) in wrong.items()
            )
            raise Disagreement(f"{what}\n{lines}\nserver: {actual}")
    elif not _same(expected, actual):
        raise Disagreement(f"{what}: model {expected!r}, server {actual!r}")


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(
            name in actual and _same(value, actual[name]) for name, value in expected.items()
        )
    return bool(expected == actual)


class Client:
    """A sandbox of a server. `token` is what requests carry unless told otherwise."""

    def __init__(self, port: int, sandbox: str) -> None:
        """Nothing is sent yet."""
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._prefix = f"/s/{sandbox}"
        self.token = ""
        self.requests = 0

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def ask(
        self, method: str, path: str, body: Json | None = None, *, token: str = "", idem: str = ""
    ) -> Reply:
        """One request and its answer, which is JSON always."""
        known = frozenset[str]()
        if method != "GET":
            known = foreseen(lambda shown: self.get(shown).body, method, path, body)
        headers = {"Authorization": f"Bearer {token or self.token}"}
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if idem:
            headers["Idempotency-Key"] = idem
        self.requests += 1
        self._connection.request(method, self._prefix + path, payload, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        asked = f"{method} {path} {body if body is not None else ''}"
        if answer.status >= 500:
            raise Disagreement(f"{asked}\nserver: {answer.status} {content[:500]!r}")
        return Reply(asked, answer.status, answer.headers, json.loads(content), known)

    def get(self, path: str, **query: object) -> Reply:
        """A read."""
        return self.ask("GET", f"{path}?{urlencode(query)}" if query else path)

    def pages(
        self, path: str, plural: str, inside: str = "", limit: int = 100, **query: object
    ) -> list[Json]:
        """Every record of a list, page by page; the pages must add up."""
        found = []
        page = 1
        while True:
            body = self.get(path, page=page, limit=limit, **query).hold(Verdict(200)).body
            body = body[inside] if inside else body
            pagination = body["pagination"]
            found += body[plural]
            expected = {
                "page": page,
                "limit": limit,
                "has_prev": page > 1,
                "has_next": page < pagination["total_pages"],
            }
            agree(f"pagination of {path}", expected, pagination)
            if not pagination["has_next"]:
                break
            page += 1
        agree(
            f"pagination of {path}",
            {"total": len(found), "total_pages": -(-len(found) // limit)},
            pagination,
        )
        if len({record["id"] for record in found}) != len(found):
            raise Disagreement(f"{path} lists a record twice")
        return found
