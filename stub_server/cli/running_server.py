"""A client of a running server: the control surface and the API of one sandbox, over HTTP."""

from collections.abc import Callable
from itertools import count
from typing import Any
from urllib.parse import quote

import httpx2

from ..core.members import given
from ..core.record import Body
from ..engine.sandbox import DEFAULT
from ..server.request import COMMAND
from ..testing.http import body_of, done, reasons
from ..testing.server import authorities
from .options import Refusing, Unusable, key_headers, show

TIMEOUT = 60.0  # seconds: a certification takes up to half of them
_PAGE = 100
# what an answer raises that has another shape, such as that of another version
_MISREAD = (AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Away(Unusable):
    """No server answers, or one that is no sandbox."""


class Refused(Refusing):
    """The server refused the request. Message, code and body are the server's."""

    def __init__(self, message: str, body: Body) -> None:
        super().__init__(message)
        self.code, self.body = body.get("code"), body


class Target:
    """The sandbox of a server that a verb asks, and how the verb prints. Every request raises Away
    and Refused.

    Unless it `may_be_new`, the first request checks that the sandbox exists, without creating it.
    """

    def __init__(self, client: httpx2.Client, server: str, sandbox: str, as_json: bool) -> None:
        """The headers of the client open the control surface."""
        self._client = client
        self.server, self.sandbox, self.as_json = server, sandbox, as_json
        self.may_be_new = sandbox == DEFAULT

    @property
    def base(self) -> str:
        """The address of the sandbox, without a slash at the end."""
        return f"{self.server.rstrip('/')}/s/{quote(self.sandbox, safe='')}"

    def show(self, answer: Any, text: str) -> None:
        """Print an answer as JSON, or its text for people, as the user asked for."""
        show(answer, text, as_json=self.as_json)

    def control(self, method: str, path: str, **options: Any) -> Any:
        """The body of an answer of the control surface."""
        return done(self._answer(method, f"/_sandbox{path}", **options))

    def every(self, member: str, most: int, **query: Any) -> list[Any]:
        """The entries of a list of the control surface, of all pages, or its first entries."""
        found: list[Any] = []
        for page in count(1):
            answer = self.control(
                "GET",
                f"/{member}",
                params=given(**query) | {"limit": min(most, _PAGE), "page": page},
            )
            found += answer[member]
            if len(found) >= most or not answer["pagination"]["has_next"]:
                break
        return found[:most]

    def orders(self, **query: Any) -> list[Any]:
        """The newest orders, as the API lists them to the seeded merchant."""
        headers = {"Authorization": f"Bearer {self.control('GET', '/credentials')['jwt']}"}
        answer = self._answer("GET", "/v2/orders", headers=headers, params=query)
        return list(done(answer)["orders"])

    def file(self, path: str, media: str, **query: Any) -> bytes:
        """A file of a media type from the control surface."""
        answer = self._answer("GET", f"/_sandbox{path}", params=query)
        if answer.headers["content-type"] != media:
            raise self.foreign()
        return answer.content

    def foreign(self) -> Away:
        """Why an answer is none of a sandbox of this version."""
        return Away(
            f"the server at {self.server} is not a compatible sandbox. Give another --server."
        )

    def _answer(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """A success, of a path of the sandbox."""
        if not self.may_be_new:
            self.may_be_new = True
            self.control("GET", "/clock")
        try:
            answer = self._client.request(method, self.base + path, **options)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise Away(
                f"no sandbox answers at {self.server.rstrip('/')}"
                f" ({str(error) or type(error).__name__}). Start one with stub-server, or give"
                " --server."
            ) from None
        if answer.is_success:
            if not answer.headers.get("x-request-id", "").startswith("req_"):
                raise self.foreign()
            return answer
        body, reason = body_of(answer), reasons(answer)
        if answer.status_code >= 500:
            raise Away(reason)
        has_key = "X-Sandbox-Control-Key" in self._client.headers
        if body["code"] == "admin_key_required" and not has_key:
            reason = (
                "the server needs a key: give --admin-key, or --control-key where the command"
                " has it."
            )
        raise Refused(reason, body)


def asking(work: Callable[..., Any]) -> Callable[..., Any]:
    """A verb that asks a server: `work` gets a Target in place of the options that name it."""

    def called(
        *,
        server: str,
        admin_key: str | None,
        as_json: bool,
        sandbox: str = DEFAULT,
        control_key: str | None = None,
        **others: Any,
    ) -> Any:
        client = httpx2.Client(
            headers={"User-Agent": COMMAND, **key_headers(admin_key, control_key)},
            timeout=TIMEOUT,
            verify=authorities(server),
            trust_env=not server.startswith("http://"),
        )
        target = Target(client, server, sandbox, as_json)
        with client:
            try:
                return work(target, **others)
            except _MISREAD:
                raise target.foreign() from None

    return called
